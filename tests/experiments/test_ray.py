"""A real Ray on this machine; slow, because it takes seconds to start."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from coterie.experiments.run_store import Run, Store
from coterie.experiments.runner import QUIET, DataFiles, LocalEngine, NoCallback, RayEngine, Runner, play_task
from optional import need_package

ray = need_package("ray")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    patch = pytest.MonkeyPatch()
    for name, value in QUIET.items():
        patch.setenv(name, value)
    patch.delenv("RAY_ADDRESS", raising=False)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=40)
    yield
    ray.shutdown()
    patch.undo()


def files(engine: LocalEngine | RayEngine, runs: list[Run], folder: Path) -> dict[str, bytes]:
    store = Store(folder)
    Runner(store, engine, DataFiles(), NoCallback()).play("test", runs)
    return {path.name: path.read_bytes() for path in store.folder.iterdir()}


@pytest.mark.usefixtures("cluster")
def test_ray_writes_the_same_bytes_as_local(run: Run, tmp_path: Path) -> None:
    runs = [replace(run, seed=seed) for seed in range(4)]
    assert files(RayEngine(), runs, tmp_path / "ray") == files(LocalEngine(2), runs, tmp_path / "local")


@pytest.mark.usefixtures("cluster")
def test_the_run_of_a_killed_worker_is_played_again(run: Run, tmp_path: Path) -> None:
    long = replace(run, horizon=3_000_000)
    killed: list[int] = []
    killer = Thread(target=lambda: killed.append(kill_a_worker()))
    killer.start()
    written = files(RayEngine(), [long], tmp_path / "ray")
    killer.join()
    assert killed[0] > 0
    assert written == files(LocalEngine(1), [long], tmp_path / "local")


def kill_a_worker() -> int:
    """Wait until a run is being played, give it a second, then kill the process that plays it."""
    for _ in range(600):
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            if is_player(path):
                time.sleep(1.0)
                os.kill(int(path.parent.name), signal.SIGKILL)
                return int(path.parent.name)
        time.sleep(0.05)
    return 0


def is_player(path: Path) -> bool:
    """Is this a worker of our own Ray, in the middle of a run?"""
    try:
        mine = f"ray::{play_task.__name__}" in path.read_text(errors="replace")
        return mine and ours(path.parent)
    except OSError:
        return False


def ours(process: Path) -> bool:
    """Does the process descend from this one?"""
    parent = int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
    return parent == os.getpid() or (parent > 1 and ours(Path("/proc") / str(parent)))
