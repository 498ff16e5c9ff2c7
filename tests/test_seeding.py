from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest, pearsonr

from coterie import ArgumentError
from coterie.seeding import check_seed, stream


def test_the_same_seed_and_names_give_the_same_stream() -> None:
    one, other = stream(7, "policy", "arms"), stream(7, "policy", "arms")
    assert np.array_equal(one.random(100), other.random(100))


@pytest.mark.parametrize(
    "other", [stream(8, "policy"), stream(7, "environment"), stream(7), stream(7, "policy", "1")]
)
def test_another_seed_or_name_gives_an_independent_stream(other: np.random.Generator) -> None:
    mine, its = stream(7, "policy").random(5000), other.random(5000)
    assert not np.any(mine == its)
    assert pearsonr(mine, its).pvalue > 0.001
    assert kstest(its, "uniform").pvalue > 0.001


def test_drawing_from_one_stream_does_not_move_another() -> None:
    world, undisturbed = stream(7, "environment"), stream(7, "environment")
    stream(7, "policy").random(1000)
    assert world.random() == undisturbed.random()


def test_streams_leave_the_global_generator_alone() -> None:
    shared: Any = np.random
    before = shared.get_state()[1].tolist()
    stream(7, "policy").random(10)
    assert shared.get_state()[1].tolist() == before


def test_a_stream_is_the_same_on_every_machine_and_day() -> None:
    assert stream(7, "policy").integers(10**6, size=3).tolist() == [427314, 324382, 111668]


@pytest.mark.parametrize("names", [("a/b",), ("a", "b")])
def test_names_are_told_apart(names: tuple[str, ...]) -> None:
    others = {("a/b",), ("a", "b"), ("a", "", "b")} - {names}
    assert all(stream(1, *names).random() != stream(1, *other).random() for other in others)


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**64, 10**30, np.int64(5), np.uint8(5)])
def test_any_whole_number_from_zero_on_is_a_seed(seed: Any) -> None:
    assert check_seed(seed) == int(seed)
    assert type(check_seed(seed)) is int
    assert 0 <= stream(seed, "policy").random() < 1


@pytest.mark.parametrize("seed", [-1, 1.0, "1", None, True, np.bool_(True), [1], np.nan])
def test_anything_else_is_refused_as_a_seed(seed: Any) -> None:
    with pytest.raises(ArgumentError, match="seed must be a whole number of at least 0, got"):
        stream(seed, "policy")
