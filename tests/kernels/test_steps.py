from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.examples import make, play
from coterie import LinUCBOne
from coterie.kernels import generic
from coterie.kernels.choice import SLACK
from coterie.kernels.generic import View
from coterie.kernels.steps import bound_widths
from coterie.types import Floats


def bounded(inverse: Floats, arms: Floats) -> Floats:
    bounds = np.empty(len(arms))
    seen = View(np.zeros(len(inverse)), inverse, 1.0, 0, 1.0, np.inf)
    bound_widths(seen, arms, np.arange(len(arms)), bounds, np.empty(len(inverse)))
    return bounds


@settings(deadline=None, derandomize=True, max_examples=150)
@given(
    st.integers(0, 2**32), st.integers(1, 10), st.integers(0, 30), st.sampled_from([1.0, 1e-2, 1e-4, 1e-5])
)
def test_bounds_for_arms_never_met_are_never_below_the_width(seed: int, d: int, n: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    data, arms = scale * rng.normal(size=(n, d)), rng.normal(size=(8, d))
    inverse = np.linalg.inv(0.1 * np.eye(d) + data.T @ data)
    inverse = 0.5 * (inverse + inverse.T)
    directions = np.concatenate([arms, np.linalg.eigh(inverse)[1].T])
    widths = np.einsum("ki,ij,kj->k", directions, inverse, directions)
    assert np.all(bounded(inverse, directions) * SLACK >= widths)


def test_a_choice_is_exact_even_when_the_eigenvalues_almost_agree() -> None:
    policy = LinUCBOne(1, 2, beta=1.0)
    policy.update(0, [1e-4, 0.0], 0.0)
    arms = np.array([[np.sqrt(0.3), np.sqrt(0.7 + 1e-9)], [0.0, 1.0]])
    assert policy.recommend(0, arms) == int(np.argmax(policy.scores(0, arms).ucb)) == 1


def test_a_generic_kernel_has_no_body_of_its_own() -> None:
    with pytest.raises(NotImplementedError, match="compiled only"):
        generic.view(None, 0)
    with pytest.raises(NotImplementedError, match="compiled only"):
        generic.learn(None, 0, np.zeros(1), 0.0)


@pytest.mark.parametrize("scale", [1e-100, 1e-8, 1.0, 1e4])
def test_the_best_arm_does_not_depend_on_the_scale_of_the_arms_when_nothing_is_known(scale: float) -> None:
    arms = np.array([[1.0, 0.0, 0.0], [2.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    assert make("CLUB").recommend(0, arms * scale) == 1


@pytest.mark.parametrize("example", ["CLUB", "SCLUB", "LinUCBOne"])
def test_vectors_of_very_different_lengths_keep_estimates_finite(example: str) -> None:
    policy = make(example)
    rng = np.random.default_rng(3)
    for t in range(300):
        x = rng.normal(size=3) * 10.0 ** rng.integers(-6, 5)
        policy.update(t % 6, x, float(rng.normal()))
    play(policy, 100)
    assert np.all(np.isfinite(policy.estimates))
