"""No request makes the service fail: hostile JSON, paths and numbers on every route."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coterie.policies.registry import REGISTRY
from coterie.service.http.api_keys import create_key
from coterie.service.http.routes import ROUTES
from service.serving import served

BODIES = [route for route in ROUTES if route.method in ("POST", "PUT", "PATCH")]
READS = [route for route in ROUTES if route.method in ("GET", "DELETE") and not route.path.endswith("/live")]
JSON = {"Content-Type": "application/json"}
DEEP = "[" * 5_000 + "]" * 5_000
HUGE = "1" + "0" * 400


def table(parts: dict[str, str]) -> str:
    """A JSON object of names and values that are JSON already."""
    return f"{{{','.join(f'{name}:{value}' for name, value in parts.items())}}}"


numbers = st.sampled_from(
    ["0", "-1", "1", "2", "1e9", "1000000000", "1e308", "-1e308", "1e-320", "1e999", HUGE, f"-{HUGE}"]
)
texts = st.sampled_from(
    ['""', '"a"', '"default"', '"\\u0000"', '"\\ud800"', '"🜚"', f'"{"x" * 300}"', '"0.5"', '"NaN"']
)
scalars = numbers | texts | st.sampled_from(["true", "false", "null", "NaN", DEEP, "[", "", "{}", "[]"])
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda parts: f"[{','.join(parts)}]")
        | st.dictionaries(texts, inner, max_size=3).map(table)
    ),
    max_leaves=6,
)
policies = st.sampled_from([f'"{name}"' for name in REGISTRY]) | values
params = st.dictionaries(
    st.sampled_from(
        ["alpha", "beta", "ridge", "n_clusters", "graph", "labels", "gamma", "explore", "n_seeds", "window"]
    ),
    values,
    max_size=3,
).map(lambda parts: table({f'"{name}"': value for name, value in parts.items()}))
FIELDS: dict[str, st.SearchStrategy[str]] = {
    "name": st.sampled_from(['"p1"', '"p2"', '"../a"']) | values,
    "policy": policies,
    "dim": st.sampled_from(["1", "2", "2.0"]) | values,
    "params": params | values,
    "users": st.sampled_from(['["a","b"]', '["a"]']) | values,
}
RIGHT = {
    "user": '"alice"',
    "reward": "1",
    "x": "[1,0]",
    "arms": '[{"id":"a","x":[1,0]}]',
    "decision_id": '"d1"',
}


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with served(str(tmp_path_factory.mktemp("hostile") / "a.db"), dim=2) as one:
        live = one.engine.find("default")
        live.change_items({"tea": [1.0, 0.0], "coffee": [0.0, 1.0]})
        live.decide("alice", decision_id="d1")
        with httpx.Client(base_url=one.url, trust_env=False, timeout=30) as client:
            yield client


@st.composite
def bodies(draw: st.DrawFn, names: tuple[str, ...]) -> str:
    """A body with the names of the fields that a route takes, mostly right, and hostile values."""
    if not names or draw(st.integers(0, 9)) == 0:
        return draw(values)
    fields = draw(st.lists(st.sampled_from(names), unique=True))
    told = {name: draw(FIELDS.get(name, values)) for name in fields}
    for name in names:
        if name in RIGHT and name not in told and draw(st.booleans()):
            told[name] = RIGHT[name]
    return table({f'"{name}"': value for name, value in told.items()})


@pytest.mark.parametrize("route", BODIES, ids=lambda route: f"{route.method} {route.path}")
def test_hostile_json_gets_an_answer_below_500(http: httpx.Client, route: Any) -> None:
    names = (
        route.request.__struct_encode_fields__
        if route.request is not None
        else ("user", "reward", "x", "arms", "arm", "decision_id")
    )
    if route.path.endswith("/rewards"):
        names = ("reward", "decision_id", "user", "item", "x", "id")

    @given(bodies(tuple(names)))
    @settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    def send(body: str) -> None:
        if route.path.endswith("/rewards"):
            body = f'{{"rewards":[{body}]}}'
        path = route.path.replace("{policy}", "default")
        answer = http.request(
            route.method,
            path,
            content=body.encode("utf-8", "surrogatepass"),
            headers=JSON,
        )
        assert answer.status_code < 500, (body[:300], answer.text)
        if answer.status_code == 201 and route.path == "/v1/policies":
            http.delete(f"/v1/policies/{answer.json()['name']}")

    send()


@pytest.mark.parametrize("route", READS, ids=lambda route: f"{route.method} {route.path}")
def test_hostile_paths_get_an_answer_below_500(http: httpx.Client, route: Any) -> None:
    parts = st.sampled_from(
        ["alice", "0", "9" * 5_000, "-1", "%00", "%ff", "..", "%2e%2e%2f", "a" * 3_000, "é", "1e9", "٣"]
    )

    @given(parts, parts, st.sampled_from(["", "?limit=", "?start=", "?item=", "?id=", "?format="]), parts)
    @settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    def ask(policy: str, rest: str, query: str, value: str) -> None:
        for name in ("default", policy):
            if route.method == "DELETE" and name == "default" and route.path.endswith("{policy}"):
                continue
            path = (
                route.path.replace("{policy}", name).replace("{user:path}", rest).replace("{cluster}", rest)
            )
            answer = http.request(route.method, path + (query + value if query else ""))
            assert answer.status_code < 500, (path[:100], answer.text)

    ask()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"params": {"ridge": "@DEEP"}}, "nested"),
        ({"params": {"ridge": [[[[[[[[[1]]]]]]]]]}}, "params may be nested 8 deep"),
        ({"params": {"ridge": "@HUGE"}}, "ridge must be"),
        ({"policy": "DynUCB", "params": {"n_clusters": 10**9}}, "n_clusters must be at most 1048576"),
        ({"policy": "DynUCB", "params": {"n_clusters": "@HUGE"}}, "n_clusters must be at most 1048576"),
        (
            {"policy": "GOBLin", "users": ["a", "b"], "params": {"graph": [[0, 1], [1]]}},
            "rows of unequal length",
        ),
        (
            {"policy": "LinUCBOracle", "users": ["a", "b"], "params": {"labels": [[0], [1, 2]]}},
            "rows of unequal length",
        ),
    ],
)
def test_a_policy_that_cannot_be_made_is_told_in_a_sentence(
    http: httpx.Client, fields: dict[str, Any], sentence: str
) -> None:
    body = json.dumps({"name": "p", "dim": 2, **fields}).replace('"@DEEP"', DEEP).replace('"@HUGE"', HUGE)
    answer = http.post("/v1/policies", content=body, headers=JSON)
    assert answer.status_code in (400, 422)
    assert sentence in answer.json()["detail"]


def test_the_key_is_checked_before_the_path_and_the_body_are_read(tmp_path: Path) -> None:
    with served(str(tmp_path / "a.db")) as one, httpx.Client(base_url=one.url, trust_env=False) as http:
        one.engine.journal.run(lambda: create_key(one.engine.store, "admin"))
        one.keys.refresh()
        for route in ROUTES:
            if route.role is None:
                continue
            path = route.path.replace("{policy}", "none").replace("{user:path}", "%00")
            answer = http.request(
                route.method, path.replace("{cluster}", "1" * 5_000), content=DEEP.encode(), headers=JSON
            )
            assert answer.status_code == 401, (route.path, answer.text)


def test_ids_that_a_store_cannot_have_are_refused_in_paths(where: str) -> None:
    with served(where, dim=2) as one, httpx.Client(base_url=one.url, trust_env=False) as http:
        for method, path in (
            ("DELETE", "default/users/%00"),
            ("GET", "default/history/%00"),
            ("GET", "default/users/a%1Fb"),
            ("DELETE", "a%00b/users/alice"),
            ("GET", "a%00b"),
        ):
            found = http.request(method, f"/v1/policies/{path}")
            assert (found.status_code, path) == (422, path)
            assert "in the path must be without control characters" in found.json()["detail"]
        for name in ("decision_id", "id"):
            body = {"rewards": [{name: "a\0b", "reward": 1.0}]}
            assert http.post("/v1/policies/default/rewards", json=body).status_code in (404, 422)
