"""Small worlds that take milliseconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from coterie.experiments.run_store import Run, Store
from coterie.experiments.runner import DataFiles
from coterie.experiments.specs import EnvironmentSpec, PolicySpec

SMALL = EnvironmentSpec(n_users=8, n_clusters=2, n_arms=6, dim=4, pool_users=12, pool_items=40)


@pytest.fixture
def small() -> EnvironmentSpec:
    return SMALL


@pytest.fixture
def run() -> Run:
    contender = PolicySpec("UniCLUB", {"alpha": 1.0, "beta": 0.1, "explore": 20})
    return Run(environment=SMALL, policy=contender, horizon=400, seed=3, record=10)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


@pytest.fixture
def data() -> DataFiles:
    return DataFiles()
