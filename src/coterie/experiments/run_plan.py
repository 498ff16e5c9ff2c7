"""Runs of any policies in any environment: parameters to start from, and what the data allows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from coterie import datasets
from coterie.datasets.sources import ARCHIVES, is_file_of
from coterie.environments.blocks import BLOCK
from coterie.errors import ArgumentError
from coterie.experiments.results import Panel, PolicyResult, labels_of
from coterie.experiments.run_store import Run, Store
from coterie.experiments.runner import DataFiles
from coterie.experiments.specs import EnvironmentSpec, Params, PolicySpec, World
from coterie.experiments.tuning import Choice, Study, TuningProtocol, candidates, check_reported, usual_spec
from coterie.policies.factories import PolicyFactory, find_factory
from coterie.policies.registry import DEFAULT

DEFAULT_POLICIES = (DEFAULT, "LinUCBInd", "ItemUCB")
"""The policies of a run that names none: the default, and what users alone and items alone are worth."""

WITHOUT_DUELS = ("ItemUCB", "ItemTS")
"""Policies that learn nothing from a duel: it is about a difference of two vectors, which is no item."""

DEFAULT_HORIZON = 20_000

ALL_USERS = 1_000_000
"""More users than any dataset has: all of them are served."""

USUAL_REAL: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "lastfm-2014": {"dataset": "lastfm", "dim": 25, "n_arms": 25, "n_users": ALL_USERS},
        "rated": {"dim": 20, "n_arms": 10, "n_users": 500},
        "complete": {"dim": 20, "n_arms": 10, "n_users": ALL_USERS},
        "stream": {"dim": 25, "n_arms": 25, "n_users": ALL_USERS},
        "payoffs": {"n_arms": 10, "n_users": ALL_USERS, "intercept": True},
    }
)
"""Parameters of `EnvironmentSpec` for each setting of real feedback, where none are given."""

SAMPLED_BLOCKS = 20
"""Blocks of rounds in which the deviation of rewards is measured."""


class SharedParameters(NamedTuple):
    """Parameters for each policy that takes them.

    `options` are those with an option of their own, such as `--alpha`; `params` come from `--param` and are
    stronger. What is said of a single policy is stronger than both.
    """

    options: Mapping[str, Any]
    params: Mapping[str, Any]

    def check_used(self, makers: Iterable[PolicyFactory]) -> None:
        """Refuse a parameter that none of the policies takes, instead of ignoring it."""
        every = list(dict.fromkeys(makers))
        used = {name for maker in every for name in self.params if maker.takes(name)}
        for maker in every:
            used.update(name for name in self.options if _has_effect(maker, name))
        for name in (*self.options, *self.params):
            if name not in used:
                takes = "; ".join(maker.summary() for maker in every)
                raise ArgumentError(f"{name} is for policies that take it, and none of these does: {takes}")

    def complete(self, spec: PolicySpec, environment: EnvironmentSpec) -> PolicySpec:
        """The policy with its own parameters, then the shared ones, then those to start from."""
        usual = usual_spec(spec.name, environment)
        return PolicySpec(spec.name, {**usual.params, **self.given(spec).params})

    def given(self, spec: PolicySpec) -> PolicySpec:
        """The policy with its own parameters and the shared ones that it takes."""
        maker = find_factory(spec.name)
        maker.check(spec.params)
        shared = {**_as_parameters(maker, self.options), **self.params}
        taken = {name: value for name, value in shared.items() if maker.takes(name)}
        return PolicySpec(spec.name, {**taken, **spec.params})


def _as_parameters(maker: PolicyFactory, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as parameters: of policies that take a graph, `beta` sets alpha, the factor of their width."""
    if "graph" not in maker.arguments:
        return dict(options)
    renamed = {"beta": "alpha"}
    return {renamed.get(name, name): value for name, value in options.items() if name != "alpha"}


def _has_effect(maker: PolicyFactory, option: str) -> bool:
    """Whether an option such as --alpha sets a parameter of this policy."""
    return any(maker.takes(name) for name in _as_parameters(maker, {option: None}))


