"""Settings of `coterie run`: a TOML file, overridden by options, completed by defaults; and their runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from coterie import datasets
from coterie.cli.config import assignments, column_pairs, convert, ordered_columns, read_toml, text_pairs
from coterie.datasets.real_feedback import SETTINGS as REAL_SETTINGS
from coterie.errors import ArgumentError, unknown
from coterie.experiments.run_plan import (
    DEFAULT_HORIZON,
    RunPlan,
    SharedParameters,
    default_policies,
    plan_runs,
    usual_environment,
)
from coterie.experiments.runner import DataFiles
from coterie.experiments.specs import NEEDED, EnvironmentSpec, PolicySpec
from coterie.policies.factories import registered_parameters
from coterie.policies.registry import REGISTRY
from coterie.validation import whole

Positive = Annotated[int, msgspec.Meta(ge=1)]


SHORT_NAMES = {"users": "n_users", "clusters": "n_clusters", "arms": "n_arms"}
"""Options whose names are shorter than the parameters of the environment."""


TABLES = {"environment": "--set", "params": "--param"}
"""Settings that are tables in a file, and the options that add to them."""


class RunSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of `coterie run`.

    `environment` holds parameters of `EnvironmentSpec`. `constants` holds parameters of policies given by
    options such as `--alpha`, `params` those given by `--param`: both are for each policy that takes them.
    """

    policies: tuple[str, ...] = ()
    params: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    data: str | None = None
    columns: dict[str, str] | None = None
    threshold: float | None = None
    missing: str | None = None
    separator: str | None = None
    encoding: str | None = None
    items: str | None = None
    horizon: Positive = DEFAULT_HORIZON
    seeds: tuple[int, ...] = (0, 1, 2)
    record: Positive = 200
    out: str | None = None
    tune: bool = False
    latex: bool = False
    title: str | None = None
    labels: dict[str, str] = {}
    width: float | None = None
    log: str | None = None
    log_share: float | None = None
    jobs: Positive | None = None
    engine: str = "local"
    environment: dict[str, Any] = {}

    def table_options(self) -> dict[str, Any]:
        """How your own table is read: the arguments of `coterie.datasets.load` that were given."""
        names = ("threshold", "missing", "separator", "encoding", "items")
        found = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        if self.columns is not None:
            found["columns"] = ordered_columns(self.columns, self.environment.get("setting"))
        return found


def read_settings(file: Path | None, options: Mapping[str, Any]) -> RunSettings:
    """The settings of a file, overridden by the options that were given."""
    given = {name: value for name, value in options.items() if value not in (None, [], ())}
    named = [*given.pop("policies", ()), *given.pop("policy", ())]
    if named:
        given["policies"] = named
    for name, option in TABLES.items():
        given[name] = assignments(option, given.pop(name, ()))
    first = sort_names(read_toml(file) if file is not None else {}, str(file))
    second = sort_names(given, "options")
    merged = {**first, **second}
    for name in (*TABLES, "constants"):
        merged[name] = {**first[name], **second[name]}
    if isinstance(merged.get("policies"), str):
        merged["policies"] = [part.strip() for part in merged["policies"].split(",")]
    if isinstance(merged.get("columns"), str):
        merged["columns"] = column_pairs(merged["columns"])
    if isinstance(merged.get("labels"), str):
        merged["labels"] = text_pairs("labels", "POLICY=LABEL", merged["labels"])
    if "seeds" in merged:
        merged["seeds"] = read_seeds(merged["seeds"])
    return convert(merged, RunSettings)


def read_seeds(value: Any) -> tuple[int, ...]:
    """A count n for the seeds 0 to n − 1, or the seeds themselves: a list, or text with commas."""
    try:
        parts = [int(part) for part in value.split(",") if part.strip()] if isinstance(value, str) else value
        if isinstance(value, str) and "," not in value:
            parts = parts[0]
    except (ValueError, IndexError):
        raise ArgumentError(f"seeds must be a count such as 5 or a list such as 3,7, got {value!r}") from None
    if not isinstance(parts, list | tuple):
        return tuple(range(whole("seeds", parts, 1)))
    chosen = tuple(dict.fromkeys(whole("a seed", part, 0) for part in parts))
    if not chosen:
        raise ArgumentError("seeds must name at least one seed, got none")
    return chosen


