"""Items have names: their numbers, what a decision is among, and what the log keeps of it."""

from __future__ import annotations

import socket
import sqlite3
import threading
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from coterie import Client, Recommender
from coterie.errors import ArgumentError
from coterie.service.core.imports import import_log
from coterie.service.core.known_items import packed, unpacked
from coterie.service.storage.export import export_rows, item_rows, json_lines
from inspection import (
    abandon,
    engine_of,
    known_items,
    let_searches_take_a_thread,
    live_of,
    pass_time,
    store_of,
    wait_in_searches,
)
from service.serving import served
from service.shops import same_state, shop

OLD_STORE = Path(__file__).with_name("store_format_4.sql")
FOUR = {"tea": [1.0, 0.0], "coffee": [0.0, 1.0], "cocoa": [0.6, 0.6], "mate": [0.3, 0.4]}
TAGS = {"tea": ["leaf", "hot"], "coffee": ["hot"], "mate": ["leaf"]}


def visited(where: Path | None = None, **options: Any) -> Recommender:
    """Decisions among all kinds of offers, rewards of all kinds, and changes of the catalogue."""
    one = shop(store=where, items=None, dim=2, policy="AutoCLUB", seed=1, **options)
    one.put_items(FOUR, tags=TAGS)
    for n in range(60):
        user, key = f"user-{n % 5}", f"d{n}"
        if n % 5 == 0:
            one.decide(user, decision_id=key)
        elif n % 5 == 1:
            one.decide(user, exclude=["tea", "mate"], decision_id=key)
        elif n % 5 == 2:
            one.decide(user, only="leaf" if "tea" in one.items else "hot", decision_id=key)
        elif n % 5 == 3:
            one.decide(user, arms={f"own-{n}": [0.1, n / 60], "tea-2": [0.5, 0.5]}, decision_id=key)
        else:
            one.decide(user, arms=[[0.2, n / 60], [0.5, 0.1]], decision_id=key)
        one.reward(key, float(n % 3 == 0))
        one.feedback(user, 0.5, item="elsewhere", x=[0.2, n / 60])
        if n == 30:
            one.put_items({"tea": [0.9, 0.1], "milk": [0.1, 0.1]})
            one.remove_items(["tea", "cocoa"])
        if n == 40:
            one.put_items({"tea": [0.8, 0.2]}, tags={"tea": ["leaf"]})
    return one


def test_replay_and_snapshots_give_the_same_numbers_and_the_same_state(tmp_path: Path) -> None:
    alone = visited()
    abandon(visited(tmp_path / "a.db"))
    for _ in range(2):  # from the log, then from a snapshot
        with Recommender(store=tmp_path / "a.db") as again:
            assert same_state(again, alone)
            assert known_items(again) == known_items(alone)
    with Recommender(store=tmp_path / "a.db") as again:
        for request in ({}, {"only": ["leaf"]}, {"exclude": ["tea"], "k": 2}):
            ours, theirs = again.decide("user-1", **request), alone.decide("user-1", **request)
            assert ours[1:-1] == theirs[1:-1]


def test_items_are_numbered_as_they_first_appear_and_keep_their_numbers() -> None:
    one = visited()
    names = known_items(one)
    assert names[:4] == tuple(FOUR)
    assert len(set(names)) == len(names)
    assert {"tea-2", "elsewhere", "milk"} <= set(names)
    assert not any(name.isdecimal() for name in names)  # rows of a matrix are no items
    one.put_items({"tea": [0.1, 0.1]})
    one.remove_items(["coffee"])
    one.put_items({"coffee": [0.5, 0.1]})
    assert known_items(one) == names