class RunPlan(NamedTuple):
    """Runs of several policies in one environment, and where its data comes from.

    `given` are the policies with only the parameters that somebody has set.
    """

    environment: EnvironmentSpec
    policies: tuple[PolicySpec, ...]
    runs: tuple[Run, ...]
    data: DataFiles
    given: tuple[PolicySpec, ...]
    is_tuned: bool = False

    @property
    def horizon(self) -> int:
        """The rounds of every run."""
        return self.runs[0].horizon

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds, each once."""
        return tuple(dict.fromkeys(run.seed for run in self.runs))

    @property
    def labels(self) -> tuple[str, ...]:
        """Distinct labels of the policies."""
        return labels_of(self.policies)

    def studies(self, protocol: TuningProtocol) -> list[Study]:
        """The tuning study of each policy; parameters that were given are not tuned."""
        check_reported(self.seeds)
        rounds, data = protocol.rounds(self.horizon), self.runs[0].data
        return [
            Study(self.environment, one.name, rounds, data, fixed=Params(one.params)) for one in self.given
        ]

    def tuned(self, choices: Sequence[Choice]) -> RunPlan:
        """The plan with the parameters that were chosen."""
        chosen = {old: choice.spec for old, choice in zip(self.policies, choices, strict=True)}
        runs = tuple(dict.fromkeys(replace(run, policy=chosen[run.policy]) for run in self.runs))
        policies = tuple(dict.fromkeys(chosen.values()))
        return self._replace(policies=policies, runs=runs, given=policies, is_tuned=True)

    @property
    def untuned(self) -> list[str]:
        """Labels of the policies that have parameters to tune, and were given none."""
        if self.is_tuned:
            return []
        found = []
        for label, one in zip(self.labels, self.given, strict=True):
            if len(candidates(one.name, self.environment, fixed=one.params)) > 1:
                found.append(label)
        return found

    def label(self, run: Run) -> str:
        """The policy's name; with its parameters where two policies share it."""
        return self.labels[self.policies.index(run.policy)]

    def results(self, store: Store, seconds: Mapping[str, float]) -> tuple[PolicyResult, ...]:
        """The finished runs of each policy; those that were just played have their seconds."""
        found = []
        for spec in self.policies:
            runs = [run for run in self.runs if run.policy == spec]
            traces = (replace(store.read(run), seconds=seconds.get(run.id, float("nan"))) for run in runs)
            found.append(PolicyResult(spec, tuple(traces)))
        return tuple(found)

    def panel(self, results: tuple[PolicyResult, ...]) -> Panel:
        """The results as a panel of a figure."""
        dataset = self.data.dataset(self.environment)
        gaps = [self.environment.make(dataset, seed).gamma for seed in self.seeds]
        return Panel(self.environment.dataset, "", "", 0.0, sum(gaps) / len(gaps), results)


def default_policies(environment: EnvironmentSpec) -> tuple[str, ...]:
    """The policies of a run that names none, without those that learn nothing there.

    >>> default_policies(EnvironmentSpec(duels=1.0))
    ('AutoCLUB', 'LinUCBInd')
    """
    return tuple(name for name in DEFAULT_POLICIES if not (environment.duels and name in WITHOUT_DUELS))


def plan_runs(
    environment: EnvironmentSpec,
    policies: Sequence[PolicySpec],
    data: DataFiles,
    *,
    horizon: int = DEFAULT_HORIZON,
    seeds: tuple[int, ...],
    record: int,
    shared: SharedParameters,
    has_noise: bool = True,
) -> RunPlan:
    """Plan the runs, by policy, then by seed; what cannot be made is refused now.

    Without `has_noise`, the noise of an environment of real feedback is measured: it is the unit in which
    parameters to start from are given.
    """
    for one in policies:
        if environment.duels and one.name in WITHOUT_DUELS:
            raise ArgumentError(f"{one.name} learns nothing from duels: leave it out")
    if environment.is_real:
        environment = fit_environment(environment, data, seed=seeds[0], has_noise=has_noise)
    shared.check_used([find_factory(one.name) for one in policies])
    given = {shared.complete(one, environment): shared.given(one) for one in policies}
    completed = tuple(given)
    sha256 = data.sha256(environment)
    world = environment.make(data.dataset(environment), seeds[0])
    rounds = possible_horizon(world, horizon)
    runs = tuple(
        Run(environment=environment, policy=policy, horizon=rounds, seed=seed, record=record, data=sha256)
        for policy in completed
        for seed in seeds
    )
    # Made once and thrown away: a wrong parameter is an error now, not in the middle of the runs.
    for policy in completed:
        policy.make(world, seeds[0])
    return RunPlan(environment, completed, runs, data, tuple(given.values()))


