"""What `coterie run` is asked for: a TOML file, overridden by options, filled up with defaults."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import msgspec

from coterie.errors import ArgumentError, unknown
from coterie.experiments.specs import EnvironmentSpec
from coterie.policies.makers import registered_parameters
from coterie.validation import whole

Positive = Annotated[int, msgspec.Meta(ge=1)]
S = TypeVar("S")


class RunSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that `coterie run` can be told.

    `world` are parameters of `EnvironmentSpec`. `constants` are parameters of policies given by options such
    as `--alpha`, `params` those given by `--param`: both are for each policy that takes them.
    """

    policies: tuple[str, ...] = ()
    params: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    data: str | None = None
    columns: tuple[str, ...] | None = None
    threshold: float | None = None
    missing: str | None = None
    separator: str | None = None
    encoding: str | None = None
    items: str | None = None
    horizon: Positive = 20_000
    seeds: tuple[int, ...] = (0, 1, 2)
    record: Positive = 200
    out: str | None = None
    log: str | None = None
    log_share: float | None = None
    jobs: Positive | None = None
    engine: str = "local"
    world: dict[str, Any] = {}

    def table_options(self) -> dict[str, Any]:
        """How an own table is read: the arguments of `coterie.datasets.load` that were given."""
        names = ("columns", "threshold", "missing", "separator", "encoding", "items")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


SHORT_NAMES = {"users": "n_users", "clusters": "n_clusters", "arms": "n_arms"}
"""Options whose names are shorter than the parameters of the environment."""

TABLES = {"world": "--set", "params": "--param"}
"""Settings that are tables in a file, and the options that add to them."""

WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "array": "a list",
    "object": "a table",
    "bool": "true or false",
}


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
    for name in ("policies", "columns"):
        if isinstance(merged.get(name), str):
            merged[name] = [part.strip() for part in merged[name].split(",")]
    if "seeds" in merged:
        merged["seeds"] = read_seeds(merged["seeds"])
    return convert(merged, RunSettings)


def convert(values: Mapping[str, Any], kind: type[S]) -> S:
    """The values as an object of this kind; a wrong one is refused in a sentence."""
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise ArgumentError(_sentence(str(error), values, kind)) from None


def _sentence(said: str, values: Mapping[str, Any], kind: type[object]) -> str:
    """What msgspec says, in our words: `horizon must be a whole number of at least 1, got 0`."""
    message, _, where = said.partition(" - at `$.")
    name = re.split(r"[\[.`]", where)[0]
    if not name:
        return message.partition(" - at ")[0]
    expected = re.match(r"Expected `(\w+)[^`]*`(?: >= (\S+))?", message)
    if expected is None:
        choices = get_args(get_type_hints(kind).get(name))
        return f"{name} must be one of {', '.join(map(str, choices))}, got {values[name]!r}"
    least = f" of at least {expected[2]}" if expected[2] else ""
    return f"{name} must be {WORDS.get(expected[1], expected[1])}{least}, got {values[name]!r}"


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
    """Settings by name, with all parameters of the environment in `world` and of policies in `constants`."""
    environment, policy = EnvironmentSpec.names(), registered_parameters()
    fields = tuple(name for name in RunSettings.__struct_fields__ if name not in (*TABLES, "constants"))
    sorted_out: dict[str, Any] = {"world": {}, "constants": {}}
    for name, value in given.items():
        if name in fields:
            sorted_out[name] = value
        elif SHORT_NAMES.get(name, name) in environment:
            sorted_out["world"][SHORT_NAMES.get(name, name)] = value
        elif name in policy:
            sorted_out["constants"][name] = value
        elif name not in TABLES:
            every = (*fields, *SHORT_NAMES, *TABLES, *environment, *policy)
            raise unknown(f"setting in {where}:", name, every, "`coterie run --help` lists all")
    tables = {name: given.get(name, {}) for name in TABLES}
    for name, table in tables.items():
        if not isinstance(table, Mapping):
            raise ArgumentError(f"{name} must be a table [{name}], got {table!r}")
    return {
        **sorted_out,
        "world": {**sorted_out["world"], **tables["world"]},
        "params": dict(tables["params"]),
    }


def read_toml(file: Path) -> dict[str, Any]:
    """A TOML file; what is wrong is told with its line."""
    source = ""
    try:
        source = file.read_text(encoding="utf-8")
        content = tomllib.loads(source)
    except OSError as error:
        raise ArgumentError(f"cannot read {str(file)!r}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{file} is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except tomllib.TOMLDecodeError as error:
        end = f"at the end, line {source.count(chr(10)) + 1}"
        fault = str(error).replace("at end of document", end)
        raise ArgumentError(f"{file} is not TOML: {fault}") from None
    return {name.replace("-", "_"): value for name, value in content.items()}


def assignments(option: str, pairs: Iterable[str]) -> dict[str, Any]:
    """`key=value` pairs; values are read as TOML would, and bare words are text."""
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key.strip() and equals):
            raise ArgumentError(f"{option} needs key=value, got {pair!r}")
        found[key.strip().replace("-", "_")] = _value(value.strip())
    return found


def _value(written: str) -> bool | int | float | str:
    """A value as TOML would read it, or as Python would read a number; anything else is text."""
    if written in ("True", "False"):
        return written == "True"
    for read in (lambda text: tomllib.loads(f"value = {text}")["value"], float):
        try:
            value = read(written)
        except ValueError:
            continue
        if isinstance(value, bool | int | float | str):
            return value
    return written
