"""What `coterie run` is asked for: a TOML file, overridden by options, filled up with defaults."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from coterie.errors import ArgumentError, unknown

LISTER = "`coterie run --help` lists all"


def whole(name: str, value: object, least: int = 1) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ArgumentError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return value


def number(name: str, value: object) -> float:
    """Any number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ArgumentError(f"{name} must be a number, got {value!r}")
    return float(value)


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


def seeds(name: str, value: object) -> tuple[int, ...]:
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
    return tuple(range(whole(name, parts)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All that `coterie run` can be told; the names are those of the options and of the keys in TOML."""

    policies: tuple[str, ...] = ()
    dataset: str = "synthetic"
    data: str | None = None
    columns: tuple[str, ...] | None = None
    threshold: float | None = None
    setting: str = "stochastic"
    users: int = 50
    clusters: int = 10
    arms: int = 100
    dim: int = 50
    noise: float = 0.1
    scale: str = "unit"
    horizon: int = 20_000
    seeds: tuple[int, ...] = (0, 1, 2)
    record: int = 200
    alpha: float | None = None
    beta: float | None = None
    explore: int | None = None
    phase: int | None = None
    growth: float | None = None
    ridge: float | None = None
    out: str | None = None
    jobs: int | None = None
    engine: str = "local"
    world: Mapping[str, Any] = field(default_factory=dict)


READERS: dict[str, Callable[[str, object], Any]] = {
    **dict.fromkeys(("users", "clusters", "arms", "dim", "horizon", "record", "jobs"), whole),
    **dict.fromkeys(("explore", "phase"), lambda name, value: whole(name, value, 0)),
    **dict.fromkeys(("threshold", "noise", "alpha", "beta", "growth", "ridge"), number),
    **dict.fromkeys(("dataset", "data", "setting", "scale", "out", "engine"), text),
    **dict.fromkeys(("policies", "columns"), texts),
    "seeds": seeds,
}
"""How each setting is checked."""


def gather(file: Path | None, options: Mapping[str, object]) -> Settings:
    """The settings of a file, overridden by the options that were given."""
    told = read(file) if file is not None else {}
    extra = told.pop("world", {})
    if not isinstance(extra, dict):
        raise ArgumentError(f"world must be a table [world], got {extra!r}")
    given = {name: value for name, value in options.items() if value not in (None, [], ())}
    extra = {**extra, **assignments("--set", given.pop("world", ()))}
    values = {**told, **given}
    return Settings(**{name: READERS[name](name, value) for name, value in values.items()}, world=extra)


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
    known = [one.name for one in fields(Settings)]
    told = {name.replace("-", "_"): value for name, value in told.items()}
    for name in told:
        if name not in known:
            raise unknown(f"setting in {file}:", name, known, LISTER)
    return told


def assignments(what: str, pairs: object) -> dict[str, Any]:
    """`key=value` pairs; values are read as TOML would, and bare words are text."""
    found: dict[str, Any] = {}
    for pair in pairs if isinstance(pairs, Iterable) else ():
        key, equals, value = str(pair).partition("=")
        if not (key.strip() and equals):
            raise ArgumentError(f"{what} needs key=value, got {str(pair)!r}")
        found[key.strip().replace("-", "_")] = _value(value.strip())
    return found


def _value(written: str) -> Any:
    try:
        return tomllib.loads(f"value = {written}")["value"]
    except tomllib.TOMLDecodeError:
        return written
