"""What `coterie run` is asked for: a TOML file, overridden by options, filled up with defaults."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coterie.errors import ArgumentError, unknown
from coterie.validation import number, whole

LISTER = "`coterie run --help` lists all"


def text(name: str, value: object) -> str:
    """Some text."""
    if not isinstance(value, str):
        raise ArgumentError(f"{name} must be text, got {value!r}")
    return value


def texts(name: str, value: object) -> tuple[str, ...]:
    """Several texts, or one that names them between commas."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple):
        raise ArgumentError(f"{name} must be a list of names, got {value!r}")
    return tuple(text(name, part).strip() for part in parts)


def seeds(name: str, value: Any) -> tuple[int, ...]:
    """A count n for the seeds 0 to n − 1, or the seeds themselves: a list, or text with commas."""
    try:
        parts = [int(part) for part in value.split(",") if part.strip()] if isinstance(value, str) else value
        if isinstance(value, str) and "," not in value and isinstance(parts, list):
            parts = parts[0]
    except (ValueError, IndexError):
        raise ArgumentError(f"seeds must be a count such as 5 or a list such as 3,7, got {value!r}") from None
    if isinstance(parts, list | tuple):
        chosen = tuple(dict.fromkeys(whole("a seed", part, 0) for part in parts))
        if chosen:
            return chosen
        raise ArgumentError("seeds must name at least one seed, got none")
    return tuple(range(whole(name, parts, 1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All that `coterie run` can be told.

    `world` are parameters of `EnvironmentSpec`. `constants` are parameters of policies given by options such
    as `--alpha`, `params` those given by `--param`: both are for each policy that takes them.
    """

    policies: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    data: str | None = None
    columns: tuple[str, ...] | None = None
    threshold: float | None = None
    horizon: int = 20_000
    seeds: tuple[int, ...] = (0, 1, 2)
    record: int = 200
    out: str | None = None
    jobs: int | None = None
    engine: str = "local"
    world: Mapping[str, Any] = field(default_factory=dict)


READERS: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(("horizon", "record", "jobs"), lambda name, value: whole(name, value, 1)),
    **dict.fromkeys(("data", "out", "engine"), text),
    **dict.fromkeys(("policies", "columns"), texts),
    "threshold": number,
    "seeds": seeds,
}
"""How each setting is checked; parameters are checked by what they are for."""

SHORT = {"users": "n_users", "clusters": "n_clusters", "arms": "n_arms"}
"""Options whose names are shorter than the parameters of the environment."""

TABLES = {"world": "--set", "params": "--param"}
"""Settings that are tables in a file, and the options that add to them."""


def gather(file: Path | None, options: Mapping[str, Any]) -> Settings:
    """The settings of a file, overridden by the options that were given."""
    given = {name: value for name, value in options.items() if value not in (None, [], ())}
    named = [*given.pop("policies", ()), *given.pop("policy", ())]
    if named:
        given["policies"] = named
    for name, option in TABLES.items():
        given[name] = assignments(option, given.pop(name, ()))
    first, second = sort_out(read(file) if file is not None else {}, str(file)), sort_out(given, "options")
    values: dict[str, Any] = {
        name: {**first.pop(name), **second.pop(name)} for name in (*TABLES, "constants")
    }
    values.update((name, READERS[name](name, value)) for name, value in {**first, **second}.items())
    return Settings(**values)


def sort_out(told: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Settings by name, with all parameters of the environment in `world` and of policies in `constants`."""
    from coterie.experiments.makers import registered_parameters
    from coterie.experiments.specs import EnvironmentSpec

    environment, policy = EnvironmentSpec.names(), registered_parameters()
    sorted_out: dict[str, Any] = {"world": {}, "constants": {}}
    for name, value in told.items():
        if name in READERS:
            sorted_out[name] = value
        elif SHORT.get(name, name) in environment:
            sorted_out["world"][SHORT.get(name, name)] = value
        elif name in policy:
            sorted_out["constants"][name] = value
        elif name not in TABLES:
            raise unknown(
                f"setting in {where}:", name, (*READERS, *SHORT, *TABLES, *environment, *policy), LISTER
            )
    tables = {name: told.get(name, {}) for name in TABLES}
    for name, table in tables.items():
        if not isinstance(table, Mapping):
            raise ArgumentError(f"{name} must be a table [{name}], got {table!r}")
    return {
        **sorted_out,
        "world": {**sorted_out["world"], **tables["world"]},
        "params": dict(tables["params"]),
    }


def read(file: Path) -> dict[str, Any]:
    """A TOML file as settings; what is wrong is told with its line."""
    source = ""
    try:
        source = file.read_text(encoding="utf-8")
        told = tomllib.loads(source)
    except OSError as error:
        raise ArgumentError(f"cannot read {str(file)!r}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{file} is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except tomllib.TOMLDecodeError as error:
        end = f"at the end, line {source.count(chr(10)) + 1}"
        fault = str(error).replace("at end of document", end)
        raise ArgumentError(f"{file} is not TOML: {fault}") from None
    return {name.replace("-", "_"): value for name, value in told.items()}


def assignments(what: str, pairs: object) -> dict[str, Any]:
    """`key=value` pairs; values are read as TOML would, and bare words are text."""
    found: dict[str, Any] = {}
    for pair in pairs if isinstance(pairs, Iterable) else ():
        key, equals, value = str(pair).partition("=")
        if not (key.strip() and equals):
            raise ArgumentError(f"{what} needs key=value, got {str(pair)!r}")
        found[key.strip().replace("-", "_")] = _value(value.strip())
    return found


def _value(written: str) -> bool | int | float | str:
    """A value as TOML would read it, or as Python would read a number; anything else is text."""
    for read_value in (_from_toml, float, _truth):
        try:
            value = read_value(written)
        except ValueError:
            continue
        if isinstance(value, bool | int | float | str):
            return value
    return written


def _from_toml(written: str) -> Any:
    return tomllib.loads(f"value = {written}")["value"]


def _truth(written: str) -> bool:
    """True or False as Python writes them."""
    if written not in ("True", "False"):
        raise ValueError
    return written == "True"
