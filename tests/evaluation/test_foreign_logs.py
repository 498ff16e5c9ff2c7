"""Logs of Vowpal Wabbit, Azure Personalizer and the Open Bandit Pipeline are read as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import coterie
from coterie.errors import ArgumentError, DataError
from coterie.evaluation import Log, evaluate, log_from_obp, read_dsjson, read_log
from coterie.feature_hashing import action_vectors, hash_features


def vw_event(**fields: Any) -> dict[str, Any]:
    """An event as Vowpal Wabbit's own tests have it: people of a university, and topics."""
    return {
        "_label_cost": -1.0,
        "_label_probability": 0.8,
        "_label_Action": 2,
        "_labelIndex": 1,
        "o": [{"v": 1.0, "EventId": "38cbf24f", "ActionTaken": False}],
        "Timestamp": "2020-11-15T17:09:31.8350000Z",
        "Version": "1",
        "EventId": "38cbf24f",
        "a": [2, 1],
        "c": {
            "GUser": {"id": "person5", "major": "engineering"},
            "_multi": [{"TAction": {"topic": "SkiConditions-VT"}}, {"TAction": {"topic": "HerbGarden"}}],
        },
        "p": [0.8, 0.2],
        "VWState": {"m": "N/A"},
        **fields,
    }


def personalizer_event(user: str, chosen: int, reward: float, second: int) -> dict[str, Any]:
    """An event of Personalizer's own log: around the features of a request it has put namespaces."""
    drinks = ["Cappucino", "Cold brew", "Iced mocha"]
    return vw_event(
        _label_cost=-reward,
        _label_probability=0.5,
        _label_Action=chosen + 1,
        Timestamp=f"2021-02-04T16:31:{second:02d}.2460000Z",
        c={
            "FromUrl": [{"timeofday": "Afternoon", "user": {"id": user, "age": "20-30"}}],
            "_multi": [
                {"_tag": one, "i": {"constant": 1, "id": one}, "j": [{"hot": one == "Cappucino"}]}
                for one in drinks
            ],
        },
    )


def written(path: Path, *lines: dict[str, Any] | str) -> Path:
    path.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in lines))
    return path


def test_an_event_of_vowpal_wabbit_is_a_decision_with_its_propensity_and_reward(tmp_path: Path) -> None:
    log = read_log(written(tmp_path / "a.dsjson", vw_event()), columns={"user": "GUser.id"})
    assert log.user_ids == ("person5",)
    assert log.sizes.tolist() == [2]
    assert (log.chosen[0], log.propensities[0], log.rewards[0]) == (1, 0.8, 1.0)
    assert log.times[0] == pytest.approx(1605460171.835)
    context = hash_features({"GUser": {"id": "person5", "major": "engineering"}})
    topics = [hash_features({"TAction": {"topic": one}}) for one in ("SkiConditions-VT", "HerbGarden")]
    assert np.array_equal(log.arms(0), action_vectors(context, topics, 64))
    assert log.item_ids == ()


def test_a_log_of_personalizer_has_the_vectors_that_the_service_gives_its_calls(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.dsjson", personalizer_event("bob", 0, 0.0, 20), personalizer_event("ann", 2, 1.0, 10)
    )
    log = read_dsjson(path, dim=16)
    assert [log.user_ids[one] for one in log.users] == ["ann", "bob"]  # by time
    assert log.item_ids == ("Cappucino", "Cold brew", "Iced mocha")
    assert log.rewards.tolist() == [1.0, 0.0]
    context = hash_features({"timeofday": "Afternoon"}, {"user": {"age": "20-30"}})
    mocha = hash_features({"id": "Iced mocha"}, {"hot": False})
    assert np.allclose(log.x(0), action_vectors(context, [mocha], 16)[0])
    assert len(log.items) == 3  # the same action in the same context is kept once


def test_lines_without_a_decision_or_that_were_never_shown_are_left_out(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.dsjson",
        '{"RewardValue": 1.0, "EventId": "dangling"}',
        "",
        vw_event(_skipLearn=True),
        vw_event(Timestamp=None),
    )
    log = read_log(path)
    assert (len(log), log.user_ids, log.times.tolist()) == (1, ("everyone",), [4.0])


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{", "line 1 is no event of dsjson"),
        ("[1]", "line 1 is no event of dsjson"),
        (vw_event(_label_Action=3), "_label_Action must be from 1 to 2, got 3"),
        (vw_event(_label_probability=None), "line 1 is no event of dsjson"),
        (vw_event(c={}), "line 1 is no event of dsjson: no '_multi'"),
        (vw_event(Timestamp="yesterday"), "line 1 is no event of dsjson"),
        (vw_event(_outcomes=[]), "it has several slots"),
        (vw_event(_label_probability=0.0), "propensity must be above 0"),
        ('{"EventId": "1"}', "the log has no events with a decision"),
    ],
)
def test_what_is_no_event_is_told_in_a_sentence(tmp_path: Path, line: Any, sentence: str) -> None:
    with pytest.raises(DataError, match=f"^a.dsjson: .*{sentence}"):
        read_log(written(tmp_path / "a.dsjson", line))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"uniform": True}, "uniform has no effect"),
        ({"items": np.eye(2)}, "items has no effect"),
        ({"n_arms": 3}, "n_arms has no effect"),
        ({"columns": {"reward": "click"}}, "the column 'reward' has no effect"),
    ],
)
def test_options_without_effect_are_refused(tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ArgumentError, match=sentence):
        read_log(written(tmp_path / "a.dsjson", vw_event()), **options)
    with pytest.raises(DataError, match="names the user"):
        read_log(written(tmp_path / "a.dsjson", vw_event()), columns={"user": "GUser.name"})


