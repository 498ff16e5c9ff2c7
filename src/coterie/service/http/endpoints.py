"""Every route of the service: its path, who may use it, what comes in and what goes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from coterie.service import messages
from coterie.service.http import direct, page, routes
from coterie.service.http.api_keys import Role

Handler = Callable[..., Any]


class Endpoint(NamedTuple):
    """A route: who may use it, what comes in and what goes out. `role` None is open to all."""

    method: str
    path: str
    handler: Handler
    role: Role | None
    summary: str
    request: type | None = None
    answer: type | None = None
    status: int = 200
    query: tuple[str, ...] = ()


ONE = "/v1/policies/{policy}"
ROUTES: list[Endpoint] = [
    Endpoint(
        "GET", "/v1/policies", routes.list_policies, "reader", "List policies", answer=messages.PoliciesAnswer
    ),
    Endpoint(
        "POST",
        "/v1/policies",
        routes.create_policy,
        "admin",
        "Make a policy",
        messages.NewPolicy,
        messages.PolicyAnswer,
        201,
    ),
    Endpoint("GET", ONE, routes.describe_policy, "reader", "Describe a policy", answer=messages.PolicyAnswer),
    Endpoint(
        "PATCH",
        ONE,
        routes.change_policy,
        "admin",
        "Change settings",
        messages.PolicyChanges,
        messages.PolicyAnswer,
    ),
    Endpoint("DELETE", ONE, routes.retire_policy, "admin", "Retire a policy", status=204),
    Endpoint(
        "GET", f"{ONE}/items", routes.list_items, "reader", "List the catalogue", answer=messages.ItemsAnswer
    ),
    Endpoint(
        "PUT",
        f"{ONE}/items",
        routes.put_items,
        "writer",
        "Replace the catalogue",
        messages.Items,
        messages.ItemsAnswer,
    ),
    Endpoint(
        "PATCH",
        f"{ONE}/items",
        routes.patch_items,
        "writer",
        "Add or change items",
        messages.Items,
        messages.ItemsAnswer,
    ),
    Endpoint(
        "DELETE",
        f"{ONE}/items",
        routes.delete_items,
        "writer",
        "Remove items",
        answer=messages.ItemsAnswer,
        query=("id",),
    ),
    Endpoint(
        "POST",
        f"{ONE}/decisions",
        direct.decide,
        "writer",
        "Decide what to show",
        messages.DecisionRequest,
        messages.DecisionAnswer,
    ),
    Endpoint(
        "POST",
        f"{ONE}/rewards",
        direct.reward,
        "writer",
        "Give rewards",
        messages.Rewards,
        messages.RewardsAnswer,
    ),
    Endpoint(
        "GET",
        f"{ONE}/users",
        routes.list_users,
        "reader",
        "List users",
        answer=messages.UsersAnswer,
        query=("start", "limit"),
    ),
    Endpoint(
        "GET",
        f"{ONE}/users/{{user:path}}",
        routes.explain_user,
        "reader",
        "Explain a user",
        answer=messages.ExplanationAnswer,
        query=("item",),
    ),
    Endpoint(
        "DELETE", f"{ONE}/users/{{user:path}}", routes.remove_user, "admin", "Forget a user", status=204
    ),
    Endpoint(
        "GET",
        f"{ONE}/history/{{user:path}}",
        routes.user_history,
        "reader",
        "What happened to a user",
        answer=messages.HistoryAnswer,
        query=("limit",),
    ),
    Endpoint(
        "GET",
        f"{ONE}/clusters",
        routes.list_clusters,
        "reader",
        "List clusters",
        answer=messages.ClustersAnswer,
    ),
    Endpoint(
        "GET",
        f"{ONE}/clusters/{{cluster:int}}",
        routes.cluster_members,
        "reader",
        "Users of a cluster",
        answer=messages.MembersAnswer,
    ),
    Endpoint("GET", f"{ONE}/export", routes.export_log, "admin", "The log as a table", query=("format",)),
    Endpoint(
        "POST", f"{ONE}/import", routes.import_log, "admin", "Learn from a log", answer=messages.ImportAnswer
    ),
    Endpoint("GET", f"{ONE}/live", page.stream, "reader", "Frames for the page, as server-sent events"),
    Endpoint("GET", "/health/live", routes.live_check, None, "Does the process run?", answer=messages.Health),
    Endpoint(
        "GET", "/health/ready", routes.ready_check, None, "Can the store be written?", answer=messages.Health
    ),
    Endpoint("GET", "/metrics", routes.show_metrics, "reader", "Metrics for Prometheus"),
]
