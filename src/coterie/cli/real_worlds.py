"""What `coterie run` needs to know of worlds of real feedback: what is usual, and what the data allows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from coterie import datasets
from coterie.cli.settings import RunSettings
from coterie.datasets.real_feedback import SETTINGS
from coterie.datasets.sources import ARCHIVES
from coterie.environments.blocks import BLOCK
from coterie.errors import ArgumentError
from coterie.experiments.runner import DataFiles
from coterie.experiments.specs import EnvironmentSpec, World

EVERYBODY = 1_000_000
"""More users than there are: all of them are served."""

USUAL: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "lastfm-2014": {"dataset": "lastfm", "dim": 25, "n_arms": 25, "n_users": EVERYBODY},
        "rated": {"dim": 20, "n_arms": 10, "n_users": 500},
        "stream": {"dim": 25, "n_arms": 25, "n_users": EVERYBODY},
        "payoffs": {"n_arms": 10, "n_users": EVERYBODY, "intercept": True},
    }
)
"""Settings of real feedback, with what is usual there."""

SAMPLE = 20
"""Blocks that the deviation of rewards is measured in."""


def is_real(settings: RunSettings) -> bool:
    """Are rewards what users told?"""
    return settings.world.get("setting") in SETTINGS


def usual_world(settings: RunSettings) -> dict[str, Any]:
    """What a world of real feedback is like unless told, and the data that it is made of."""
    setting = str(settings.world["setting"])
    told = {"threshold": settings.threshold} if settings.threshold is not None else {}
    if settings.missing or settings.separator or settings.encoding:
        raise ArgumentError(f"missing, separator and encoding are not for the setting {setting!r}")
    return {"dataset": guessed_dataset(settings.data), **USUAL[setting], **told}


def guessed_dataset(path: str | None) -> str:
    """The dataset whose file this is, or holds; one's own table where it is none.

    >>> guessed_dataset("downloads/ml-25m.zip"), guessed_dataset("clicks.csv")
    ('movielens', 'interactions')
    """
    place = Path(path or "").expanduser()
    if path is None:
        return "movielens"
    for name in datasets.names():
        about = datasets.about(name)
        if place.name in (*about.files, about.archive):
            return name
        patterns = [deep + file for file in about.files for deep in ("", "*/")]
        if place.is_dir() and any(found for pattern in patterns for found in place.glob(pattern)):
            return name
    if place.name.lower().startswith("ml-") and place.name.lower().endswith(ARCHIVES):
        return "movielens"
    return "interactions"


def fitted(environment: EnvironmentSpec, data: DataFiles, settings: RunSettings) -> EnvironmentSpec:
    """The environment with the users that there are, and with the deviation of rewards as its unit σ."""
    world = environment.make(data.dataset(environment), settings.seeds[0])
    known = replace(environment, n_users=world.n_users, dim=world.dim - environment.intercept)
    if "noise" in settings.world:
        return known
    return replace(known, noise=float(f"{min(0.5, uniform_deviation(world)):.3g}"))


def uniform_deviation(world: World) -> float:
    """The standard deviation of rewards under uniform play, from the first rounds."""
    most = getattr(world, "n_rounds", None)
    blocks = SAMPLE if most is None else max(1, min(SAMPLE, most // BLOCK))
    means = np.concatenate([world.block(number).means.ravel() for number in range(blocks)])
    return float(means.std()) or 0.5


def rounds_of(world: World, settings: RunSettings) -> int:
    """The horizon: what was asked for, or all there is where nobody asked for more."""
    most = getattr(world, "n_rounds", None)
    if most is None or settings.horizon <= most:
        return settings.horizon
    if settings.horizon == RunSettings().horizon:
        return int(most)
    raise ArgumentError(
        f"horizon must be at most {most:,}, the events that there are, got {settings.horizon:,}"
    )


def real_notes(environment: EnvironmentSpec, data: DataFiles) -> Iterator[str]:
    """Where rewards come from, and what was left out."""
    yield "Rewards are what users told; nothing is made up, so there are no true clusters."
    table = data.dataset(environment)
    world = environment.make(table, 0)
    left_out = list(getattr(table.provenance, "left_out", ()))
    if few := getattr(world, "left_out", 0):
        left_out.append(f"{few:,} users with too few known payoffs")
    if left_out:
        yield f"Left out: {'; '.join(left_out)}."