def choices(seed: int, rounds: int = 600) -> tuple[list[str], list[int], list[float]]:
    """Two kinds of users, who click on one of three items each; items are drawn uniformly."""
    rng = np.random.default_rng(seed)
    users = rng.integers(10, size=rounds)
    played = rng.integers(3, size=rounds)
    return [f"u{one}" for one in users], played.tolist(), (played == users % 2).astype(float).tolist()


def make(log: Log, seed: int) -> coterie.LinUCBInd:
    return coterie.LinUCBInd(log.n_users, log.dim, beta=0.1)


def best_of(log: Log) -> float:
    return evaluate(log, {"LinUCBInd": make}, estimators=["snips"]).estimates[0].reward


def test_a_policy_that_learns_from_a_dsjson_log_does_better_than_who_wrote_it(tmp_path: Path) -> None:
    events = [
        {**personalizer_event(user, arm, reward, 0), "_label_probability": 1 / 3, "Timestamp": None}
        for user, arm, reward in zip(*choices(1), strict=True)
    ]
    log = read_log(written(tmp_path / "a.dsjson", *events))
    assert best_of(log) > 0.7 > 0.4 > log.rewards.mean()


def open_bandit(folder: Path) -> tuple[Path, Path]:
    """Files with the columns of the Open Bandit Dataset."""
    users, played, clicks = choices(2)
    rows = {
        "": range(600),
        "timestamp": [f"2019-11-24 00:{n // 60:02d}:{n % 60:02d}.442536+00:00" for n in range(600)],
        "item_id": played,
        "position": [1 + n % 3 for n in range(600)],
        "click": [int(one) for one in clicks],
        "propensity_score": [1 / 3] * 600,
        "user_feature_0": [f"cef3{one}" for one in users],
        "user_feature_1": ["03a5"] * 600,
        "user-item_affinity_0": [0.0] * 600,
    }
    pl.DataFrame(rows).write_csv(folder / "men.csv")
    items = {
        "": [0, 1, 2],
        "item_id": [0, 1, 2],
        "item_feature_0": [-0.67, -0.72, 0.1],
        "item_feature_1": ["ceca", "270d", "ceca"],
    }
    pl.DataFrame(items).write_csv(folder / "item_context.csv")
    return folder / "men.csv", folder / "item_context.csv"


def test_files_of_the_open_bandit_dataset_are_a_log(tmp_path: Path) -> None:
    events, items = open_bandit(tmp_path)
    for log, dim in ((read_log(events), 3), (read_log(events, items=items), 64)):
        assert (len(log), log.n_users, log.dim, log.sizes.tolist()) == (600, 10, dim, [3] * 600)
        assert log.propensities.tolist() == [1 / 3] * 600
        assert sorted(map(str, log.item_ids)) == ["0", "1", "2"]
        assert np.diff(log.times).tolist() == [1.0] * 599
        assert [log.item_ids[log.item_of[log.offers[log.starts[t] + log.chosen[t]]]] for t in range(5)] == [
            str(one) for one in choices(2)[1][:5]
        ]
        assert best_of(log) > 0.7
    wrong: list[dict[str, Any]] = [{"uniform": True}, {"n_arms": 2}, {"items": np.eye(3)}, {"items": events}]
    for options in wrong:
        with pytest.raises(ArgumentError):
            read_log(events, **options)


def test_feedback_of_obp_is_a_log() -> None:
    users, played, clicks = choices(3)
    kinds = sorted(set(users))
    feedback = {
        "n_rounds": 600,
        "n_actions": 3,
        "action": np.array(played),
        "position": None,
        "reward": np.array(clicks),
        "pscore": np.full(600, 1 / 3),
        "context": np.eye(10)[[kinds.index(one) for one in users]],
        "action_context": np.eye(3),
    }
    log = log_from_obp(feedback)
    assert (log.n_users, log.dim, log.chosen.tolist()) == (10, 3, played)
    assert best_of(log) > 0.7
    assert log_from_obp(feedback, users=users).user_ids == tuple(kinds)
    assert log_from_obp({**feedback, "action_context": None}).dim == 3
    cases: list[tuple[dict[str, Any], str]] = [
        ({"pscore": None}, "must have 'pscore'"),
        ({"context": None}, "no 'context' that tells users apart: give users"),
        ({"context": np.random.default_rng(0).normal(size=(600, 2))}, "600 different rows in 600 rounds"),
        ({"action": np.array([3] * 600)}, "arm must be from 0 to 2, got 3"),
    ]
    for wrong, sentence in cases:
        with pytest.raises(coterie.CoterieError, match=sentence):
            log_from_obp({**feedback, **wrong})
    with pytest.raises(ArgumentError, match="one for each of the 600 rounds, got 1"):
        log_from_obp(feedback, users=["ann"])
