"""The page at `/`, and the stream of frames that it draws: users on a map, clusters, rewards, latencies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from coterie.errors import StoreError
from coterie.service.context import Context, context_of, policy_of
from coterie.service.inspection import user_labels
from coterie.service.live import LivePolicy
from coterie.service.metrics import sigma_of
from coterie.service.problems import Refusal
from coterie.types import Floats

FOLDER = Path(__file__).parent / "static"
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
MOST_POINTS = 600
EVERY = 1.0
"""Seconds between two frames."""


class Projection:
    """A map of preferences that turns slowly: two directions, held close to those of the frame before."""

    def __init__(self) -> None:
        """No directions yet."""
        self._basis: Floats | None = None

    def project(self, estimates: Floats) -> Floats:
        """Two coordinates for each row."""
        dim = estimates.shape[1]
        centred = estimates - estimates.mean(axis=0) if len(estimates) else estimates
        if dim < 2:
            return np.column_stack([centred, np.zeros(len(centred))])
        if self._basis is None:
            self._basis = np.eye(dim)[:, :2]
        if len(centred) > 2:
            directions = np.linalg.svd(centred, full_matrices=False)[2][:2].T
            left, _, right = np.linalg.svd(directions.T @ self._basis)
            turned = 0.8 * self._basis + 0.2 * directions @ left @ right
            self._basis = np.linalg.qr(turned)[0] * np.sign(np.diag(np.linalg.qr(turned)[1]))
        found: Floats = centred @ self._basis
        return found


def frame(live: LivePolicy, context: Context, projection: Projection) -> dict[str, Any]:
    """What the page draws of a policy now."""
    with live.reading() as state:
        users, policy = state.users.ids, state.policy
        labels = user_labels(live)
        firsts, inverse, sizes = _named(labels)
        shown = np.arange(len(users)) if len(users) <= MOST_POINTS else _spread(len(users))
        points = projection.project(policy.estimates[shown])
        pulls = policy.pulls
        counts, totals, timed = state.counts, live.totals, context.metrics.decision_seconds
        return {
            "at": context.engine.journal.now(),
            "rounds": policy.rounds,
            "users": len(users),
            "items": len(state.catalogue),
            "clusters": sorted(
                ([int(first), int(size)] for first, size in zip(firsts, sizes, strict=True)),
                key=lambda pair: -pair[1],
            )[:40],
            "n_clusters": len(firsts),
            "points": [
                [users[n], round(float(x), 5), round(float(y), 5), int(firsts[inverse[n]]), int(pulls[n])]
                for n, (x, y) in zip(shown.tolist(), points.tolist(), strict=True)
            ],
            "decisions": counts["decision"],
            "waiting": len(state.waiting),
            "expired": counts["expired"],
            "own": [totals.own, totals.own_count],
            "drawn": [totals.drawn, totals.drawn_count],
            "uniform_share": state.settings.uniform_share,
            "mode": state.settings.mode,
            "kind": state.settings.policy,
            "exploring": policy.exploring,
            "sigma": sigma_of(policy.learner.numbers()),
            "p50": timed.quantile(0.5),
            "p99": timed.quantile(0.99),
            "queue": context.engine.journal.depth,
        }


def _named(labels: Any) -> tuple[Any, Any, Any]:
    """Each cluster's first member, each user's cluster, and the sizes."""
    _, firsts, inverse, sizes = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    return firsts, inverse, sizes


def _spread(count: int) -> Any:
    """Some users, the same ones from frame to frame."""
    return np.unique(np.linspace(0, count - 1, MOST_POINTS).astype(np.int64))


async def stream(request: Request) -> Response:
    """Frames as server-sent events, one a second, until the reader goes."""
    live, context = policy_of(request), context_of(request)

    async def frames() -> AsyncIterator[bytes]:
        projection = Projection()
        while not await request.is_disconnected():
            try:
                if context.engine.find(live.name) is not live:
                    return
                yield b"data: " + msgspec.json.encode(frame(live, context, projection)) + b"\n\n"
            except StoreError as error:
                yield b"event: trouble\ndata: " + msgspec.json.encode(str(error)) + b"\n\n"
            await asyncio.sleep(EVERY)

    return StreamingResponse(frames(), media_type="text/event-stream")


@cache
def _file(name: str) -> bytes | None:
    known = {path.name: path for path in FOLDER.iterdir() if path.suffix in KINDS}
    return known[name].read_bytes() if name in known else None


async def page(request: Request) -> Response:
    """The page, or a file that it needs; nothing else of the disk can be asked for."""
    name = request.path_params.get("file", "index.html")
    content = _file(name)
    if content is None:
        raise Refusal(404, "no such file")
    headers = {"content-security-policy": POLICY}
    return Response(content, headers=headers, media_type=KINDS[Path(name).suffix])
