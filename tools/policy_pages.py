"""A hook of mkdocs: adds the policies that the lists of the documentation do not name yet.

So a new policy needs no other page than its own in `docs/algorithms`: it appears in the table of all
policies, in the navigation and in the API reference.
"""

from __future__ import annotations

from typing import Any

from coterie.policies import REGISTRY, PolicyEntry

INDEX, API = "algorithms/index.md", "reference/api/policies.md"


def with_rows(markdown: str) -> str:
    """The table of all policies, with a row for each that it lacks."""
    rows = [_row(entry) for entry in REGISTRY.values() if f"]({_file(entry)})" not in markdown]
    return _after_last(markdown, "| [", rows)


def with_directives(markdown: str) -> str:
    """The API reference of policies, with each that it lacks."""
    lines = markdown.splitlines()
    missing = [entry.name for entry in REGISTRY.values() if f"::: coterie.{entry.name}" not in lines]
    return _after_last(
        markdown, "::: coterie.Lin", [line for name in missing for line in ("", f"::: coterie.{name}")]
    )


def with_pages(pages: list[Any]) -> list[Any]:
    """The navigation, with the page of each policy that it lacks below the table of all policies."""
    found = [
        {name: with_pages(page) if isinstance(page, list) else page for name, page in section.items()}
        for section in pages
    ]
    listed = {page for section in found for page in section.values() if isinstance(page, str)}
    missing = [{one.name: one.page} for one in REGISTRY.values() if one.page not in _files(found)]
    return [*found, *missing] if INDEX in listed else found


def on_config(config: Any) -> Any:
    """Complete the navigation."""
    config.nav = with_pages(config.nav)
    return config


def on_page_markdown(markdown: str, *, page: Any, **kwargs: Any) -> str:
    """Complete the two lists."""
    complete = {INDEX: with_rows, API: with_directives}.get(page.file.src_uri)
    return complete(markdown) if complete else markdown


def _files(pages: list[Any]) -> set[str]:
    """All pages of a part of the navigation, whatever group they are in."""
    below = [page for section in pages for page in section.values()]
    return {file for page in below for file in (_files(page) if isinstance(page, list) else {page})}


def _file(entry: PolicyEntry) -> str:
    return entry.page.rpartition("/")[2]


def _row(entry: PolicyEntry) -> str:
    return f"| [{entry.name}]({_file(entry)}) | {entry.summary} | {entry.use_when} |"


def _after_last(markdown: str, start: str, more: list[str]) -> str:
    """The lines of a page, with more after the last that begins like this."""
    lines = markdown.splitlines()
    last = max(number for number, line in enumerate(lines) if line.startswith(start))
    return "\n".join([*lines[: last + 1], *more, *lines[last + 1 :]]) + "\n"
