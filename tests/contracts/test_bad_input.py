"""Bad input gets one sentence, and the policy is as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.examples import ALL, changed, is_one_sentence, make, memory, play
from coterie import ArgumentError, LinearBandit

X = np.ones(3)
ARMS = np.eye(3)
NAN, INF = np.nan, np.inf
LONG = 1.001e6
"""‖x‖² is above 1e12 times the ridge: rounding would destroy the inverse."""

USERS: dict[str, Any] = {
    "negative": -1,
    "one too many": 6,
    "far beyond": 10**30,
    "float": 1.0,
    "bool": True,
    "numpy bool": np.bool_(True),
    "string": "0",
    "none": None,
    "list": [0],
    "matrix": np.zeros((2, 2)),
}
BAD_ARMS: dict[str, Any] = {
    "empty": np.empty((0, 3)),
    "empty list": [],
    "a vector": X,
    "too wide": np.ones((2, 4)),
    "too narrow": np.ones((2, 2)),
    "three axes": np.ones((2, 2, 3)),
    "number": 1.0,
    "nan": np.array([[1.0, NAN, 1.0]]),
    "inf": np.array([X, [1.0, 1.0, INF]]),
    "minus inf": np.array([[-INF, 1.0, 1.0]]),
    "huge": np.full((2, 3), 1e120),
    "huger": np.full((2, 3), 1e200),
    "complex": np.ones((2, 3), complex),
    "bool": np.ones((2, 3), bool),
    "strings": [["a", "b", "c"]],
    "objects": np.array([[1, 2, None]], object),
    "ragged": [[1.0, 2.0, 3.0], [1.0]],
    "none": None,
    "masked": np.ma.masked_invalid([[1.0, NAN, 1.0]]),
    "masked, nothing hidden": np.ma.MaskedArray(ARMS),
    "too long for an inverse": LONG * ARMS,
    "one too long for an inverse": np.array([X, [0.0, LONG, 0.0]]),
}
BAD_X: dict[str, Any] = {
    "too long": np.ones(4),
    "too short": np.ones(2),
    "a matrix": np.ones((1, 3)),
    "a number": 1.0,
    "empty": [],
    "nan": [1.0, NAN, 0.0],
    "inf": [1.0, INF, 0.0],
    "huge": [1e120, 0.0, 0.0],
    "complex": np.ones(3, complex),
    "strings": ["a", "b", "c"],
    "ragged": [[1.0], [1.0, 2.0], 3.0],
    "masked": np.ma.masked_invalid([1.0, NAN, 1.0]),
    "masked, nothing hidden": np.ma.MaskedArray(X),
    "too long for an inverse": [LONG, 0.0, 0.0],
    "too long in sum": [0.6 * LONG] * 3,
}
REWARDS: dict[str, Any] = {
    "nan": NAN,
    "inf": INF,
    "minus inf": -INF,
    "huge": 1e120,
    "a whole number without end": 10**400,
    "string": "1",
    "none": None,
    "complex": 1j,
    "a vector": np.ones(2),
    "a matrix": np.ones((2, 2)),
}
BATCHES: dict[str, Any] = {
    "users and xs of different lengths": ([0, 1], np.ones((3, 3)), [1.0, 1.0]),
    "rewards missing": ([0, 1], np.ones((2, 3)), [1.0]),
    "nobody, yet feedback": ([], np.ones((1, 3)), [1.0]),
    "the last user unknown": ([0, 1, 6], np.ones((3, 3)), [1.0] * 3),
    "a user negative": ([0, -1, 2], np.ones((3, 3)), [1.0] * 3),
    "users as floats": ([0.0, 1.0], np.ones((2, 3)), [1.0] * 2),
    "a user as bool": ([2, True], np.ones((2, 3)), [1.0] * 2),
    "users as bools": ([True, False], np.ones((2, 3)), [1.0] * 2),
    "users as a matrix": ([[0, 1]], np.ones((2, 3)), [1.0] * 2),
    "users ragged": ([[0], [0, 1]], np.ones((2, 3)), [1.0] * 2),
    "one user": (0, np.ones((1, 3)), [1.0]),
    "the last reward nan": ([0, 1], np.ones((2, 3)), [1.0, NAN]),
    "the last vector inf": ([0, 1], [[1.0, 1.0, 1.0], [1.0, INF, 1.0]], [1.0, 1.0]),
    "vectors too wide": ([0, 1], np.ones((2, 4)), [1.0, 1.0]),
    "rewards as strings": ([0], np.ones((1, 3)), ["1"]),
    "rewards as a matrix": ([0, 1], np.ones((2, 3)), [[1.0, 1.0]]),
    "rewards masked": ([0, 1], np.ones((2, 3)), np.ma.masked_invalid([1.0, NAN])),
    "users masked": (np.ma.MaskedArray([0, 1], [False, True]), np.ones((2, 3)), [1.0, 1.0]),
    "vectors masked": ([0], np.ma.masked_invalid([[1.0, NAN, 1.0]]), [1.0]),
    "the last vector too long for an inverse": ([0, 1], [[1.0, 1.0, 1.0], [0.0, LONG, 0.0]], [1.0, 1.0]),
}
ASKED: dict[str, Any] = {
    "sets for other users": ([0, 1], np.ones((3, 2, 3))),
    "no arms": ([0, 1], np.ones((2, 0, 3))),
    "a shared set without arms": ([0, 1], np.ones((0, 3))),
    "too wide": ([0, 1], np.ones((2, 2, 4))),
    "a vector": ([0, 1], X),
    "four axes": ([0, 1], np.ones((1, 2, 2, 3))),
    "the last set nan": ([0, 1], [ARMS, ARMS * NAN]),
    "an unknown user": ([0, 9], ARMS),
    "one user as a number": (0, ARMS),
    "nobody": (None, ARMS),
    "a number as arms": ([0], 1.0),
    "masked": ([0], np.ma.masked_invalid([[1.0, NAN, 1.0]])),
    "the last set too long for an inverse": ([0, 1], [ARMS, LONG * ARMS]),
}
LISTS: dict[str, Any] = {
    "none": (0, ARMS, 0),
    "more than there are": (0, ARMS, 4),
    "a float": (0, ARMS, 2.0),
    "a bool": (0, ARMS, True),
    "nothing": (0, ARMS, None),
    "an unknown user": (6, ARMS, 1),
    "a vector": (0, X, 1),
    "nan": (0, ARMS * NAN, 1),
    "masked": (0, np.ma.MaskedArray(ARMS), 1),
    "too long for an inverse": (0, LONG * ARMS, 2),
    "one too long for an inverse": (0, LONG * ARMS, 1),
}
CLICKS: dict[str, Any] = {
    "below the list": (0, ARMS, 3),
    "before the list": (0, ARMS, -1),
    "a float": (0, ARMS, 1.0),
    "a bool": (0, ARMS, True),
    "an unknown user": (6, ARMS, 1),
    "a vector": (0, X, 0),
    "no list": (0, np.empty((0, 3)), None),
    "nan": (0, ARMS * NAN, None),
    "too long for an inverse": (0, LONG * ARMS, None),
    "the last too long for an inverse": (0, [[1.0, 0.0, 0.0], [LONG, 0.0, 0.0]], None),
}
GROWTHS: dict[str, Any] = {
    "zero": 0,
    "negative": -2,
    "float": 2.0,
    "bool": True,
    "none": None,
    "without end": 10**30,
}

Call = Callable[[LinearBandit], object]


def call(method: str, *given: Any) -> Call:
    return lambda policy: getattr(policy, method)(*given)


def bad_calls() -> dict[str, Call]:
    calls: dict[str, Call] = {}
    for name, user in USERS.items():
        calls[f"recommend to user {name}"] = call("recommend", user, ARMS)
        calls[f"update of user {name}"] = call("update", user, X, 1.0)
        calls[f"scores of user {name}"] = call("scores", user, ARMS)
        calls[f"cluster of user {name}"] = call("cluster_of", user)
    for name, arms in BAD_ARMS.items():
        calls[f"recommend from arms {name}"] = call("recommend", 2, arms)
        calls[f"scores of arms {name}"] = call("scores", 2, arms)
    calls.update({f"update with x {name}": call("update", 1, x, 1.0) for name, x in BAD_X.items()})
    calls.update({f"update with reward {name}": call("update", 1, X, r) for name, r in REWARDS.items()})
    calls.update({f"update many: {name}": call("update_many", *batch) for name, batch in BATCHES.items()})
    calls.update({f"fit: {name}": call("fit", *batch) for name, batch in BATCHES.items()})
    calls.update({f"recommend many: {name}": call("recommend_many", *asked) for name, asked in ASKED.items()})
    calls.update({f"recommend list: {name}": call("recommend_list", *asked) for name, asked in LISTS.items()})
    calls.update({f"update list: {name}": call("update_list", *told) for name, told in CLICKS.items()})
    calls.update({f"add users: {name}": call("add_users", n) for name, n in GROWTHS.items()})
    return calls


BAD_CALLS = bad_calls()


@pytest.mark.parametrize("bad", sorted(BAD_CALLS))
def test_a_bad_call_is_answered_by_one_sentence(bad: str) -> None:
    policy = make("CLUB")
    with pytest.raises(ArgumentError) as caught:
        BAD_CALLS[bad](policy)
    assert is_one_sentence(caught.value), str(caught.value)
    assert "must" in str(caught.value)


@pytest.mark.parametrize("example", ALL)
@settings(deadline=None, derandomize=True, max_examples=40)
@given(rounds=st.integers(0, 40), bad=st.lists(st.sampled_from(sorted(BAD_CALLS)), min_size=1, max_size=8))
def test_a_bad_call_leaves_the_policy_as_it_was(example: str, rounds: int, bad: list[str]) -> None:
    policy = make(example)
    play(policy, rounds)
    before, arguments = memory(policy), repr(policy.arguments)
    for name in bad:
        with pytest.raises(ArgumentError):
            BAD_CALLS[name](policy)
    assert changed(before, policy) == []
    assert repr(policy.arguments) == arguments


@st.composite
def wrong_shapes(draw: st.DrawFn) -> tuple[int, ...]:
    shape = draw(st.lists(st.integers(0, 5), max_size=4).map(tuple))
    return shape if shape[-1:] != (3,) or len(shape) != 2 or shape[0] == 0 else (*shape, 3)


@settings(deadline=None, derandomize=True, max_examples=150)
@given(shape=wrong_shapes(), example=st.sampled_from(ALL))
def test_arms_of_any_wrong_shape_are_refused(shape: tuple[int, ...], example: str) -> None:
    policy = make(example)
    before = memory(policy)
    for look in (policy.recommend, policy.scores):
        with pytest.raises(ArgumentError) as caught:
            look(0, np.zeros(shape))
        assert is_one_sentence(caught.value)
    assert changed(before, policy) == []


@settings(deadline=None, derandomize=True, max_examples=150)
@given(
    bad=st.sampled_from([NAN, INF, -INF, 1e101, -1e300]),
    row=st.integers(0, 3),
    column=st.integers(0, 2),
    rounds=st.integers(0, 30),
    example=st.sampled_from(ALL),
)
def test_one_bad_number_anywhere_is_refused(
    bad: float, row: int, column: int, rounds: int, example: str
) -> None:
    policy = make(example)
    play(policy, rounds)
    before = memory(policy)
    numbers = np.ones((4, 3))
    numbers[row, column] = bad
    for refused in (
        lambda: policy.recommend(0, numbers),
        lambda: policy.scores(0, numbers),
        lambda: policy.update(0, numbers[row], 1.0),
        lambda: policy.update_many([0, 1, 2, 3], numbers, np.ones(4)),
        lambda: policy.update_many([0, 1, 2, 3], np.ones((4, 3)), numbers[:, column]),
        lambda: policy.recommend_many([0, 1], numbers),
        lambda: policy.recommend_list(0, numbers, 2),
    ):
        with pytest.raises(ArgumentError, match=r"finite|below 1e\+100"):
            refused()
    assert changed(before, policy) == []


@pytest.mark.parametrize("example", ALL)
@pytest.mark.parametrize("ridge", [1e-6, 1.0, 1e4])
def test_a_vector_too_long_for_the_ridge_is_refused_a_shorter_one_taken(example: str, ridge: float) -> None:
    policy = make(example, ridge=ridge)
    play(policy, 20)
    before, limit = memory(policy), 1e6 * ridge**0.5
    long, short = np.eye(3) * limit * 1.001, np.eye(3) * limit * 0.999
    for refused in (
        lambda: policy.recommend(0, long),
        lambda: policy.scores(0, long),
        lambda: policy.update(0, long[0], 1.0),
        lambda: policy.update_many([0, 1, 2], long, np.ones(3)),
        lambda: policy.recommend_many([0, 1], long),
        lambda: policy.recommend_list(0, long, 2),
        lambda: policy.update_list(0, long, None),
    ):
        with pytest.raises(ArgumentError, match=r"must be shorter than .* scale the features down") as caught:
            refused()
        assert is_one_sentence(caught.value), str(caught.value)
    assert changed(before, policy) == []
    assert 0 <= policy.recommend(0, short) < 3
    policy.update(0, short[0], 1.0)
    assert np.all(np.isfinite(policy.estimates))


@pytest.mark.parametrize("example", ALL)
def test_true_and_false_are_rewards(example: str) -> None:
    bools, floats = make(example), make(example)
    rewards: tuple[Any, ...] = (True, False, np.bool_(True))
    for clicked in rewards:
        bools.update(0, X, clicked)
        floats.update(0, X, float(clicked))
    bools.update_many([0, 1], np.ones((2, 3)), [True, False])
    floats.update_many([0, 1], np.ones((2, 3)), [1.0, 0.0])
    assert changed(bools, floats) == []
