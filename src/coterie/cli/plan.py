"""From settings to runs: the world, the contenders and their constants, the datasets they draw from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from coterie import datasets
from coterie.cli.settings import Settings, assignments, number, whole
from coterie.errors import ArgumentError, unknown
from coterie.experiments.contenders import Contender
from coterie.experiments.execute import Engine
from coterie.experiments.grids import GRIDS, Grid, noise_of
from coterie.experiments.runs import Run
from coterie.experiments.shelf import OwnTable, Shelf
from coterie.experiments.store import Store
from coterie.experiments.watching import Watch
from coterie.experiments.worlds import World
from coterie.policies import find
from coterie.policies.base import MAKERS

WARM = 8  # rounds
DEFAULT = ("AutoCLUB",)
CONSTANTS = ("alpha", "beta", "explore", "phase", "growth", "ridge")
WORLD_NAMES = {"users": "n_users", "clusters": "n_clusters", "arms": "n_arms"}
WORLD_PLAIN = ("dataset", "setting", "dim", "noise", "scale")


class Plan(NamedTuple):
    """Everything to be played, and where its vectors come from."""

    world: World
    contenders: tuple[Contender, ...]
    runs: tuple[Run, ...]
    shelf: Shelf

    def label(self, run: Run) -> str:
        """The policy's name; with its constants where two contenders share it."""
        return self.labels[self.contenders.index(run.contender)]

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the contenders, no two alike."""
        names = [contender.policy for contender in self.contenders]
        pairs = zip(names, self.contenders, strict=True)
        return tuple(str(contender) if names.count(name) > 1 else name for name, contender in pairs)

    def warm_up(self, store: Store, engine: Engine, watch: Watch) -> None:
        """A few rounds of every contender that will be played here, so that compiling is not timed."""
        played = {run.contender: run for run in self.runs if run not in store}.values()
        engine.prepare(played, watch)
        for run in played if engine.here else ():
            replace(run, horizon=WARM, record=1).play(self.shelf.dataset(run.world))


def plan(settings: Settings) -> Plan:
    """The runs of these settings, by contender, then by seed."""
    datasets.about(settings.dataset)
    world = world_of(settings)
    specs = settings.policies or DEFAULT
    contenders = tuple(dict.fromkeys(contender(spec, settings, world) for spec in specs))
    check_used(settings, contenders)
    shelf = shelf_of(settings)
    data = shelf.sha256(world)
    runs = tuple(
        Run(
            world=world, contender=one, horizon=settings.horizon, seed=seed, record=settings.record, data=data
        )
        for one in contenders
        for seed in settings.seeds
    )
    for run in runs[:: len(settings.seeds)]:
        run.contender.make(
            run.world.environment(shelf.dataset(world), run.seed), run.seed
        )  # refuse now, not later
    return Plan(world, contenders, runs, shelf)


def shelf_of(settings: Settings) -> Shelf:
    """Where the dataset is."""
    if settings.dataset == "interactions":
        return OwnTable(settings.data, settings.columns, settings.threshold)
    if settings.columns is not None or settings.threshold is not None:
        raise ArgumentError("columns and threshold are for --dataset interactions, your own table")
    return Shelf(Path(settings.data) if settings.data else None)


def world_of(settings: Settings) -> World:
    """The world, with whatever else --set or [world] says about it."""
    known = [field.name for field in fields(World)]
    for name in settings.world:
        if name not in known:
            raise unknown("world setting", name, known, f"The settings are {', '.join(known)}")
    named = {theirs: getattr(settings, ours) for ours, theirs in WORLD_NAMES.items()}
    plain = {name: getattr(settings, name) for name in WORLD_PLAIN}
    told = {**named, **plain, **settings.world}
    defaults = World()
    return World(**{name: _alike(name, value, getattr(defaults, name)) for name, value in told.items()})


def _alike(name: str, value: Any, model: Any) -> Any:
    """The value, if it is of the model's kind; a whole number will do for a real one."""
    if isinstance(model, float):
        return number(name, value)
    if isinstance(model, int):
        return whole(name, value, 0)
    if not isinstance(value, str):
        raise ArgumentError(f"{name} must be text, got {value!r}")
    return value


def contender(spec: str, settings: Settings, world: World) -> Contender:
    """`CLUB` or `CLUB:alpha=1,beta=0.2`; what is not said comes from the options, then from the noise.

    With noise σ, α = 15σ and β = σ are places to start; 10 uniform rounds a user, phases of 4 a user.
    """
    name, _, rest = spec.partition(":")
    find(name)
    own = assignments(f"{name}:", [pair for pair in rest.split(",") if pair.strip()])
    sigma = noise_of(world)
    usual = {
        "alpha": float(f"{15 * sigma:.6g}"),
        "beta": float(f"{sigma:.6g}"),
        "explore": 10 * world.n_users,
        "phase": 4 * world.n_users,
    }
    given = {key: getattr(settings, key) for key in CONSTANTS if getattr(settings, key) is not None}
    told = {**usual, **given}
    if _has_graph(name):
        told["alpha"] = told["beta"]  # their alpha multiplies the width, which is what beta does elsewhere
    return _checked(name, own, told)


def taken(policy: str) -> tuple[str, ...]:
    """The constants that a policy takes: those that are tuned for it, and what its maker asks for besides."""
    grid, arguments = GRIDS.get(policy, Grid()), MAKERS[policy].arguments
    tuned = [name for name in CONSTANTS if getattr(grid, name, ())]
    others = [name for name in CONSTANTS if name in arguments and name not in tuned]
    return (*tuned, *others, *(("growth",) if "phase" in tuned else ()))


def check_used(settings: Settings, contenders: Iterable[Contender]) -> None:
    """Refuse a constant that none of the policies takes, instead of ignoring it."""
    policies = list(dict.fromkeys(one.policy for one in contenders))
    for key in CONSTANTS:
        if getattr(settings, key) is not None and not any(key in options(policy) for policy in policies):
            takes = "; ".join(f"{policy} takes {', '.join(options(policy))}" for policy in policies)
            raise ArgumentError(f"{key} is for policies that take it, and none of these does: {takes}")


def options(policy: str) -> tuple[str, ...]:
    """The options that set a policy's constants; `beta` sets the alpha of those that take a graph."""
    return tuple("beta" if key == "alpha" and _has_graph(policy) else key for key in taken(policy))


def _has_graph(policy: str) -> bool:
    return "graph" in MAKERS[policy].arguments


def _checked(policy: str, own: Mapping[str, Any], told: Mapping[str, Any]) -> Contender:
    takes = taken(policy)
    for key in own:
        if key not in takes:
            raise unknown(f"constant of {policy}:", key, takes, f"It takes {', '.join(takes)}")
    constants = {key: value for key, value in {**told, **own}.items() if key in takes}
    for key, value in constants.items():
        whole(key, value, 0) if key in ("explore", "phase") else number(key, value)
    return Contender(policy=policy, **constants)
