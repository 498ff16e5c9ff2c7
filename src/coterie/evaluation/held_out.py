"""What a model predicts for the arms that a policy chooses, where the log cannot tell: no measurement."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie.evaluation.estimators import Terms
from coterie.evaluation.log import Log
from coterie.evaluation.passes import Advance, PolicyCalls, count_event
from coterie.policies.hier.hier import HierUCB
from coterie.policies.protocols import Policy
from coterie.seeding import stream
from coterie.types import Bools, Floats, Ints


class HeldOut(NamedTuple):
    """A hierarchical model of rewards from one half of the events; `judged` are the others.

    A policy learns from the judged events alone: a reward that misleads it does not also raise what the model
    predicts for its mistake.
    """

    model: HierUCB
    judged: Bools

    @classmethod
    def of(cls, log: Log, seed: int) -> HeldOut:
        """Draw the halves, and fit the model."""
        judged = stream(seed, "halves").random(len(log)) < 0.5
        return cls(_fitted(log, np.flatnonzero(~judged)), judged)

    def predicted(self, log: Log, policy: Policy, *, advance: Advance | None = None) -> Terms:
        """The terms of a policy: predictions for the arms that it chooses at the judged events."""
        calls, found = PolicyCalls(policy), np.zeros(len(log))
        for t in range(len(log)):
            if self.judged[t]:
                user, ids, chosen = int(log.users[t]), log.ids(t), int(log.chosen[t])
                found[t] = self._means(log, t)[calls.recommend(user, log.arms(t), ids)]
                item = None if ids is None else int(ids[chosen])
                calls.update(user, log.x(t), float(log.rewards[t]), item)
            count_event(t, len(log), advance)
        return self._terms(found)

    def logged(self, log: Log) -> Terms:
        """The terms of the logging policy: predictions for the arms that were played."""
        found = np.zeros(len(log))
        for t in np.flatnonzero(self.judged):
            found[t] = self._means(log, int(t))[log.chosen[t]]
        return self._terms(found)

    def explained(self, log: Log) -> float:
        """The share of the variance of the judged rewards that the model predicts."""
        rest = (log.rewards - self.logged(log).terms)[self.judged]
        spread = log.rewards[self.judged] - log.rewards[~self.judged].mean()
        return 1.0 - float(rest @ rest) / max(float(spread @ spread), 1e-300)

    def _means(self, log: Log, event: int) -> Floats:
        scores = self.model.scores(int(log.users[event]), log.arms(event), items=log.ids(event))
        return scores.mean

    def _terms(self, values: Floats) -> Terms:
        return Terms(values, self.judged.astype(np.float64), float(np.count_nonzero(self.judged)))


def _fitted(log: Log, events: Ints) -> HierUCB:
    """The model, with effects of items, from these events."""
    model = HierUCB(log.n_users, log.dim)
    for t in events:
        ids = log.ids(t)
        item = None if ids is None else int(ids[log.chosen[t]])
        model.update(int(log.users[t]), log.x(t), float(log.rewards[t]), item=item)
    return model
