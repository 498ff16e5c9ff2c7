"""`coterie policies`: the policies, when to use each, and their parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.options import Json, complete_policy, examples
from coterie.cli.output import console, print_table, write_json

if TYPE_CHECKING:
    from coterie.policies.registry import PolicyEntry

EPILOG = examples(
    ("all of them", "coterie policies"),
    ("one of them, with its parameters", "coterie policies UniCLUB"),
    ("the names alone, for a script", "coterie policies --json | jq -r '.[].name'"),
)


def policies(
    name: Annotated[
        str | None, typer.Argument(help="A policy, to show its parameters.", autocompletion=complete_policy)
    ] = None,
    as_json: Json = False,
) -> None:
    """List the policies, and when to use each."""
    from coterie.policies.registry import REGISTRY, find

    if name is None:
        entries = list(REGISTRY.values())
        write_json([_record(entry) for entry in entries]) if as_json else _show_all(entries)
    else:
        entry = find(name)
        write_json(_record(entry)) if as_json else _show_one(entry)


def parameters(entry: PolicyEntry) -> list[dict[str, Any]]:
    """Name, default and meaning of each parameter; no default means that it must be given."""
    from inspect import Parameter, getdoc, signature

    found, meanings = [], described(getdoc(entry.make) or "")
    for parameter in signature(entry.make).parameters.values():
        required = parameter.default is Parameter.empty
        found.append(
            {
                "name": parameter.name,
                "required": required,
                "default": None if required else parameter.default,
                "type": str(parameter.annotation),
                "meaning": meanings.get(parameter.name, ""),
            }
        )
    return found


def described(text: str) -> dict[str, str]:
    """Parse the section "Parameters" of a docstring: the meaning of each parameter.

    >>> described("Parameters\\n----------\\na, b : int\\n    Two numbers.")
    {'a': 'Two numbers.', 'b': 'Two numbers.'}
    """
    section = text.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    found: dict[str, str] = {}
    names: list[str] = []
    for line in section.splitlines():
        if line.startswith(" "):
            found.update({name: f"{found.get(name, '')} {line.strip()}".strip() for name in names})
        else:
            names = [name.strip() for name in line.partition(" : ")[0].split(",")]
    return found


def _record(entry: PolicyEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "summary": entry.summary,
        "use_when": entry.use_when,
        "parameters": parameters(entry),
        "run_takes": list(_run_takes(entry)),
    }


def _run_takes(entry: PolicyEntry) -> tuple[str, ...]:
    """The parameters that `coterie run` can set."""
    from coterie.policies.factories import find_factory

    return find_factory(entry.name).parameters


def _show_all(entries: list[PolicyEntry]) -> None:
    rows = [(f"[bold]{entry.name}[/bold]", entry.summary, entry.use_when) for entry in entries]
    print_table(("policy", "what it is", "use it when"), rows, prose=("what it is", "use it when"))
    console().print(
        "[dim]`coterie policies NAME` shows its parameters, `coterie run NAME` tries it out.[/dim]"
    )


def _show_one(entry: PolicyEntry) -> None:
    from inspect import getdoc

    from rich.markup import escape

    out = console()
    text = (getdoc(entry.make) or "").partition("\nParameters\n")[0].rstrip()
    out.print(f"[bold]{entry.name}[/bold]: {entry.summary}. Use it when {entry.use_when}.\n")
    out.print(text, markup=False)
    rows = [
        (
            parameter["name"],
            "must be given" if parameter["required"] else repr(parameter["default"]),
            escape(parameter["meaning"] or parameter["type"]),
        )
        for parameter in parameters(entry)
    ]
    print_table(("parameter", "default", "meaning"), rows, left=("default",), prose=("meaning",))
    out.print(f"[dim]`coterie run {entry.name}:key=value` takes {', '.join(_run_takes(entry))}.[/dim]")
