"""A policy as data: its plan, and the arguments that policies share, checked and copied."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from coterie.errors import ArgumentError
from coterie.policies.confidence import Confidence
from coterie.policies.kernel.learner import LONGEST2, Learner
from coterie.policies.memory_use import check_graph
from coterie.policies.schedule import Schedule
from coterie.seeding import check_seed
from coterie.types import Ints
from coterie.validation import flag, label_vector, positive, shown, user_graph, whole

A = TypeVar("A", bound=np.ndarray[Any, Any])

MOST_USERS = 2**31
"""More users than any memory holds; keeps sizes inside 64 bits."""
MOST_DIM = 2**20
"""A longer vector would need a matrix of terabytes."""


class Plan(NamedTuple):
    """A policy as data: its learner and settings, when arms are played uniformly, and what scores may be.

    `growing` says whether the bonus grows with time, `limit` is the most that a score counts.
    """

    learner: type[Learner]
    settings: dict[str, Any]
    schedule: Schedule = Schedule()
    growing: bool = False
    limit: float = inf

    def build(self, n_users: int, dim: int, ridge: float, generator: np.random.Generator) -> Learner:
        """Build the learner, before its first round; a graph that does not fit into memory is refused."""
        check_graph(self.learner, n_users, dim, self.settings)
        made = self.learner(
            n_users, dim, ridge=ridge, schedule=self.schedule, generator=generator, **self.settings
        )
        made.grows, made.limit = flag("growing", self.growing), self.limit
        return made


PLANS: dict[str, Callable[..., Plan]] = {}
"""What plans each of our policies, by name; filled as the modules of the families are imported."""


def checked(arguments: dict[str, Any]) -> dict[str, Any]:
    """Check and copy the arguments that all policies share."""
    own = dict(arguments)
    own["n_users"] = whole("n_users", own["n_users"], 1, MOST_USERS)
    own["dim"] = whole("dim", own["dim"], 1, MOST_DIM)
    own["ridge"] = positive("ridge", own["ridge"])
    own["seed"] = check_seed(own["seed"])
    for name, check in (("labels", label_vector), ("graph", user_graph)):
        if name in own:
            own[name] = check(own[name], own["n_users"])
    for name, value in own.items():
        if isinstance(value, np.ndarray):
            own[name] = frozen(value.copy())
    confidence = own.get("confidence")
    given = isinstance(confidence, Confidence) and not isinstance(confidence, type)
    if "confidence" in own and not given:
        wanted = "Theory(...), SmoothedTheory(...) or Tuned(...)"
        raise ArgumentError(f"confidence must be {wanted}, got {shown(confidence)}")
    return own


def grown(arguments: dict[str, Any], n: int, labels: ArrayLike | None) -> dict[str, Any]:
    """Extend the arguments of a policy by n users."""
    more = dict(arguments, n_users=arguments["n_users"] + n)
    if "labels" in arguments:
        if labels is None:
            raise ArgumentError(f"labels must be {n} whole numbers, the clusters of the new users, got None")
        more["labels"] = frozen(np.concatenate([arguments["labels"], label_vector(labels, n)]))
    elif labels is not None:
        raise ArgumentError("labels must not be given: this policy finds clusters itself")
    if "graph" in arguments:
        more["graph"] = frozen(np.pad(arguments["graph"], (0, n)))
    return more


def frozen(array: A) -> A:
    """Make an array read-only, and return it."""
    array.flags.writeable = False
    return array


def too_long(name: str, ridge: float) -> ArgumentError:
    """Make the error for a vector so long that rounding would destroy an inverse."""
    longest = np.sqrt(LONGEST2 * ridge)
    return ArgumentError(
        f"{name} must be shorter than {longest:.3g} (1e6·√ridge), or rounding destroys the inverse; "
        "scale the features down"
    )


def by_appearance(labels: Ints) -> Ints:
    """Renumber labels 0, 1, … in order of first appearance.

    >>> by_appearance(np.array([7, 7, 2, 7])).tolist()
    [0, 0, 1, 0]
    """
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]
