"""A policy that the lists of the documentation do not name is added when the site is built."""

from __future__ import annotations

from types import SimpleNamespace

import policy_pages
from coterie.policies import REGISTRY
from docs.pages import DOCS, read

LISTED = read(DOCS / policy_pages.INDEX)
REFERENCE = read(DOCS / policy_pages.API)


def without(text: str, start: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(start))


def test_lists_that_name_every_policy_stay_as_they_are() -> None:
    listed, reference = policy_pages.with_rows(LISTED), policy_pages.with_directives(REFERENCE)
    assert policy_pages.with_rows(listed) == listed
    assert policy_pages.with_directives(reference) == reference


def test_a_policy_that_is_missing_gets_its_row_and_its_place_in_the_reference() -> None:
    row = f"| [CAB](cab.md) | {REGISTRY['CAB'].summary} | {REGISTRY['CAB'].use_when} |"
    assert row in policy_pages.with_rows(without(LISTED, "| [CAB]")).splitlines()
    found = policy_pages.with_directives(without(REFERENCE, "::: coterie.CAB"))
    assert found.splitlines().count("::: coterie.CAB") == 1


def test_a_page_that_is_missing_comes_last_in_the_navigation() -> None:
    listed = [{name: entry.page} for name, entry in REGISTRY.items() if name != "CLUB"]
    pages = [{"All policies": policy_pages.INDEX}, {"A group": listed[:4]}, *listed[4:]]
    config = SimpleNamespace(nav=[{"Home": "index.md"}, {"Explanation": [{"Algorithms": pages}]}])
    found = policy_pages.on_config(config).nav[1]["Explanation"][0]["Algorithms"]
    assert found == [*pages, {"CLUB": "algorithms/club.md"}]
    assert policy_pages.with_pages(found) == found