def sort_names(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Settings by name, with those of `EnvironmentSpec` in `environment`, of policies in `constants`."""
    environment, policy = EnvironmentSpec.names(), registered_parameters()
    fields = tuple(name for name in RunSettings.__struct_fields__ if name not in (*TABLES, "constants"))
    sorted_out: dict[str, Any] = {"environment": {}, "constants": {}}
    for name, value in given.items():
        if name in fields:
            sorted_out[name] = value
        elif SHORT_NAMES.get(name, name) in environment:
            sorted_out["environment"][SHORT_NAMES.get(name, name)] = value
        elif name in policy:
            sorted_out["constants"][name] = value
        elif name not in TABLES:
            every = (*fields, *SHORT_NAMES, *TABLES, *environment, *policy)
            raise unknown("option", name, every, f"It is in {where}; `coterie run --help` lists all")
    tables = {name: given.get(name, {}) for name in TABLES}
    for name, table in tables.items():
        if not isinstance(table, Mapping):
            raise ArgumentError(f"{name} must be a table [{name}], got {table!r}")
    return {
        **sorted_out,
        "environment": {**sorted_out["environment"], **tables["environment"]},
        "params": dict(tables["params"]),
    }


def parse_policy(word: str) -> PolicySpec:
    """Parse `CLUB`, `CLUB:alpha=1,beta=0.2`, `module:Policy` or `module:Policy:size=3`.

    >>> print(parse_policy("CLUB:beta=0.2"), parse_policy("mine:Greedy:size=3"), sep=", ")
    CLUB (beta 0.2), mine:Greedy (size 3)
    """
    name, colon, rest = word.partition(":")
    # `CLUB:alpha=1` and `module:Class` share a syntax: what follows a registered name is never a class.
    if colon and name not in REGISTRY and "=" not in rest.split(":")[0]:
        attribute, _, rest = rest.partition(":")
        name = f"{name}:{attribute}"
    return PolicySpec(name, assignments(f"{name}:", [pair for pair in rest.split(",") if pair.strip()]))


def plan_settings(settings: RunSettings) -> RunPlan:
    """The runs of these settings; what cannot be made is refused now."""
    environment = environment_of(settings)
    datasets.about(environment.dataset)
    for name in ("latex", "title", "width"):
        if settings.out is None and getattr(settings, name) not in (None, False):
            raise ArgumentError(f"{name} is for the files that --out writes: give --out FOLDER too")
    if settings.width is not None and not 2 <= settings.width <= 20:
        raise ArgumentError(f"width must be from 2 to 20 inches, got {settings.width:g}")
    plan = _planned(settings, environment)
    for label in settings.labels:
        if label not in plan.labels:
            raise unknown("policy of this run:", label, plan.labels, f"They are {', '.join(plan.labels)}")
    return plan


def _planned(settings: RunSettings, environment: EnvironmentSpec) -> RunPlan:
    return plan_runs(
        environment,
        [parse_policy(word) for word in settings.policies or default_policies(environment)],
        data_files(settings, environment),
        horizon=settings.horizon,
        seeds=settings.seeds,
        record=settings.record,
        shared=SharedParameters(settings.constants, settings.params),
        has_noise="noise" in settings.environment,
    )


def environment_of(settings: RunSettings) -> EnvironmentSpec:
    """The environment, with whatever --set or [environment] says about it."""
    names = EnvironmentSpec.names()
    for name in settings.environment:
        if name not in names:
            raise unknown("environment parameter", name, names, f"The parameters are {', '.join(names)}")
    setting = settings.environment.get("setting")
    is_real = setting in REAL_SETTINGS
    if is_real and (settings.missing or settings.separator or settings.encoding):
        raise ArgumentError(f"--missing, --separator and --encoding cannot be given with --setting {setting}")
    usual = usual_environment(
        settings.environment,
        data=settings.data,
        is_own_table=settings.columns is not None or settings.items is not None,
        threshold=settings.threshold,
    )
    environment = convert({**usual, **settings.environment}, EnvironmentSpec)
    shown = {name: short for short, name in SHORT_NAMES.items()}
    for name in environment.without_effect(settings.environment):
        told = "other parameters of this environment"
        where = told if name in NEEDED or name in ("noise", "window") else f"--setting {environment.setting}"
        raise ArgumentError(f"{shown.get(name, name)} has no effect with {where}: leave it out")
    return environment


def data_files(settings: RunSettings, environment: EnvironmentSpec) -> DataFiles:
    """Where the dataset is, and how your own table is read."""
    options, path = settings.table_options(), Path(settings.data) if settings.data else None
    if environment.is_real:
        options.pop("threshold", None)  # a parameter of the environment there
    elif "items" in options:
        raise ArgumentError("items can only be given with --setting payoffs")
    if options and environment.dataset != "interactions":
        given = " and ".join(options)
        raise ArgumentError(f"{given} can only be given with --dataset interactions, your own table")
    if path is not None and environment.dataset == "synthetic" and not environment.is_real:
        raise ArgumentError("data has no effect with --dataset synthetic: leave it out")
    return DataFiles(files={environment.dataset: path} if path else {}, table_options=options)
