"""The visitors of `coterie serve --demo`: a simulated world that goes through the real interface."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from coterie.errors import CoterieError
from coterie.seeding import stream
from coterie.types import Floats, Ints

CLUSTERS, USERS, ITEMS, DIM = 4, 60, 40, 8
NOISE = 0.1
PAUSE = 0.005
"""Seconds between two visits."""


class World(NamedTuple):
    """Users in clusters, each with a preference; and items."""

    labels: Ints
    preferences: Floats
    items: Floats

    def reward(self, user: int, item: int, noise: float) -> float:
        """What a user gives for an item."""
        return float(self.items[item] @ self.preferences[self.labels[user]] + NOISE * noise)


def make_world(seed: int = 0) -> World:
    """Preferences and items of length 1."""
    rng = stream(seed, "demo")
    preferences, items = rng.normal(size=(CLUSTERS, DIM)), rng.normal(size=(ITEMS, DIM))
    preferences /= np.linalg.norm(preferences, axis=1, keepdims=True)
    items /= np.linalg.norm(items, axis=1, keepdims=True)
    return World(rng.integers(CLUSTERS, size=USERS), preferences, items)


def visit(url: str, visits: int | None = None, policy: str = "demo") -> None:
    """Let users come one after another, for ever or so many times."""
    from coterie.service.client import Client

    world, rng = make_world(), stream(1, "demo")
    with Client(url, policy, retries=20) as client:
        try:
            client.create_policy(DIM, uniform_share=0.05, reward_wait=60.0)
        except CoterieError:  # it is there already
            client.describe()
        client.put_items({f"item-{n:02}": x for n, x in enumerate(world.items)})
        count = 0
        while visits is None or count < visits:
            user = int(rng.integers(USERS))
            offered = [f"item-{n:02}" for n in sorted(rng.choice(ITEMS, 10, replace=False))]
            decision = client.decide(f"visitor-{user:02}", offered)
            if rng.random() < 0.97:  # some never answer
                item = int(decision.chosen.removeprefix("item-"))
                client.reward(decision.id, world.reward(user, item, float(rng.normal())))
            count += 1
            time.sleep(PAUSE)
