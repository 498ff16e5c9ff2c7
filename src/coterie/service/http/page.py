"""The pages at `/` and `/docs`, and the samples that the first one draws: one a second for each policy."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from coterie.errors import StoreError
from coterie.service.core.live_policy import LivePolicy
from coterie.service.core.queries import user_labels
from coterie.service.http.problems import Refusal
from coterie.service.http.prometheus import Histogram, Metrics, sigma_of
from coterie.service.http.service import HTTPService, policy_of
from coterie.types import Floats, Ints

FOLDER = Path(__file__).parent / "static"
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
PAGES = {"/": "index.html", "/docs": "docs.html"}
"""The pages by their paths: what happens, and how the service is used."""
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
MOST_POINTS = 600
"""Users on the map."""
MOST_CLUSTERS = 40
"""Clusters in a sample, the largest ones."""
INTERVAL = 1.0
"""Seconds between two samples."""
SAMPLES_KEPT = 300
"""Samples that are kept for pages opened later: five minutes."""
encode = msgspec.json.Encoder().encode


async def show_page(request: Request) -> Response:
    """Return a page, or a file that it needs; no other file can be requested."""
    name = request.path_params.get("file") or PAGES[request.url.path]
    content = _static_files().get(name)
    if content is None:
        raise Refusal(404, "no such file")
    headers = {"content-security-policy": CONTENT_POLICY}
    return Response(content, headers=headers, media_type=MEDIA_TYPES[Path(name).suffix])


@cache
def _static_files() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in FOLDER.iterdir() if path.suffix in MEDIA_TYPES}


async def stream(request: Request) -> Response:
    """Stream samples as server-sent events until the reader goes; first those of the last five minutes."""
    monitors: PolicyMonitors = request.app.state.monitors
    return monitors.response(policy_of(request))


class SampleStream(StreamingResponse):
    """The samples of a policy for one page, which counts until the response has ended in whatever way."""

    def __init__(self, monitor: PolicyMonitor, metrics: Metrics) -> None:
        """Count one more page."""
        super().__init__(_events(monitor), media_type="text/event-stream")
        self._monitor, self._metrics = monitor, metrics
        monitor.viewers += 1
        metrics.streams += 1

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send samples."""
        try:
            await super().__call__(scope, receive, send)
        finally:  # not in the generator: one that was never started would not get there
            self._monitor.viewers -= 1
            self._metrics.streams -= 1


async def _events(monitor: PolicyMonitor) -> AsyncIterator[bytes]:
    if past := monitor.past():
        yield b"event: past\ndata: " + encode(past) + b"\n\n"
    number = monitor.number
    await monitor.newer(number)
    while not monitor.ended:
        number = monitor.number
        if monitor.problem is not None:
            yield b"event: problem\ndata: " + encode(monitor.problem) + b"\n\n"
        else:
            yield b"data: " + encode(monitor.latest) + b"\n\n"
        await monitor.newer(number)


class PolicyMonitors:
    """The monitors of a service, one for each policy that a page has shown."""

    def __init__(self, service: HTTPService) -> None:
        """Start without monitors."""
        self._service = service
        self._monitors: dict[str, PolicyMonitor] = {}

    def response(self, live: LivePolicy) -> SampleStream:
        """Return the samples of a policy for one more page."""
        metrics = self._service.metrics
        self._service.limiter.check("stream", metrics.streams)
        self._monitors = {name: one for name, one in self._monitors.items() if not one.ended}
        found = self._monitors.get(live.name)
        if found is None:
            found = self._monitors[live.name] = PolicyMonitor(live, self._service)
        return SampleStream(found, metrics)


class UsersOnMap(NamedTuple):
    """Some users of a policy: their numbers, ids, estimates and rewards."""

    numbers: Ints
    ids: list[str]
    estimates: Floats
    pulls: Ints


