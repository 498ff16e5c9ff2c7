"""The dashboard of Grafana and the rules of Prometheus name only metrics and labels that the service has."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import httpx
import pytest

from build.test_project import read_yaml
from coterie.service.client import Client
from coterie.service.http.prometheus import COUNTERS
from service.serving import served
from service.shops import ITEMS

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "rules.yml"
DASHBOARD = DEPLOY / "grafana" / "dashboard.json"
METRIC = re.compile(r"(?<![\w:])(coterie_\w+)(?:\{([^}]*)\})?(\[[^\]]+\])?")


def rules() -> list[dict[str, Any]]:
    """All rules of all groups."""
    return [rule for group in read_yaml(RULES)["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    """All panels."""
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return found


def expressions() -> list[str]:
    """All expressions of both files."""
    shown = [target["expr"] for panel in panels() for target in panel["targets"]]
    return [*shown, *(rule["expr"] for rule in rules())]


@pytest.fixture(scope="module")
def metrics() -> dict[str, set[str]]:
    """The labels of each metric of a service that has been used, by its name; those of its type too."""
    with served(None, dim=2) as one, Client(one.url) as client:
        client.put_items(ITEMS)
        client.reward(client.decide("alice").decision_id, 1.0)
        text = httpx.get(f"{one.url}/metrics", trust_env=False).text
    found: dict[str, set[str]] = {name: {"policy"} for name in re.findall(r"# TYPE (\w+) ", text)}
    for name, labels in re.findall(r"^(\w+)(?:\{(.*)\})? \S+$", text, re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r"(\w+)=", labels))
    return found


def test_every_metric_and_label_exists(metrics: dict[str, set[str]]) -> None:
    named = set()
    for expression in expressions():
        for name, filters, _ in METRIC.findall(expression):
            assert name in metrics, f"{name} in {expression}"
            named.add(name)
            for label in re.findall(r"(\w+)\s*[!=]", filters):
                assert label in metrics[name], f"{label} of {name} in {expression}"
        labels = {
            one.strip()
            for listed in re.findall(r"(?:by|on) \(([^)]*)\)", expression)
            for one in listed.split(",")
        }
        known = set().union(*(metrics[name] for name, *_ in METRIC.findall(expression)))
        assert labels <= known, expression
    assert len(named) > 25


def test_counters_are_rated_and_gauges_are_not() -> None:
    for expression in expressions():
        for function, name in re.findall(r"(rate|increase|delta)\((coterie_\w+)", expression):
            rises = name in COUNTERS or name.endswith(("_total", "_bucket"))
            assert rises == (function != "delta"), expression


def test_expressions_are_balanced_and_every_alert_says_what_it_means() -> None:
    for expression in expressions():
        for one, other in ("()", "{}", "[]"):
            assert expression.count(one) == expression.count(other), expression
    alerts = [rule for rule in rules() if "alert" in rule]
    assert len({rule["alert"] for rule in alerts}) == len(alerts) > 5
    for rule in alerts:
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("page", "warning")
        assert rule["annotations"]["summary"].endswith(".")
        # What a summary names is a label that the expression leaves.
        for label in re.findall(r"\$labels\.(\w+)", str(rule["annotations"])):
            assert re.search(rf"by \([^)]*\b{label}\b", rule["expr"]), rule["alert"]


def test_panels_have_titles_places_of_their_own_and_one_source() -> None:
    found = panels()
    assert len({panel["id"] for panel in found}) == len({panel["title"] for panel in found}) == len(found)
    for panel in found:
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
    for one, other in combinations([panel["gridPos"] for panel in found], 2):
        apart = [
            one[start] >= other[start] + other[size] or other[start] >= one[start] + one[size]
            for start, size in (("x", "w"), ("y", "h"))
        ]
        assert any(apart), (one, other)
