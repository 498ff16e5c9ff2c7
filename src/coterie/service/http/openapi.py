"""The OpenAPI document, generated from the routes and the messages."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from coterie.service.http.routes import Endpoint
from coterie.service.messages import Problem

REF = "#/components/schemas/{name}"
PROBLEMS = {
    400: "The body is not JSON, or a header is wrong.",
    401: "A key is needed.",
    403: "The key does not have the role, or is for another policy; or a page of another site sent this.",
    404: "No such policy, user, item or decision.",
    409: "The id was used before, for something else.",
    413: "The body is too long.",
    415: "The body has another content type than JSON.",
    421: "The Host is not a name of this service.",
    422: "A field has an invalid value; the detail names it, and says what is valid.",
    431: "The headers are too long.",
    503: "The store cannot be written now, or too many requests are in flight; try again.",
}


def document(routes: list[Endpoint], version: str) -> dict[str, Any]:
    """Return the document of these routes."""
    kinds = [kind for route in routes for kind in (route.request, route.answer) if kind is not None]
    _, schemas = msgspec.json.schema_components([*kinds, Problem], ref_template=REF)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(plain_path(route.path), {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Coterie", "version": version, "description": "Decisions for users who are alike."},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
    }


def plain_path(path: str) -> str:
    """Return a path as OpenAPI writes it, without the types of its parameters."""
    return re.sub(r"{(\w+):\w+}", r"{\1}", path)


def _operation(route: Endpoint) -> dict[str, Any]:
    success: dict[str, Any] = {"description": route.summary}
    if route.answer is not None:
        success["content"] = {"application/json": {"schema": _ref(route.answer)}}
    elif route.status == 200:
        success["content"] = {"*/*": {}}
    answers = {str(route.status): success, **_problems(route)}
    if route.path.endswith("/rewards"):
        answers["207"] = {**success, "description": "Some rewards were refused; each has its own result."}
    operation: dict[str, Any] = {
        "operationId": route.handler.__name__,
        "summary": route.summary,
        "description": f"Needs the role {route.role}." if route.role else "Open to all.",
        "parameters": [*_path_parameters(route.path), *map(_query_parameter, route.query)],
        "responses": answers,
    }
    if route.handler.__name__ == "import_log":
        operation["requestBody"] = {
            "required": True,
            "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
        }
    if route.request is not None:
        body = {"application/json": {"schema": _ref(route.request)}}
        operation["requestBody"] = {"required": True, "content": body}
    return operation


def _problems(route: Endpoint) -> dict[str, Any]:
    content = {"application/problem+json": {"schema": _ref(Problem)}}
    return {str(status): {"description": text, "content": content} for status, text in PROBLEMS.items()}


def _path_parameters(path: str) -> list[dict[str, Any]]:
    found = []
    for name in re.findall(r"{(\w+)(?::\w+)?}", path):
        schema: dict[str, Any] = {"type": "string"}
        if name == "cluster":
            schema = {"type": "integer", "minimum": 0}
        found.append({"name": name, "in": "path", "required": True, "schema": schema})
    return found


def _query_parameter(name: str) -> dict[str, Any]:
    if name in ("start", "limit"):
        return {"name": name, "in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": 10_000}}
    if name == "format":
        return {"name": name, "in": "query", "schema": {"type": "string", "enum": ["jsonl", "parquet"]}}
    if name == "table":
        return {"name": name, "in": "query", "schema": {"type": "string", "enum": ["decisions", "items"]}}
    schema = {"type": "array", "items": {"type": "string"}}
    return {"name": name, "in": "query", "schema": schema, "style": "form", "explode": True}


def _ref(kind: type) -> dict[str, str]:
    return {"$ref": REF.format(name=kind.__name__)}
