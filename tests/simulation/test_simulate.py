"""What a simulation writes down, who joins while it runs, and what it refuses."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import coterie
from coterie.datasets.dataset import Dataset
from coterie.environments import Bernoulli, Smoothed, Stochastic, lifted
from coterie.environments.blocks import BLOCK, Environment
from coterie.policies import REGISTRY
from coterie.simulation import Stopped, simulate, simulate_many
from coterie.simulation.simulator import judged

Tuned = coterie.Tuned(alpha=0.9, beta=0.3, explore=60, phase=25)
USERS, DIM = 12, 6


def make(name: str, world: Environment) -> coterie.LinearBandit:
    """A policy of this name, fit for the world."""
    assert world.labels is not None
    same = (world.labels[:, None] == world.labels[None, :]) & ~np.eye(USERS, dtype=bool)
    settings: dict[str, Any] = {"ridge": 0.5, "seed": 3}
    if name.startswith("Lin"):
        settings["beta"] = 0.3
    elif name in ("GOBLin", "GraphUCB"):
        settings |= {"alpha": 0.3, "graph": same}
    elif "confidence" in REGISTRY[name].parameters:
        settings["confidence"] = Tuned
    if "Oracle" in name:
        settings["labels"] = world.labels
    if name == "COFIBA":
        settings |= {"alpha": 0.1, "catalogue": world.block(0).items}
    return REGISTRY[name].make(USERS, world.dim, **settings)


@pytest.fixture(scope="module")
def data() -> Dataset:
    return coterie.datasets.load("synthetic", dim=DIM, n_users=40, n_items=60)


WORLDS: dict[str, Callable[[Dataset], Environment]] = {
    "stochastic": lambda d: Stochastic(d, n_users=USERS, n_clusters=3, n_arms=9, seed=2),
    "smoothed": lambda d: Smoothed(d, n_users=USERS, n_clusters=3, n_arms=9, seed=2),
    "delayed": lambda d: Stochastic(
        d, n_users=USERS, n_clusters=3, n_arms=9, seed=2, delay=coterie.environments.Delay(mean=4)
    ),
    "binary": lambda d: Stochastic(
        lifted(d), n_users=USERS, n_clusters=3, n_arms=9, seed=2, noise=Bernoulli()
    ),
    "late": lambda d: Stochastic(
        d, n_users=USERS, n_clusters=3, n_arms=9, seed=2, late=0.5, settled=2 * BLOCK
    ),
    "uneven": lambda d: Stochastic(d, n_users=USERS, n_clusters=3, n_arms=9, seed=2, zipf=1.0, drift=0.5),
}


def test_a_trace_has_evenly_spaced_points_and_knows_how_much_was_explored(data: Dataset) -> None:
    world = WORLDS["stochastic"](data)
    trace = simulate(make("UniCLUB", world), world, 600, record=6)
    assert trace.rounds.tolist() == [100, 200, 300, 400, 500, 600]
    np.testing.assert_allclose(trace.explored, 60 / trace.rounds)
    assert (np.diff(trace.regret) >= 0).all()
    assert trace.ari.shape == trace.clusters.shape == (6,)


def test_the_oracle_has_the_true_clusters_and_one_cluster_has_no_index(data: Dataset) -> None:
    world = WORLDS["stochastic"](data)
    assert simulate(make("LinUCBOracle", world), world, 300, record=3).ari.tolist() == [1.0, 1.0, 1.0]
    assert simulate(make("LinUCBOne", world), world, 300, record=3).ari.tolist() == [0.0, 0.0, 0.0]


def test_more_points_than_rounds_are_as_many_as_rounds(data: Dataset) -> None:
    world = WORLDS["stochastic"](data)
    assert simulate(make("LinUCBOne", world), world, 7, record=500).rounds.tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_a_policy_goes_on_learning_where_it_stopped(data: Dataset) -> None:
    world = WORLDS["stochastic"](data)
    policy = make("SCLUB", world)
    simulate(policy, world, 300)
    simulate(policy, world, 300)
    assert policy.rounds == 600


@pytest.mark.parametrize("name", REGISTRY)
def test_newcomers_join_while_the_simulation_runs(data: Dataset, name: str) -> None:
    world = Stochastic(data, n_users=USERS, n_clusters=3, n_arms=9, seed=2, late=0.5, settled=4 * BLOCK)
    early = Stochastic(data, n_users=6, n_clusters=3, n_arms=9, seed=2)
    if name in ("GOBLin", "GraphUCB"):
        policy = REGISTRY[name].make(6, DIM, graph=np.zeros((6, 6)), alpha=0.3)
    else:
        full = make(name, world).arguments
        if "labels" in full:
            full = {**full, "labels": world.labels[:6]}
        policy = REGISTRY[name].make(**{**full, "n_users": early.n_users})
    trace = simulate(policy, world, 6 * BLOCK)
    assert policy.n_users == USERS
    assert (policy.pulls[6:] > 0).all()
    assert np.isfinite(trace.regret).all()


def test_many_at_once_give_the_same_numbers_as_one_by_one(data: Dataset) -> None:
    def world(seed: int) -> Stochastic:
        return Stochastic(data, n_users=USERS, n_clusters=3, n_arms=9, seed=seed)

    names = ("LinUCBOne", "CLUB", "UniSCLUB")
    makers = {name: (lambda w, seed, name=name: make(name, w)) for name in names}
    together = simulate_many(makers, world, 700, seeds=[1, 2, 3], record=50, jobs=4, progress=False)
    apart = [simulate(make(n, world(s)), world(s), 700, record=50).named(n) for n in names for s in (1, 2, 3)]
    assert [(t.policy, t.seed) for t in together] == [(t.policy, t.seed) for t in apart]
    for mine, other in zip(together, apart, strict=True):
        np.testing.assert_array_equal(mine.regret, other.regret)
        np.testing.assert_array_equal(mine.ari, other.ari)


def test_seeds_may_come_from_an_iterator(data: Dataset) -> None:
    makers = {name: (lambda w, seed, name=name: make(name, w)) for name in ("CLUB", "SCLUB")}
    traces = simulate_many(
        makers, lambda s: WORLDS["stochastic"](data), 50, seeds=iter([1, 2]), record=1, progress=False
    )
    assert len(traces) == 4


@pytest.mark.parametrize("horizon", [10.5, "ten", None, True, 0])
def test_a_horizon_that_is_no_number_of_rounds_is_refused(data: Dataset, horizon: Any) -> None:
    world = WORLDS["stochastic"](data)
    with pytest.raises(coterie.ArgumentError, match="horizon must be a whole number"):
        simulate(make("CLUB", world), world, horizon)


def test_a_maker_is_no_policy_and_no_worker_is_too_few(data: Dataset) -> None:
    world = WORLDS["stochastic"](data)
    maker: Any = coterie.CLUB
    with pytest.raises(coterie.ArgumentError, match="policy must have the methods recommend and update"):
        simulate(maker, world, 10)
    with pytest.raises(coterie.ArgumentError, match="jobs"):
        simulate_many({"CLUB": lambda w, s: make("CLUB", w)}, lambda s: world, 10, jobs=0, progress=False)


def test_a_stopped_simulation_says_so(data: Dataset) -> None:
    stop = threading.Event()
    stop.set()
    world = WORLDS["stochastic"](data)
    with pytest.raises(Stopped):
        simulate(make("CLUB", world), world, 600, stop=stop)


def test_a_failure_of_one_stops_all(data: Dataset) -> None:
    def broken(world: Environment, seed: int) -> coterie.LinearBandit:
        raise RuntimeError("no policy today")

    makers = {"good": lambda w, seed: make("CLUB", w), "bad": broken}
    with pytest.raises(RuntimeError, match="no policy today"):
        simulate_many(makers, lambda s: WORLDS["stochastic"](data), 50_000, seeds=[1], progress=False)


@pytest.mark.parametrize(
    ("policy", "horizon", "record", "says"),
    [
        (coterie.LinUCBOne(USERS, DIM + 1), 10, 10, "dim 7"),
        (coterie.LinUCBOne(USERS + 1, DIM), 10, 10, "13 users"),
        (coterie.LinUCBOne(USERS, DIM), 0, 10, "horizon"),
        (coterie.LinUCBOne(USERS, DIM), 10, 0, "record"),
    ],
)
def test_what_does_not_fit_is_refused(
    data: Dataset, policy: coterie.LinearBandit, horizon: int, record: int, says: str
) -> None:
    with pytest.raises(coterie.ArgumentError, match=says):
        simulate(policy, WORLDS["stochastic"](data), horizon, record=record)


def test_a_trace_shows_itself(data: Dataset) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    world = WORLDS["stochastic"](data)
    trace = simulate(make("CLUB", world), world, 300, record=3)
    assert repr(trace).startswith("CLUB (seed 2): regret ")
    assert "\n" not in repr(trace)
    frame = trace.to_frame()
    assert list(frame.columns) == [
        "policy",
        "seed",
        "rounds",
        "regret",
        "reward",
        "uniform",
        "clusters",
        "ari",
        "explored",
    ]
    assert len(frame) == 3
    axes = trace.plot()
    assert axes.get_ylabel() == "cumulative regret"


def test_every_row_of_labels_is_scored_as_if_it_stood_alone() -> None:
    truth = np.array([0, 0, 1, 1])
    told = np.array(
        [[5, 5, 5, 5], [5, 5, 5, 5], [0, 0, 3, 3], [-1] * 4, [-1] * 4, [2, 2, -1, -1], [5, 5, 5, 5]]
    )
    clusters, ari = zip(*(judged(labels, truth) for labels in told), strict=True)
    assert list(clusters) == [1, 1, 2, -1, -1, 1, 1]
    np.testing.assert_array_equal(ari, [0.0, 0.0, 1.0, np.nan, np.nan, 1.0, 0.0])
