"""The kernels that every family of policies gives a body to.

Compiled loops call `view`, `learn` and `label` by name; which body they get is settled when they are
compiled, from the type of the state. So the loop over rounds is written once for all policies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from numba.extending import overload

from coterie.types import Floats, Ints

F = TypeVar("F", bound=Callable[..., Any])


class View(NamedTuple):
    """What the decision for one user rests on: θ̂, M̄⁻¹, β, and the row that holds them, or -1 if none does.

    No eigenvalue of M̄ is less than `ridge`. Arms with xᵀM̄⁻¹x above what is `usual` get a greater bonus, see
    `bonus`; where that is infinite, none do.
    """

    estimate: Floats
    inverse: Floats
    beta: float
    row: int
    ridge: float
    usual: float


def view(state: Any, user: int) -> View:
    """What the decision for this user rests on (Alg. 1, lines 6-8)."""
    raise NotImplementedError("a generic kernel runs compiled only")


def learn(state: Any, user: int, x: Floats, reward: float) -> None:
    """Absorb one reward and let the rule act (Alg. 1, lines 11-12)."""
    raise NotImplementedError("a generic kernel runs compiled only")


def label(state: Any, out: Ints) -> None:
    """Write each user's cluster label."""
    raise NotImplementedError("a generic kernel runs compiled only")


def views(kind: type[Any]) -> Callable[[F], F]:
    """The decorated function is the body of `view` for states of this kind."""

    def register(body: F) -> F:
        def match(state: Any, user: Any) -> F | None:
            return body if getattr(state, "instance_class", None) is kind else None

        overload(view, strict=False)(match)
        return body

    return register


def learns(kind: type[Any]) -> Callable[[F], F]:
    """The decorated function is the body of `learn` for states of this kind."""

    def register(body: F) -> F:
        def match(state: Any, user: Any, x: Any, reward: Any) -> F | None:
            return body if getattr(state, "instance_class", None) is kind else None

        overload(learn, strict=False)(match)
        return body

    return register


def labels(kind: type[Any]) -> Callable[[F], F]:
    """The decorated function is the body of `label` for states of this kind."""

    def register(body: F) -> F:
        def match(state: Any, out: Any) -> F | None:
            return body if getattr(state, "instance_class", None) is kind else None

        overload(label, strict=False)(match)
        return body

    return register
