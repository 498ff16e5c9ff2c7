"""From settings to runs: the environment, the policies and their parameters, the data they draw from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from coterie import datasets
from coterie.cli.real_worlds import fitted, is_real, rounds_of, usual_world
from coterie.cli.settings import RunSettings, assignments, convert
from coterie.errors import ArgumentError, unknown
from coterie.experiments.results import labels_of
from coterie.experiments.run_store import Run
from coterie.experiments.runner import DataFiles
from coterie.experiments.specs import EnvironmentSpec, PolicySpec
from coterie.experiments.tuning import usual_spec
from coterie.policies.makers import Maker, find_maker
from coterie.policies.registry import REGISTRY

DEFAULT_POLICIES = ("AutoCLUB", "LinUCBInd")
"""Our policy, and one to measure it by."""


class RunPlan(NamedTuple):
    """Everything to be played, and where its vectors come from."""

    environment: EnvironmentSpec
    policies: tuple[PolicySpec, ...]
    runs: tuple[Run, ...]
    data: DataFiles

    def label(self, run: Run) -> str:
        """The policy's name; with its parameters where two policies share it."""
        return self.labels[self.policies.index(run.policy)]

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the policies, no two alike."""
        return labels_of(self.policies)


def plan_runs(settings: RunSettings) -> RunPlan:
    """The runs of these settings, by policy, then by seed; what cannot be made is refused now."""
    environment = environment_of(settings)
    datasets.about(environment.dataset)
    data = data_files(settings, environment)
    if environment.is_real:
        environment = fitted(environment, data, settings)
    named = [parse_policy(word) for word in settings.policies or DEFAULT_POLICIES]
    check_used(settings, [find_maker(one.name) for one in named])
    policies = tuple(dict.fromkeys(complete_spec(one, settings, environment) for one in named))
    sha256 = data.sha256(environment)
    world = environment.make(data.dataset(environment), settings.seeds[0])
    horizon = rounds_of(world, settings)
    runs = tuple(
        Run(
            environment=environment,
            policy=policy,
            horizon=horizon,
            seed=seed,
            record=settings.record,
            data=sha256,
        )
        for policy in policies
        for seed in settings.seeds
    )
    for policy in policies:
        policy.make(world, settings.seeds[0])
    return RunPlan(environment, policies, runs, data)


def data_files(settings: RunSettings, environment: EnvironmentSpec) -> DataFiles:
    """Where the dataset is, and how an own table is read."""
    options, path = settings.table_options(), Path(settings.data) if settings.data else None
    if environment.is_real:
        options = {name: options[name] for name in options if name in ("columns", "items")}
    if options and environment.dataset != "interactions":
        raise ArgumentError(f"{' and '.join(options)}: for --dataset interactions, your own table")
    return DataFiles(files={environment.dataset: path} if path else {}, table_options=options)


def environment_of(settings: RunSettings) -> EnvironmentSpec:
    """The environment, with whatever --set or [world] says about it.

    Unless told otherwise there are no more clusters than users, and the dataset has as many users as play.
    """
    names, defaults = EnvironmentSpec.names(), EnvironmentSpec()
    for name in settings.world:
        if name not in names:
            raise unknown("world setting", name, names, f"The settings are {', '.join(names)}")
    users = settings.world.get("n_users", defaults.n_users)
    fitting: dict[str, Any] = {"intercept": True} if settings.world.get("offset", 0) else {}
    if isinstance(users, int) and users > 0:
        fitting["n_clusters"] = min(users, defaults.n_clusters)
        fitting["pool_users"] = max(users, defaults.pool_users)
    real = usual_world(settings) if is_real(settings) else {}
    return convert({**fitting, **real, **settings.world}, EnvironmentSpec)


def parse_policy(word: str) -> PolicySpec:
    """`CLUB`, `CLUB:alpha=1,beta=0.2`, `module:Policy` or `module:Policy:size=3`.

    >>> print(parse_policy("CLUB:beta=0.2"), parse_policy("mine:Greedy:size=3"), sep=", ")
    CLUB (beta 0.2), mine:Greedy (size 3)
    """
    name, colon, rest = word.partition(":")
    if colon and name not in REGISTRY and "=" not in rest.split(":")[0]:
        attribute, _, rest = rest.partition(":")
        name = f"{name}:{attribute}"
    return PolicySpec(name, assignments(f"{name}:", [pair for pair in rest.split(",") if pair.strip()]))


def complete_spec(own: PolicySpec, settings: RunSettings, environment: EnvironmentSpec) -> PolicySpec:
    """A policy with what is said of it, then of all policies, then with what is usual."""
    maker = find_maker(own.name)
    maker.check(own.params)
    shared = {**_translated(maker, settings.constants), **settings.params}
    taken = {name: value for name, value in shared.items() if maker.takes(name)}
    usual = usual_spec(own.name, environment)
    return PolicySpec(own.name, {**usual.params, **taken, **own.params})


def _translated(maker: Maker, constants: Mapping[str, Any]) -> dict[str, Any]:
    """Options as parameters: of policies that take a graph, `beta` sets alpha, the factor of their width."""
    if "graph" not in maker.arguments:
        return dict(constants)
    renamed = {"beta": "alpha"}
    return {renamed.get(name, name): value for name, value in constants.items() if name != "alpha"}


def check_used(settings: RunSettings, makers: Iterable[Maker]) -> None:
    """Refuse a parameter that none of the policies takes, instead of ignoring it."""
    every = list(dict.fromkeys(makers))
    used = {name for maker in every for name in settings.params if maker.takes(name)}
    for maker in every:
        used.update(name for name in settings.constants if _uses(maker, name))
    for name in (*settings.constants, *settings.params):
        if name not in used:
            takes = "; ".join(maker.summary() for maker in every)
            raise ArgumentError(f"{name} is for policies that take it, and none of these does: {takes}")


def _uses(maker: Maker, option: str) -> bool:
    """Does an option such as --alpha set anything of this policy?"""
    return any(maker.takes(name) for name in _translated(maker, {option: None}))
