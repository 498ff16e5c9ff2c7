from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coterie
from coterie.evaluation import Log
from evaluation.worlds import logged, world


def made(**changes: Any) -> Log:
    fields: dict[str, Any] = {
        "user_ids": ["a", "b"],
        "users": [1, 0, 1],
        "items": np.eye(3),
        "offers": [0, 1, 2, 0, 1, 2],
        "starts": [0, 2, 3, 6],
        "chosen": [1, 0, 2],
        "propensities": [0.5, 1.0, 0.3],
        "rewards": [1.0, 0.0, 2.0],
        "times": [3.0, 1.0, 2.0],
    }
    return Log(**{**fields, **changes})


def test_events_are_put_in_order_of_time_and_users_numbered_as_they_appear() -> None:
    log = made().ordered()
    assert log.times.tolist() == [1, 2, 3]
    assert (log.user_ids, log.users.tolist()) == (("a", "b"), [0, 1, 1])
    assert [log.arms(t).argmax(axis=1).tolist() for t in range(3)] == [[2], [0, 1, 2], [0, 1]]
    assert [log.x(t).argmax() for t in range(3)] == [2, 2, 1]


def test_events_of_one_time_stay_in_order() -> None:
    assert made(times=[1, 1, 1]).ordered().rewards.tolist() == [1, 0, 2]


def test_arrays_are_copies_that_cannot_be_written() -> None:
    rewards = np.array([1.0, 0.0, 2.0])
    log = made(rewards=rewards)
    rewards[0] = 9
    assert log.rewards[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        log.rewards[0] = 9
    log.arms(0)[0, 0] = 9
    assert log.items[0, 0] == 1


def test_an_intercept_is_a_feature_of_one() -> None:
    log = made()
    more = log.with_intercept()
    assert more.dim == 4
    assert np.array_equal(more.arms(0), np.column_stack([log.arms(0), [1, 1]]))
    assert more.has_intercept
    assert not log.has_intercept
    assert not made(items=np.zeros((3, 2))).has_intercept


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"propensities": [0.5, 0.0, 1]},
            r"event 1 \(from 0\): propensity must be above 0 and at most 1, got 0",
        ),
        ({"propensities": [0.5, 1, 1.5]}, r"event 2 \(from 0\): propensity must be above 0 and at most 1"),
        ({"propensities": [np.nan, 1, 1]}, r"event 0 \(from 0\): propensity must be above 0 .* got nan"),
        ({"rewards": [1, np.nan, 0]}, r"event 1 \(from 0\): reward must be a finite number, got nan"),
        ({"rewards": [1, 0, np.inf]}, r"event 2 \(from 0\): reward must be a finite number, got inf"),
        ({"times": [1, 2, np.nan]}, r"event 2 \(from 0\): time must be a finite number"),
        ({"chosen": [2, 0, 0]}, r"event 0 \(from 0\): arm must be from 0 to 1, got 2"),
        ({"chosen": [0, -1, 0]}, r"event 1 \(from 0\): arm must be from 0 to 0, got -1"),
        ({"starts": [0, 2, 2, 6]}, r"event 1 \(from 0\): arms must hold at least one arm, got none"),
        ({"items": np.diag([1, np.nan, 1])}, r"event 0 \(from 0\): arms must hold finite numbers only"),
        ({"items": np.ones(3)}, r"items must have shape \(N, dim\)"),
        ({"users": [0, 1, 2]}, "users must be from 0 to 1"),
        ({"offers": [0, 1, 2, 0, 1, 3]}, "offers must be from 0 to 2"),
        ({"starts": [0, 2, 3, 5]}, "starts must ascend from 0"),
        ({"rewards": [1, 0]}, "must have a value for each of its 3 events"),
        ({"users": []}, "the log has no events"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises((coterie.DataError, coterie.ArgumentError), match=sentence):
        made(**changes)


def test_an_item_that_nobody_was_offered_may_lack_a_vector() -> None:
    items = np.vstack([np.eye(3), np.full(3, np.nan)])
    assert len(made(items=items)) == 3


def test_a_log_shows_its_size() -> None:
    assert repr(made()) == "<Log: 3 events of 2 users, 1 to 3 arms of dim 3 a round, propensities 0.3 to 1>"
    assert "10 arms" in repr(logged(world(arms=10), 20, 0.5))
