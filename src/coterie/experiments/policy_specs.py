"""Specification of a policy: its name and its parameters, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from coterie.environments import Cascade, Disturbed, Duel, Payoffs, Shifted, Smoothed, Stochastic, Stream
from coterie.errors import ArgumentError
from coterie.experiments.params import Params, Value
from coterie.policies.makers import find_maker, is_own, tuned_confidence
from coterie.types import Bools, Floats, Ints

World: TypeAlias = Stochastic | Smoothed | Cascade | Duel | Disturbed | Payoffs | Stream | Shifted
"""What policies play in."""


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """A policy by name, and the parameters that it is made with.

    Parameters
    ----------
    name : str
        Registered name such as `CLUB`, or `package.module:Attribute` for a policy of your own.
    params : mapping, default {}
        Parameters by name; the rest is as the maker has it. A policy that takes `confidence` takes the fields
        of `Tuned` instead: alpha, beta, explore, phase, growth.

    Examples
    --------
    >>> print(PolicySpec("CLUB", {"beta": 0.1, "alpha": 1.5}))
    CLUB (alpha 1.5, beta 0.1)
    """

    name: str
    params: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Freeze the parameters."""
        object.__setattr__(self, "params", Params(self.params))

    @property
    def label(self) -> str:
        """Name in a table or a legend; for a policy of your own, the name of its class."""
        return self.name.rpartition(":")[2]

    def __str__(self) -> str:
        """Format as the name, with the parameters in brackets."""
        return f"{self.name} ({self.params})" if self.params else self.name

    def make(self, world: World, seed: int) -> Any:
        """Make the policy, before its first round.

        The maker is given those of n_users (the users present at the start), dim, seed and the parameters
        that its signature names; only one that names `labels` or `graph` is told the true clusters. Where
        there are none, the graph is that of friendships.

        Parameters
        ----------
        world : Environment
            Environment that the policy will play in, from `EnvironmentSpec.make`.
        seed : int
            Seed of the policy.

        Returns
        -------
        Policy
            An object with `recommend` and `update`.

        Raises
        ------
        ArgumentError, UnknownName
            If the policy cannot be found or made, or does not take a parameter.
        """
        return self.make_for(world.present(0), world.dim, seed, world=world)

    def make_for(self, n_users: int, dim: int, seed: int, *, world: World | None = None) -> Any:
        """Make the policy for users of whom only the number is known, unless their world is given.

        Parameters
        ----------
        n_users : int
            Number of users.
        dim : int
            Length of an arm's vector.
        seed : int
            Seed of the policy.
        world : Environment, optional
            Environment that tells true clusters or friendships, as for `make`.

        Returns
        -------
        Policy
            An object with `recommend` and `update`.
        """
        maker = find_maker(self.name)
        maker.check(self.params)
        asked: dict[str, Callable[[], Any]] = {
            "labels": lambda: None if world is None else self._labels(world),
            "graph": lambda: None if world is None else self._graph(world),
            "confidence": lambda: tuned_confidence(self.name, self.params),
        }
        made = {name: asked[name]() for name in asked if name in maker.arguments}
        offered = {"n_users": n_users, "dim": dim, "seed": seed, **self.params}
        offered.update((name, value) for name, value in made.items() if value is not None)
        return maker({name: value for name, value in offered.items() if maker.passes(name)})

    def _labels(self, world: World) -> Ints | None:
        """The true clusters of those who are there; only an own policy can do without."""
        if world.labels is not None:
            return np.asarray(world.labels[: world.present(0)])
        if is_own(self.name):
            return None
        raise ArgumentError(
            f"{self.name} is told the true clusters, and real feedback has none: leave it out"
        )

    def _graph(self, world: World) -> Bools | Floats | None:
        """The graph that joins users of one cluster, or that of friendships."""
        if world.labels is not None:
            return same_cluster(np.asarray(world.labels[: world.present(0)]))
        if is_own(self.name) or world.graph is not None:
            return world.graph
        raise ArgumentError(
            f"{self.name} needs a graph of the users, and only 'lastfm-2014' has one: its friendships"
        )


def same_cluster(labels: np.ndarray[Any, Any]) -> Bools:
    """Build the graph that joins users of one cluster (App. G.4)."""
    joined: Bools = (labels[:, None] == labels[None, :]) & ~np.eye(len(labels), dtype=np.bool_)
    return joined