class PolicyMonitor:
    """Samples of one policy, taken from when a page first shows it, however many pages there are."""

    def __init__(self, live: LivePolicy, service: HTTPService) -> None:
        """Start to take samples, in the running event loop."""
        self._live, self._service = live, service
        self._projection, self._changes = Projection(), ClusterChanges()
        self._timed = list(service.metrics.decision_seconds.counts)
        self._fresh = asyncio.Condition()
        self._past: deque[dict[str, Any]] = deque(maxlen=SAMPLES_KEPT)
        self.number = self.viewers = 0
        self.ended = False
        self.problem: str | None = None
        self.latest: dict[str, Any] = {}
        self._task = asyncio.get_running_loop().create_task(self._run())

    def past(self) -> list[dict[str, Any]]:
        """Return all samples that are kept but the latest, without their points."""
        return list(self._past)[:-1]

    async def newer(self, number: int) -> None:
        """Return when there is a later sample than this one, or none will come."""
        async with self._fresh:
            await self._fresh.wait_for(lambda: self.number > number or self.ended)

    async def _run(self) -> None:
        engine, name = self._service.engine, self._live.name
        while not self._service.closing and engine.policies.get(name) is self._live:
            try:
                self.latest, self.problem = await run_in_threadpool(self._sample), None
                self._past.append({key: one for key, one in self.latest.items() if key != "points"})
            except StoreError as error:
                self.problem = str(error)
            self.number += 1
            async with self._fresh:
                self._fresh.notify_all()
            await asyncio.sleep(INTERVAL)
        self.ended = True
        async with self._fresh:
            self._fresh.notify_all()

    def _sample(self) -> dict[str, Any]:
        """Return what the page draws now; points only if a page is open."""
        with self._live.reading() as state:  # decisions wait meanwhile: what takes long comes afterwards
            labels, epoch = user_labels(self._live), self._live.snapshots.epoch
            users = self._users_on_map() if self.viewers else None
            numbers = {"users": len(state.users), "items": len(state.items), **self._numbers()}
        self._changes.compare(labels, epoch)
        _, firsts, inverse, sizes = np.unique(
            labels, return_index=True, return_inverse=True, return_counts=True
        )
        order = np.lexsort((firsts, -sizes))[:MOST_CLUSTERS]
        return {
            "clusters": [[int(firsts[one]), int(sizes[one])] for one in order],
            "n_clusters": len(firsts),
            "splits": self._changes.splits,
            "merges": self._changes.merges,
            "points": [] if users is None else self._points(users, firsts[inverse]),
            **numbers,
        }

    def _users_on_map(self) -> UsersOnMap:
        """Return what the map shows of users; the same users from sample to sample."""
        state = self._live.state
        policy, count = state.policy, len(state.users)
        shown = np.arange(count)
        if count > MOST_POINTS:
            shown = np.unique(np.linspace(0, count - 1, MOST_POINTS).astype(np.int64))
        with policy.lock:
            estimates = policy.learner.estimates_of(shown)
        return UsersOnMap(shown, state.users.named(shown.tolist()), estimates, policy.pulls[shown])

    def _points(self, users: UsersOnMap, clusters: Ints) -> list[list[Any]]:
        """Return users on the map: id, x, y, cluster, rewards."""
        places = self._projection.project(users.estimates).round(5).tolist()
        rows = zip(users.ids, places, clusters[users.numbers].tolist(), users.pulls.tolist(), strict=True)
        return [[name, *place, cluster, pulls] for name, place, cluster, pulls in rows]

    def _numbers(self) -> dict[str, Any]:
        """Return counts, settings and latencies."""
        state, totals = self._live.state, self._live.state.outcomes.total
        settings, policy, counts = state.settings, state.policy, state.counts
        recent = self._recent_latency()
        return {
            "at": self._service.engine.journal.now(),
            "rounds": policy.rounds,
            "decisions": counts["decision"],
            "waiting": len(state.waiting),
            "expired": counts["expired"],
            "own": [totals.policy.reward, totals.policy.counted],
            "drawn": [totals.uniform.reward, totals.uniform.counted],
            "uniform_share": settings.uniform_share,
            "mode": settings.mode,
            "kind": settings.policy,
            "exploring": policy.exploring,
            "sigma": sigma_of(policy.learner.numbers()),
            "p50": recent.quantile(0.5),
            "p99": recent.quantile(0.99),
            "queue": self._service.engine.journal.depth,
        }

    def _recent_latency(self) -> Histogram:
        """Return the latencies of decisions since the last sample."""
        now = list(self._service.metrics.decision_seconds.counts)
        recent = Histogram()
        recent.counts = [one - before for one, before in zip(now, self._timed, strict=True)]
        self._timed = now
        return recent


class Projection:
    """The map: estimates projected on two directions that follow the principal components slowly.

    Principal components flip signs and swap from one sample to the next; users would jump about the map.
    """

    def __init__(self) -> None:
        """Start without directions."""
        self._basis: Floats | None = None

    def project(self, estimates: Floats) -> Floats:
        """Return two coordinates for each row."""
        dim = estimates.shape[1]
        centred = estimates - estimates.mean(axis=0) if len(estimates) else estimates
        if dim < 2:
            return np.column_stack([centred, np.zeros(len(centred))])
        if self._basis is None:
            self._basis = np.eye(dim)[:, :2]
        if len(centred) > 2:
            directions = np.linalg.svd(centred, full_matrices=False)[2][:2].T
            # Rotate the new directions onto the old ones (orthogonal Procrustes), and go a fifth of the way.
            left, _, right = np.linalg.svd(directions.T @ self._basis)
            turned = 0.8 * self._basis + 0.2 * directions @ left @ right
            self._basis = np.linalg.qr(turned)[0] * np.sign(np.diag(np.linalg.qr(turned)[1]))
        found: Floats = centred @ self._basis
        return found


class ClusterChanges:
    """Splits and merges of clusters between two samples; users who join are neither."""

    def __init__(self) -> None:
        """Start without labels to compare with."""
        self._labels: Ints | None = None
        self._epoch = -1
        self.splits = self.merges = 0

    def compare(self, labels: Ints, epoch: int) -> None:
        """Count changes since the last call; in another `epoch` users have other numbers."""
        before, self._labels = self._labels, labels.copy()
        if before is not None and epoch == self._epoch and len(before) <= len(labels):
            self.splits, self.merges = changes_between(before, labels[: len(before)])
        else:
            self.splits = self.merges = 0
        self._epoch = epoch


def changes_between(before: Ints, after: Ints) -> tuple[int, int]:
    """Return how many clusters were split off, and how many were merged into others."""
    if not len(before):
        return 0, 0
    parts = len(np.unique(np.column_stack([before, after]), axis=0))
    return parts - len(np.unique(before)), parts - len(np.unique(after))
