"""What the page draws of a policy, once a second, however many look on."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

import numpy as np

from coterie.errors import StoreError
from coterie.service.core.live_policy import LivePolicy
from coterie.service.core.queries import user_labels
from coterie.service.http.context import Context
from coterie.service.http.prometheus import Histogram, sigma_of
from coterie.types import Floats, Ints

MOST_POINTS = 600
"""Users on the map."""
MOST_CLUSTERS = 40
"""Clusters that are told, the largest."""
EVERY = 1.0
"""Seconds between two frames."""
KEPT = 300
"""Frames that are kept for who comes later."""


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


class ClusterChanges:
    """Splits and merges of clusters between two looks; users who join are neither."""

    def __init__(self) -> None:
        """Nobody was seen yet."""
        self._labels: Ints | None = None
        self._epoch = -1
        self.splits = self.merges = 0

    def look(self, labels: Ints, epoch: int) -> None:
        """Count what happened since the last look; in another `epoch` users have other numbers."""
        before, self._labels = self._labels, labels.copy()
        if before is not None and epoch == self._epoch and len(before) <= len(labels):
            self.splits, self.merges = changes_between(before, labels[: len(before)])
        else:
            self.splits = self.merges = 0
        self._epoch = epoch


def changes_between(before: Ints, after: Ints) -> tuple[int, int]:
    """How many clusters were split off, and how many went into others."""
    if not len(before):
        return 0, 0
    parts = len(np.unique(np.column_stack([before, after]), axis=0))
    return parts - len(np.unique(before)), parts - len(np.unique(after))


class PolicyFrames:
    """The frames of one policy: made from when somebody first looks, and kept for five minutes."""

    def __init__(self, live: LivePolicy, context: Context) -> None:
        """Begin to make frames, in the running event loop."""
        self._live, self._context = live, context
        self._projection, self._changes = Projection(), ClusterChanges()
        self._timed = list(context.metrics.decision_seconds.counts)
        self._fresh = asyncio.Condition()
        self._past: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self.number = self.viewers = 0
        self.ended = False
        self.trouble: str | None = None
        self.latest: dict[str, Any] = {}
        self._task = asyncio.get_running_loop().create_task(self._make())

    def past(self) -> list[dict[str, Any]]:
        """All frames that are kept but the latest, without their points."""
        return list(self._past)[:-1]

    async def newer(self, number: int) -> None:
        """Return when there is a later frame than this one, or none will come."""
        async with self._fresh:
            await self._fresh.wait_for(lambda: self.number > number or self.ended)

    async def _make(self) -> None:
        engine, name = self._context.engine, self._live.name
        while not self._context.closing and engine.policies.get(name) is self._live:
            try:
                self.latest, self.trouble = self._frame(), None
                self._past.append({key: one for key, one in self.latest.items() if key != "points"})
            except StoreError as error:
                self.trouble = str(error)
            self.number += 1
            async with self._fresh:
                self._fresh.notify_all()
            await asyncio.sleep(EVERY)
        self.ended = True
        async with self._fresh:
            self._fresh.notify_all()

    def _frame(self) -> dict[str, Any]:
        """What there is to draw now; points only if somebody looks."""
        with self._live.reading() as state:
            labels = user_labels(self._live)
            self._changes.look(labels, self._live.epoch)
            _, firsts, inverse, sizes = np.unique(
                labels, return_index=True, return_inverse=True, return_counts=True
            )
            order = np.lexsort((firsts, -sizes))[:MOST_CLUSTERS]
            return {
                "clusters": [[int(firsts[one]), int(sizes[one])] for one in order],
                "n_clusters": len(firsts),
                "splits": self._changes.splits,
                "merges": self._changes.merges,
                "points": self._points(firsts[inverse]) if self.viewers else [],
                "users": len(state.users),
                "items": len(state.catalogue),
                **self._numbers(),
            }

    def _points(self, clusters: Ints) -> list[list[Any]]:
        """Users on the map: id, place, cluster, rewards; the same ones from frame to frame."""
        state = self._live.state
        ids, policy = state.users.ids, state.policy
        count = len(ids)
        shown = np.arange(count)
        if count > MOST_POINTS:
            shown = np.unique(np.linspace(0, count - 1, MOST_POINTS).astype(np.int64))
        places = self._projection.project(policy.estimates[shown]).round(5).tolist()
        pulls = policy.pulls
        return [
            [ids[n], x, y, int(clusters[n]), int(pulls[n])]
            for n, (x, y) in zip(shown.tolist(), places, strict=True)
        ]

    def _numbers(self) -> dict[str, Any]:
        """What is counted and timed."""
        state, totals = self._live.state, self._live.totals
        settings, policy, counts = state.settings, state.policy, state.counts
        recent = self._recent_latency()
        return {
            "at": self._context.engine.journal.now(),
            "rounds": policy.rounds,
            "decisions": counts["decision"],
            "waiting": len(state.waiting),
            "expired": counts["expired"],
            "own": [totals.own, totals.own_count],
            "drawn": [totals.drawn, totals.drawn_count],
            "uniform_share": settings.uniform_share,
            "mode": settings.mode,
            "kind": settings.policy,
            "exploring": policy.exploring,
            "sigma": sigma_of(policy.learner.numbers()),
            "p50": recent.quantile(0.5),
            "p99": recent.quantile(0.99),
            "queue": self._context.engine.journal.depth,
        }

    def _recent_latency(self) -> Histogram:
        """The latencies of decisions since the last frame."""
        now = list(self._context.metrics.decision_seconds.counts)
        recent = Histogram()
        recent.counts = [one - before for one, before in zip(now, self._timed, strict=True)]
        self._timed = now
        return recent
