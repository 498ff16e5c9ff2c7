"""From settings to runs: the environment, the policies and their parameters, the datasets they draw from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from coterie import datasets
from coterie.cli.settings import Settings, assignments, text
from coterie.errors import ArgumentError, unknown
from coterie.experiments.makers import Maker, find_maker
from coterie.experiments.runs import Run
from coterie.experiments.shelf import OwnTable, Shelf
from coterie.experiments.specs import EnvironmentSpec, PolicySpec, labels_of
from coterie.experiments.tuning import usual_spec
from coterie.policies.registry import REGISTRY
from coterie.validation import number, whole

DEFAULT = ("AutoCLUB",)


class Plan(NamedTuple):
    """Everything to be played, and where its vectors come from."""

    environment: EnvironmentSpec
    policies: tuple[PolicySpec, ...]
    runs: tuple[Run, ...]
    shelf: Shelf

    def label(self, run: Run) -> str:
        """The policy's name; with its parameters where two policies share it."""
        return self.labels[self.policies.index(run.policy)]

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the policies, no two alike."""
        return labels_of(self.policies)


def plan(settings: Settings) -> Plan:
    """The runs of these settings, by policy, then by seed."""
    environment = environment_of(settings)
    datasets.about(environment.dataset)
    named = [parse(word) for word in settings.policies or DEFAULT]
    check_used(settings, [find_maker(one.name) for one in named])
    policies = tuple(dict.fromkeys(completed(one, settings, environment) for one in named))
    shelf = shelf_of(settings, environment)
    data = shelf.sha256(environment)
    runs = tuple(
        Run(
            environment=environment,
            policy=policy,
            horizon=settings.horizon,
            seed=seed,
            record=settings.record,
            data=data,
        )
        for policy in policies
        for seed in settings.seeds
    )
    world = environment.make(shelf.dataset(environment), settings.seeds[0])
    for policy in policies:
        policy.make(world, settings.seeds[0])  # refuse now, not later
    return Plan(environment, policies, runs, shelf)


def shelf_of(settings: Settings, environment: EnvironmentSpec) -> Shelf:
    """Where the dataset is."""
    if environment.dataset == "interactions":
        return OwnTable(settings.data, settings.columns, settings.threshold)
    if settings.columns is not None or settings.threshold is not None:
        raise ArgumentError("columns and threshold are for --dataset interactions, your own table")
    return Shelf(Path(settings.data) if settings.data else None)


def environment_of(settings: Settings) -> EnvironmentSpec:
    """The environment, with whatever --set or [world] says about it."""
    known, defaults = EnvironmentSpec.names(), EnvironmentSpec()
    for name in settings.world:
        if name not in known:
            raise unknown("world setting", name, known, f"The settings are {', '.join(known)}")
    told = {name: _alike(name, value, getattr(defaults, name)) for name, value in settings.world.items()}
    return EnvironmentSpec(**told)


def _alike(name: str, value: Any, model: object) -> Any:
    """The value, if it is of the model's kind; a whole number will do for a real one."""
    if isinstance(model, float):
        return number(name, value)
    if isinstance(model, int):
        return whole(name, value, 0)
    return text(name, value)


def parse(word: str) -> PolicySpec:
    """`CLUB`, `CLUB:alpha=1,beta=0.2`, `module:Policy` or `module:Policy:size=3`.

    >>> print(parse("CLUB:beta=0.2"), parse("mine:Greedy:size=3"), sep=", ")
    CLUB (beta 0.2), mine:Greedy (size 3)
    """
    name, colon, rest = word.partition(":")
    if colon and name not in REGISTRY and "=" not in rest.split(":")[0]:
        attribute, _, rest = rest.partition(":")
        name = f"{name}:{attribute}"
    return PolicySpec(name, assignments(f"{name}:", [pair for pair in rest.split(",") if pair.strip()]))


def completed(own: PolicySpec, settings: Settings, environment: EnvironmentSpec) -> PolicySpec:
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


def check_used(settings: Settings, makers: Iterable[Maker]) -> None:
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
