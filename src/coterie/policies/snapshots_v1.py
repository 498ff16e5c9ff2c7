"""Snapshots of format version 1 as version 2: single numbers stood in arrays, by position."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.errors import SnapshotError
from coterie.policies._learner import Learner
from coterie.types import Floats, Ints

Arrays = dict[str, np.ndarray[Any, Any]]

CLOCKS = {
    "FixedRows": ("rounds",),
    "Components": ("rounds", "n_components"),
    "Neighbourhoods": ("rounds", "n_neighbourhoods"),
    "SplitMerge": ("rounds", "n_clusters", "slots", "compare_all"),
    "JointRidge": ("rounds",),
    "WalkRidge": ("rounds",),
}
"""What the positions of `clock` were, by kind of learner."""


def upgraded(learner: type[Learner], arrays: Arrays) -> tuple[Arrays, dict[str, float]]:
    """The arrays and numbers as this version has them."""
    left = dict(arrays)
    kind = learner.__name__
    if kind not in CLOCKS:
        raise SnapshotError("holds an AutoCLUB that learnt by other rules than today's: it cannot go on")
    numbers: dict[str, float] = dict(zip(CLOCKS[kind], left.pop("clock").tolist(), strict=True))
    if kind == "JointRidge":
        for name in ("inverse", "moment", "estimate", "weights", "pulls"):
            left[f"joint.{name}"] = left.pop(name)
    if kind == "WalkRidge":
        del left["joint.clock"], left["joint.epochs"]
    if kind == "Neighbourhoods":
        left["neighbourhoods"], left["sharers"] = left.pop("room"), left.pop("tenants")
    if kind == "SplitMerge":
        del numbers["slots"]
        left["pools.gram"] = _pooled(left["grams"], left["labels"])
    return left, numbers


def _pooled(grams: Floats, labels: Ints) -> Floats:
    """The sum of the grams of each cluster's members."""
    if len(labels) != len(grams) or labels.min() < 0 or labels.max() >= len(grams):
        raise ValueError("labels that are no rows")
    pools = np.zeros_like(grams)
    np.add.at(pools, labels, grams)
    return pools