def usual_environment(
    given: Mapping[str, Any],
    *,
    data: str | None = None,
    is_own_table: bool = False,
    threshold: float | None = None,
) -> dict[str, Any]:
    """Parameters of an environment that follow from those that are given.

    Unless given, there are no more clusters than users, the dataset has as many users as play, and
    rewards with an offset have an intercept. The dataset is that of the file; of a file whose columns are
    named (`is_own_table`), 'interactions'. Real feedback has parameters of its own.
    """
    defaults = EnvironmentSpec()
    found: dict[str, Any] = {"intercept": True} if given.get("offset", 0) else {}
    users = given.get("n_users", defaults.n_users)
    if isinstance(users, int) and users > 0:
        found["n_clusters"] = min(users, defaults.n_clusters)
        found["pool_users"] = max(users, defaults.pool_users)
    setting = given.get("setting")
    if is_own_table:
        found["dataset"] = "interactions"
    elif data is not None:
        found["dataset"] = guessed_dataset(data)
    if isinstance(setting, str) and setting in USUAL_REAL:
        found = {"dataset": "movielens", **found, **USUAL_REAL[setting]}
        found |= {} if threshold is None else {"threshold": threshold}
    return found


def guessed_dataset(path: str) -> str:
    """The dataset of a file or folder, by its name; 'interactions' for any other file.

    >>> guessed_dataset("downloads/ml-25m.zip"), guessed_dataset("clicks.csv")
    ('movielens', 'interactions')
    """
    place = Path(path).expanduser()
    for name in datasets.names():
        about = datasets.about(name)
        if place.name == about.archive or (place.is_file() and is_file_of(about, place)):
            return name
        patterns = [deep + file for file in about.files for deep in ("", "*/")]
        found = [path for pattern in patterns for path in place.glob(pattern)] if place.is_dir() else []
        if any(is_file_of(about, path) for path in found):
            return name
    if place.name.lower().startswith("ml-") and place.name.lower().endswith(ARCHIVES):
        return "movielens"
    return "interactions"


def fit_environment(
    environment: EnvironmentSpec, data: DataFiles, *, seed: int, has_noise: bool
) -> EnvironmentSpec:
    """The environment with the users and dimensions that the data has, and with its unit σ."""
    world = environment.make(data.dataset(environment), seed)
    fitted = replace(environment, n_users=world.n_users, dim=world.dim - environment.intercept)
    if has_noise:
        return fitted
    # At most 0.5, the largest standard deviation of rewards in [0, 1].
    return replace(fitted, noise=float(f"{min(0.5, uniform_deviation(world)):.3g}"))


def uniform_deviation(world: World) -> float:
    """The standard deviation of rewards under uniform play, from the first rounds."""
    most = getattr(world, "n_rounds", None)
    blocks = SAMPLED_BLOCKS if most is None else max(1, min(SAMPLED_BLOCKS, most // BLOCK))
    drawn = [world.block(number) for number in range(blocks)]
    arms = [np.s_[:, : block.unseen or None] for block in drawn]  # with `unseen`, other candidates follow
    parts = zip(drawn, arms, strict=True)
    means = np.concatenate([block.means[own][block.picks[own] >= 0] for block, own in parts])
    return float(means.std()) or 0.5


def possible_horizon(world: World, horizon: int) -> int:
    """The horizon; by default at most the number of events."""
    most = getattr(world, "n_rounds", None)
    if most is None or horizon <= most:
        return horizon
    if horizon == DEFAULT_HORIZON:
        return int(most)
    raise ArgumentError(f"horizon must be at most {most:,}, the number of events, got {horizon:,}")


def feedback_notes(environment: EnvironmentSpec, data: DataFiles) -> Iterator[str]:
    """Sentences on where the rewards of real feedback come from, and what was left out."""
    table = data.dataset(environment)
    world = environment.make(table, 0)
    clusters = "so there are no true clusters" if world.labels is None else "and groups are those of the data"
    yield f"Rewards are those that users gave; nothing is simulated, {clusters}."
    left_out = list(getattr(table.provenance, "left_out", ()))
    if few := getattr(world, "left_out", 0):
        left_out.append(f"{few:,} users with too few known payoffs")
    if left_out:
        yield f"Left out: {'; '.join(left_out)}."
