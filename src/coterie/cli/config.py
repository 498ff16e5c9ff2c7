"""Values from a TOML file or from `key=value` pairs, converted and checked with a sentence for each error."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec

from coterie.errors import ArgumentError, unknown

S = TypeVar("S")


TYPE_NAMES = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "array": "a list",
    "object": "a table",
    "bool": "true or false",
}
"""Types that msgspec names in its errors, in plain words."""


COLUMN_ROLES = ("user", "item", "value", "time")
"""What the columns of your own table are, in the order in which loaders take them."""


def convert(values: Mapping[str, Any], kind: type[S]) -> S:
    """The values as an object of this kind; a wrong one is refused in a sentence."""
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise ArgumentError(_sentence(str(error), values, kind)) from None


def _sentence(error: str, values: Mapping[str, Any], kind: type[object]) -> str:
    """An error of msgspec as a sentence: `horizon must be a whole number of at least 1, got 0`."""
    message, _, where = error.partition(" - at `$.")
    name = re.split(r"[\[.`]", where)[0]
    if not name:
        return message.partition(" - at ")[0]
    expected = re.match(r"Expected `(\w+)[^`]*`(?: >= (\S+))?", message)
    if expected is None:
        choices = get_args(get_type_hints(kind).get(name))
        return f"{name} must be one of {', '.join(map(str, choices))}, got {values[name]!r}"
    least = f" of at least {expected[2]}" if expected[2] else ""
    return f"{name} must be {TYPE_NAMES.get(expected[1], expected[1])}{least}, got {values[name]!r}"


def read_toml(file: Path) -> dict[str, Any]:
    """Read a TOML file; an error names the line."""
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
    # Python's spelling is accepted beside that of TOML: as text, "False" would count as true.
    if written in ("True", "False"):
        return written == "True"
    # Numbers such as .5 and 1. are not TOML, but float() reads them.
    for read in (lambda text: tomllib.loads(f"value = {text}")["value"], float):
        try:
            value = read(written)
        except ValueError:
            continue
        if isinstance(value, bool | int | float | str):
            return value
    return written


def text_pairs(option: str, form: str, written: str) -> dict[str, str]:
    """`key=text` pairs separated by commas; keys and texts may have any other characters.

    >>> text_pairs("labels", "POLICY=LABEL", "CLUB=CLUB (2014), SCLUB=Ours")
    {'CLUB': 'CLUB (2014)', 'SCLUB': 'Ours'}
    """
    found = {}
    for pair in filter(str.strip, written.split(",")):
        key, equals, text = (part.strip() for part in pair.partition("="))
        if not (key and equals and text):
            raise ArgumentError(f"{option} must be {form} pairs separated by commas, got {pair!r}")
        found[key] = text
    return found


def column_pairs(written: str) -> dict[str, str]:
    """The columns of your own table by their roles.

    >>> column_pairs("item=film,user=viewer,value=stars")
    {'item': 'film', 'user': 'viewer', 'value': 'stars'}
    """
    return text_pairs("columns", "OURS=YOURS", written)


def ordered_columns(columns: Mapping[str, str], setting: str | None) -> list[str]:
    """The names of columns in the order in which loaders take them; a role not given is its column's name.

    >>> ordered_columns({"item": "film", "value": "stars"}, "rated")
    ['user', 'film', 'stars']
    """
    for role in columns:
        if role not in COLUMN_ROLES:
            raise unknown("column of a table", role, COLUMN_ROLES, f"They are {', '.join(COLUMN_ROLES)}")
    needed = ("user", "item", "time") if setting == "stream" else ("user", "item")
    if "time" in columns and "time" not in needed:
        raise ArgumentError("columns have no use for a time, which is for --setting stream: leave it out")
    every = {**dict(zip(needed, needed, strict=True)), **columns}
    return [every[role] for role in COLUMN_ROLES if role in every]
