"""The log as a table: what it says of late rewards, lists and shadow mode; and what an import refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import coterie
from coterie import Conflict, CoterieError, Recommender
from coterie.service.core.imports import import_log
from coterie.service.storage.export import ExportRow, export_rows, item_rows, json_lines
from inspection import engine_of, live_of, pass_time, store_of
from service.shops import ITEMS, shop


def read_back(one: Recommender, folder: Path) -> coterie.evaluation.Log:
    """What `coterie evaluate` reads of the two tables of a recommender."""
    (folder / "log.jsonl").write_bytes(b"".join(json_lines(exported(one))))
    (folder / "items.jsonl").write_bytes(b"".join(json_lines(item_rows(store_of(one), "default", 2))))
    return coterie.evaluation.read_log(folder / "log.jsonl", items=folder / "items.jsonl")


def exported(one: Recommender) -> list[ExportRow]:
    engine_of(one).journal.flush()
    return list(export_rows(store_of(one), "default", 2))


def test_a_late_reward_takes_the_place_of_the_default() -> None:
    one = shop(reward_wait=10.0, default_reward=0.25)
    early, never, late = (one.decide("alice", decision_id=name).id for name in ("early", "never", "late"))
    one.reward(early, 1.0)
    pass_time(one, 11.0)
    one.expire()
    one.reward(late, 0.5)
    assert [(row.decision_id, row.reward) for row in exported(one)] == [
        (early, 1.0),
        (never, 0.25),
        (late, 0.5),
    ]


def test_without_a_default_nothing_is_told_until_a_reward_comes() -> None:
    one = shop(reward_wait=10.0, default_reward=None)
    one.decide("alice", decision_id="never")
    late = one.decide("alice").id
    pass_time(one, 11.0)
    one.expire()
    one.reward(late, 0.5)
    assert [(row.decision_id, row.reward) for row in exported(one)] == [(late, 0.5)]


def test_of_a_list_the_first_position_is_told() -> None:
    one = shop(uniform_share=0.5)
    first, second, nothing = (one.decide("alice", k=2) for _ in range(3))
    one.reward(first.id, 1.0, item=first.ranking[0])
    one.reward(second.id, 1.0, item=second.ranking[1])
    one.reward(nothing.id, 0.0)
    rows = exported(one)
    assert [row.reward for row in rows] == [1.0, 0.0, 0.0]
    assert [row.item for row in rows] == [one.chosen for one in (first, second, nothing)]
    for row in rows:
        assert row.propensity in (pytest.approx(0.5 / 3), pytest.approx(0.5 / 3 + 0.5))


def test_shares_of_first_positions_agree_with_their_propensities() -> None:
    one = shop(uniform_share=0.6, mode="frozen")
    counts = dict.fromkeys(ITEMS, 0)
    exported_fields: dict[str, float] = {}
    for n in range(3000):
        decision = one.decide("alice", k=2, decision_id=f"d{n}")
        one.reward(decision.id, 0.0)
        counts[decision.chosen] += 1
    for row in exported(one):
        assert row.propensity is not None
        exported_fields[row.item or ""] = row.propensity
    assert sum(exported_fields.values()) == pytest.approx(1.0)
    for item, count in counts.items():
        assert count / 3000 == pytest.approx(exported_fields[item], abs=0.04)


def test_in_shadow_mode_the_arm_is_what_the_product_showed() -> None:
    one = shop(mode="shadow")
    chosen = one.decide("alice", ["tea", "coffee"]).chosen
    other = "coffee" if chosen == "tea" else "tea"
    by_name, by_vector, same, elsewhere = (one.decide("alice", ["tea", "coffee"]).id for _ in range(4))
    one.reward(by_name, 1.0, item=other)
    one.reward(by_vector, 0.5, x=ITEMS[other])
    one.reward(same, 0.25, item=chosen)
    one.reward(elsewhere, 0.75, x=[0.3, 0.1])
    rows = exported(one)
    assert [(row.item, row.propensity, row.reward) for row in rows] == [
        (other, None, 1.0),
        (other, None, 0.5),
        (chosen, None, 0.25),
    ]


def test_what_goes_out_is_what_evaluate_reads(tmp_path: Path) -> None:
    one = shop(uniform_share=0.5)
    for n in range(40):
        one.reward(one.decide(f"u{n % 3}").id, float(n % 2))
    log = read_back(one, tmp_path)
    assert (len(log), log.n_users, log.dim) == (40, 3, 2)
    assert log.propensities.tolist() == [row.propensity for row in exported(one)]


def lines_of(*lines: dict[str, Any]) -> bytes:
    """Lines of JSON."""
    return b"\n".join(json.dumps(line).encode() for line in lines)


GOOD = {"user": "zoe", "x": [1.0, 0.0], "reward": 1.0}


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"user": ""}, "line 2: user must have 1 to 256 characters, got 0"),
        ({"user": 7}, "line 2: user: expected str, got int"),
        ({"x": [1.0]}, r"line 2: x must have shape \(2,\), got \(1,\)"),
        ({"x": [1.0, float("inf")]}, "line 2 must be JSON"),
        ({"x": ["1", "0"]}, r"line 2: x\[0\]: expected float, got str"),
        ({"x": [True, False]}, r"line 2: x\[0\]: expected float, got bool"),
        ({"x": None, "arms": [[1.0, 0.0]], "arm": -1}, "line 2: arm: expected int >= 0"),
        ({"x": None, "arms": [[1.0, 0.0]], "arm": 1}, "line 2: arm must be below 1, got 1"),
        ({"x": None, "arms": [[1.0, 0.0]], "arm": True}, "line 2: arm: expected int"),
        ({"arms": [[1.0, 0.0]], "arm": 0}, "line 2 needs x, or arms and arm"),
        ({"x": [1e9, 0.0]}, "line 2: x must be shorter than"),
        ({"reward": float("nan")}, "line 2 must be JSON"),
        ({"reward": "0.5"}, "line 2: reward: expected float, got str"),
        ({"reward": True}, "line 2: reward: expected float, got bool"),
        ({"reward": 10**400}, "line 2: reward: number out of range"),
        ({"x": None}, "line 2 needs x, or arms and arm"),
        (
            {"decision_id": "known", "reward": 0.5},
            "line 2: 'import:known' was settled with reward 1, got 0.5",
        ),
    ],
)
def test_a_wrong_line_refuses_all(wrong: dict[str, Any], sentence: str) -> None:
    one = shop()
    import_log(live_of(one), lines_of({**GOOD, "decision_id": "known"}))
    before = engine_of(one).journal.last, one.users, one.policy.rounds
    with pytest.raises(CoterieError, match=sentence):
        import_log(live_of(one), lines_of(GOOD, {**GOOD, **wrong}))
    assert (engine_of(one).journal.last, one.users, one.policy.rounds) == before


@pytest.mark.parametrize("other", [{"reward": 0.0}, {"user": "yan"}, {"x": [0.0, 1.0]}])
def test_lines_that_contradict_each_other_refuse_all(other: dict[str, Any]) -> None:
    one, exported_fields = shop(), {**GOOD, "decision_id": "twice"}
    with pytest.raises(Conflict, match="line 3: an earlier line has this decision_id"):
        import_log(live_of(one), lines_of(exported_fields, exported_fields, {**exported_fields, **other}))
    assert one.policy.rounds == 0
    assert import_log(live_of(one), lines_of(exported_fields, exported_fields)) == (1, 1)


def test_long_ids_that_begin_alike_are_two_lines() -> None:
    one = shop()
    lines = lines_of(*({**GOOD, "decision_id": "a" * 255 + end} for end in "bc"))
    assert import_log(live_of(one), lines) == (2, 0)
    assert import_log(live_of(one), lines) == (0, 2)


def test_a_line_that_is_nested_deeply_is_refused() -> None:
    for line in (
        b"[" * 100_000,
        b'{"user": "a", "reward": 1, "x": ' + b"[" * 100_000,
        b'{"a": ' + b"[" * 100_000,
    ):
        with pytest.raises(CoterieError, match="line 1"):
            import_log(live_of(shop()), line)


def test_a_decision_is_exported_with_the_vectors_that_it_was_made_with(tmp_path: Path) -> None:
    one = shop()
    before = one.decide("alice", ["tea", "coffee"]).id
    one.put_items({"tea": [0.5, 0.5]})
    between = one.decide("alice", ["tea", "coffee"]).id
    one.remove_items(["tea"])
    one.put_items({"tea": [0.0, 0.2]})
    after = one.decide("alice", ["tea"]).id
    for key in (after, before, between):
        one.reward(key, 1.0)
    log = read_back(one, tmp_path)
    assert [log.arms(event).tolist() for event in range(3)] == [
        [[1.0, 0.0], [0.0, 1.0]],
        [[0.5, 0.5], [0.0, 1.0]],
        [[0.0, 0.2]],
    ]
    numbers = [log.ids(event) for event in range(3)]
    assert [None if one is None else [log.item_ids[k] for k in one] for one in numbers] == [
        ["tea", "coffee"],
        ["tea", "coffee"],
        ["tea"],
    ]
