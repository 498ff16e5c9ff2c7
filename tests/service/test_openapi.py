"""The service keeps to its OpenAPI document, whatever is sent to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from coterie.service.engine import Engine
from coterie.service.settings import PolicySettings
from coterie.service.sqlite import SQLiteStore

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")


@pytest.fixture(scope="module")
def schema() -> object:
    from coterie.service.app import build_app

    engine = Engine(SQLiteStore())
    live = engine.create("default", PolicySettings(dim=2))
    live.change_items({"tea": [1.0, 0.0], "coffee": [0.0, 1.0]})
    live.decide("alice", decision_id="d1")
    yield schemathesis.openapi.from_asgi("/openapi.json", build_app(engine))
    engine.close()


lazy = schemathesis.pytest.from_fixture("schema")


@lazy.parametrize()
@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_answers_are_as_the_document_says(case: object) -> None:
    call = case.call()  # type: ignore[attr-defined]
    assert call.status_code < 500, call.text
    case.validate_response(  # type: ignore[attr-defined]
        call,
        excluded_checks=[schemathesis.checks.CHECKS.get_one("positive_data_acceptance")] if False else [],
    )
