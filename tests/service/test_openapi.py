"""The service keeps to its OpenAPI document, whatever is sent to it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from coterie.service.core.engine import PolicyEngine
from coterie.service.core.experiments import Experiment
from coterie.service.http.admission import Admission
from coterie.service.http.application import build_app
from coterie.service.http.openapi import plain_path
from coterie.service.http.routes import ROUTES
from coterie.service.settings import PolicySettings
from coterie.service.storage.sqlite import SQLiteStore
from optional import need_package

schemathesis = need_package("schemathesis")
positive_data_acceptance = import_module("schemathesis.specs.openapi.checks").positive_data_acceptance
OPERATIONS = [
    (route.method, plain_path(route.path)) for route in ROUTES if not route.path.endswith("}/live")
]  # which never ends


def json_lines(ctx: Any, value: Any) -> bytes:
    """A body of lines as it is."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


schemathesis.serializer("application/x-ndjson")(json_lines)


@pytest.fixture(scope="module")
def schema() -> Iterator[Any]:
    engine = PolicyEngine(SQLiteStore())
    live = engine.create("default", PolicySettings(dim=2)).result
    live.change_items({"tea": [1.0, 0.0], "coffee": [0.0, 1.0]})
    live.decide("alice", decision_id="d1")
    engine.settle(engine.create("other", PolicySettings(dim=2)))
    engine.experiments.create(Experiment(name="spring", shares={"default": 1.0, "other": 1.0}))
    app = build_app(engine, admission=Admission(frozenset({"*"})))  # schemathesis calls it "testserver"
    yield schemathesis.openapi.from_asgi("/openapi.json", app)
    app.close()
    engine.close()


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_answers_are_as_the_document_says(schema: Any, method: str, path: str) -> None:
    """No request makes the service fail, and every answer is one that the document tells of."""

    @given(case=schema[path][method].as_strategy())
    @settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    def ask(case: Any) -> None:
        if case.path_parameters and "policy" in case.path_parameters and case.method != "DELETE":
            case.path_parameters["policy"] = "default"
        if case.path_parameters and "experiment" in case.path_parameters:
            case.path_parameters["experiment"] = "spring"
        answer = case.call()
        assert answer.status_code < 500, answer.text
        case.validate_response(answer, excluded_checks=[positive_data_acceptance])  # 422 may be right

    ask()