def test_the_effect_of_an_item_is_learnt_by_its_name() -> None:
    """Two items share a vector, and one of them is liked: only a name can tell them apart."""
    one = Recommender(2, seed=1, items={"good": [0.6, 0.2], "bad": [0.6, 0.2]})
    rng = np.random.default_rng(0)
    for n in range(1_500):
        item = ("good", "bad")[n // 20 % 2]
        one.feedback(f"user-{n % 20}", float(rng.random() < (0.9 if item == "good" else 0.1)), item=item)
    scores = {score.id: score.mean for score in one.explain("user-1").scores}
    assert scores["good"] > scores["bad"] + 0.3
    assert one.decide("user-1").chosen == "good"
    one.put_items({"good": [0.5, 0.3]})  # another vector is the same item
    assert {score.id: score.mean for score in one.explain("user-1").scores}["good"] > scores["bad"] + 0.3
    one.remove_items(["good"])
    one.put_items({"good": [0.6, 0.2]})
    assert one.decide("user-1", exclude=["bad"]).scores[0].mean == pytest.approx(scores["good"])


def test_effects_of_rows_without_names_are_learnt_by_vector() -> None:
    one, other = (Recommender(2, seed=1) for _ in range(2))
    for n in range(400):
        for shop_, offered in ((one, [[0.6, 0.2], [0.1, 0.5]]), (other, [[0.1, 0.5], [0.6, 0.2]])):
            decision = shop_.decide(f"user-{n % 5}", arms=offered)
            x = offered[int(decision.chosen)]
            shop_.reward(decision.id, float(x == [0.6, 0.2]))
    for shop_ in (one, other):
        assert shop_.policy.scores(0, [[0.6, 0.2]]).mean > shop_.policy.scores(0, [[0.1, 0.5]]).mean + 0.2


def test_decisions_are_among_what_was_asked_for() -> None:
    one = shop(items=None, dim=2, uniform_share=1.0)
    one.put_items(FOUR, tags=TAGS)
    for n in range(60):
        assert one.decide("a", exclude=["tea"]).chosen != "tea"
        assert one.decide("a", only="leaf").chosen in ("tea", "mate")
        decision = one.decide("a", only=["leaf", "hot"], exclude=["tea"], k=2, decision_id=f"d{n}")
        assert set(decision.ranking) == {"coffee", "mate"}
        assert decision.propensity == pytest.approx(0.5)
    assert one.decide("a", exclude=["tea", "cocoa"]).propensity == 0.5
    one.put_items({"tea": [1.0, 0.1]})  # keeps its tags
    assert one.decide("a", only="leaf", k=2).chosen in ("tea", "mate")
    one.put_items({"tea": [1.0, 0.1]}, tags={"tea": []})
    assert one.decide("a", only="leaf").chosen == "mate"
    one.remove_items(["cocoa"])
    assert one.decide("a", exclude=["cocoa"], k=3).chosen in FOUR  # seen, and removed since


def test_an_item_that_is_removed_twice_at_once_is_refused_before_anything_changes() -> None:
    one = shop(items=FOUR)
    with pytest.raises(ArgumentError, match="each item once"):
        one.remove_items(["tea", "tea"])
    assert "tea" in one.items
    assert not engine_of(one).out_of_service()


def test_a_decision_is_the_best_of_a_large_catalogue_and_small_in_the_log(tmp_path: Path) -> None:
    rng, n, dim = np.random.default_rng(0), 5_000, 64
    vectors = rng.normal(size=(n, dim)) / 8
    one = Recommender(
        dim, "LinUCBInd", store=tmp_path / "a.db", items={str(row): x for row, x in enumerate(vectors)}
    )
    for step in range(30):
        one.reward(one.decide("ann").id, float(step % 2))
    seen = [str(item) for item in rng.choice(n, 200, replace=False)]
    best = np.argsort(-one.policy.scores(0, vectors).ucb)
    expected = [str(item) for item in best if str(item) not in seen]
    decision = one.decide("ann", k=10, exclude=seen)
    assert list(decision.ranking) == expected[:10]
    one.reward(decision.id, 1.0, item=decision.ranking[0])
    single = one.decide("ann", exclude=seen[:100])
    one.reward(single.id, 1.0)
    inline = one.decide("ann", arms=rng.normal(size=(1_000, dim)) / 8)
    one.reward(inline.id, 1.0)
    engine_of(one).journal.flush()
    for key in (single.id, inline.id):
        (event, *_) = store_of(one).find("default", key)
        assert len(event.x or b"") + len(event.detail or "") < 1_500
    rows = {row.decision_id: row for row in export_rows(store_of(one), "default", dim)}
    sizes = [len(b"".join(json_lines([rows[key]]))) for key in (single.id, inline.id)]
    assert max(sizes) < 2_500
    named = one.decide("ann", [str(item) for item in range(0, n, 5)])
    one.reward(named.id, 1.0)
    engine_of(one).journal.flush()
    (event, *_) = store_of(one).find("default", named.id)
    assert len(event.x or b"") + len(event.detail or "") < 2_000
    one.close()


def test_the_items_table_has_all_versions_of_the_catalogue() -> None:
    one = shop(items=None, dim=2)
    one.put_items({"tea": [1.0, 0.0], "coffee": [0.0, 1.0]}, tags={"tea": ["leaf"]})
    one.put_items({"tea": [0.5, 0.5], "coffee": [0.0, 1.0]})  # coffee is as it was
    one.remove_items(["tea"])
    one.put_items({"tea": [0.5, 0.5]})
    one.put_items({"mate": [0.1, 0.1]}, replace_all=True)
    engine_of(one).journal.flush()
    rows = item_rows(store_of(one), "default", 2)
    assert [(row.id, row.since, row.until, row.x.tolist(), row.tags) for row in rows] == [
        ("tea", 1, 2, [1.0, 0.0], ["leaf"]),
        ("tea", 2, 3, [0.5, 0.5], ["leaf"]),
        ("tea", 4, 5, [0.5, 0.5], []),
        ("coffee", 1, 5, [0.0, 1.0], []),
        ("mate", 5, None, [0.1, 0.1], []),
    ]


@pytest.mark.parametrize("log_offers", ["chosen", "all"])
def test_what_was_offered_is_read_back_from_the_two_tables(log_offers: str, tmp_path: Path) -> None:
    import coterie

    one = visited(uniform_share=0.5, log_offers=log_offers)
    engine_of(one).journal.flush()
    for name, rows in (
        ("log.jsonl", export_rows(store_of(one), "default", 2)),
        ("items.jsonl", item_rows(store_of(one), "default", 2)),
    ):
        (tmp_path / name).write_bytes(b"".join(json_lines(rows)))
    log = coterie.evaluation.read_log(tmp_path / "log.jsonl", items=tmp_path / "items.jsonl")
    assert len(log) == (36 if log_offers == "chosen" else 60)
    sizes = {"all": {4, 3}, "exclude": {2}, "only": {2, 1}}
    assert set(log.sizes.tolist()) <= set().union(*sizes.values()) | {2}
    assert log.sizes[:3].tolist() == [4, 2, 2]
    # Half of the decisions are uniform: the others have a probability above that share.
    assert np.all(log.propensities >= 0.5 / log.sizes)
    found = coterie.evaluation.evaluate(
        log, {"LinUCBOne": lambda log, seed: coterie.LinUCBOne(log.n_users, log.dim, beta=0.3, seed=seed)}
    )
    assert found["LinUCBOne", "ips"].reward == pytest.approx(found["LinUCBOne", "snips"].reward, abs=0.5)


def test_an_export_that_is_imported_teaches_the_same() -> None:
    """Also effects of items: lines name what was shown."""
    one, other = (Recommender(2, seed=1, items={"good": [0.6, 0.2], "bad": [0.6, 0.2]}) for _ in range(2))
    rng = np.random.default_rng(0)
    for n in range(300):
        decision = one.decide(f"user-{n % 5}", decision_id=f"d{n}")
        one.reward(decision.id, float(rng.random() < (0.9 if decision.chosen == "good" else 0.1)))
    engine_of(one).journal.flush()
    lines = b"".join(json_lines(export_rows(store_of(one), "default", 2)))
    assert import_log(live_of(other), lines) == (300, 0)
    ours, theirs = one.policy.learner.arrays(), other.policy.learner.arrays()
    assert all(np.array_equal(ours[name], theirs[name], equal_nan=True) for name in ours)


def test_removing_a_user_keeps_what_the_log_says_of_items() -> None:
    """Numbers change when the first user of an item is removed: the log must not depend on them."""
    one = shop(items=None, dim=2, uniform_share=0.5)
    one.reward(one.decide("gone", arms={"own": [0.1, 0.2], "other": [0.1, 0.3]}).id, 1.0)
    one.put_items(FOUR)
    one.reward(one.decide("ann", exclude=["coffee", "mate"], decision_id="d").id, 1.0)
    before = known_items(one)
    one.remove_user("gone")
    assert known_items(one) != before
    engine_of(one).journal.flush()
    (row,) = export_rows(store_of(one), "default", 2)
    assert row.exclude == ["coffee", "mate"]
    assert one.decide("ann", exclude=["coffee", "mate"], decision_id="d").chosen in ("tea", "cocoa")


@pytest.mark.parametrize("late", ["accept", "correct", "ignore"])
def test_a_late_reward_is_of_the_item_that_was_shown(late: Any, tmp_path: Path) -> None:
    def played(where: Path | None) -> Recommender:
        one = shop(store=where, policy="AutoCLUB", reward_wait=10.0, late=late)
        for n in range(30):
            one.reward(one.decide(f"user-{n % 3}").id, float(n % 2))
        keys = [one.decide("ann", **request).id for request in ({}, {"k": 2}, {"arms": {"own": [0.1, 0.2]}})]
        pass_time(one, 11.0)
        one.expire()
        for key in keys:
            one.reward(key, 0.0)
        return one

    alone = played(None)
    abandon(played(tmp_path / "a.db"))
    with Recommender(store=tmp_path / "a.db") as again:
        assert same_state(again, alone)


@pytest.fixture
def old_store(tmp_path: Path) -> Path:
    """A store of format 4, as a former version of this package wrote it."""
    with sqlite3.connect(tmp_path / "old.db") as connection:
        connection.executescript(OLD_STORE.read_text())
    connection.close()
    return tmp_path / "old.db"


def test_a_store_of_the_former_format_is_replayed(old_store: Path) -> None:
    with Recommender(store=old_store, name="ridge") as one:
        assert one.users == ("ann", "bob", "cid", "dan")
        assert one.items == ("tea", "coffee")
        assert known_items(one) == ("tea", "coffee", "cocoa")
        assert one.policy.rounds == 5
        assert one.policy.estimates.tolist() == [[0.5, 0.0], [0.25, 0.0], [0.5, 0.0], [0.0, 0.5]]
        rows = list(export_rows(store_of(one), "ridge", 2))
        assert [row.decision_id for row in rows] == ["all", "named", "inline", "list"]
        assert [row.catalogue for row in rows] == [1, 1, None, 1]
        assert rows[1].items == ["tea", "cocoa"]
        assert one.reward("waiting", 1.0).status == "counted"
        assert one.decide("ann").chosen in one.items
    with Recommender(store=old_store, name="ridge") as one:  # now of the present format, from a snapshot
        assert one.policy.rounds == 6
        assert known_items(one) == ("tea", "coffee", "cocoa")


def test_other_requests_are_answered_while_a_large_catalogue_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decision ends only after the process has said that it lives, which the event loop answers."""
    let_searches_take_a_thread(monkeypatch)
    begun, go_on = threading.Event(), threading.Event()
    body = b'{"user": "ann"}'
    lines = (b"POST /v1/policies/default/decisions HTTP/1.1", b"Host: localhost")
    kind = (b"Content-Type: application/json", b"Content-Length: %d" % len(body))
    with served(str(tmp_path / "a.db"), dim=2) as service, Client(service.url) as client:
        client.put_items(FOUR)
        wait_in_searches(monkeypatch, begun, go_on)
        port = int(service.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(b"\r\n".join([*lines, *kind, b"", body]))  # at once, for the fast path
            try:
                assert begun.wait(60)
                live = httpx.get(f"{service.url}/health/live", trust_env=False, timeout=20)
                assert live.status_code == 200
            finally:
                go_on.set()
            assert connection.recv(15) == b"HTTP/1.1 200 OK"


@pytest.mark.parametrize("count", [0, 1, 25, 256, 257, 5_000])
def test_places_are_read_back_as_they_were_packed(count: int) -> None:
    rng = np.random.default_rng(count)
    for most in (5_000, 2**31):
        numbers = rng.choice(most, count, replace=False) if most == 5_000 else rng.integers(most, size=count)
        assert unpacked(packed(numbers)).tolist() == sorted(set(numbers.tolist()))
    assert len(packed(np.arange(100, 125))) < 40
