"""What becomes of a Ray when something goes wrong while runs are handed to it; no Ray is needed."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import pytest

from coterie.experiments.run_store import Run
from coterie.experiments.runner import DataFiles, NoCallback, RayEngine


class Pretended(ModuleType):
    """A Ray that fails while it is given something, the n-th time."""

    def __init__(self, puts: int = 99, tasks: int = 99) -> None:
        super().__init__("ray")
        self.__spec__ = ModuleSpec("ray", None)
        self.puts, self.tasks = puts, tasks
        self.given: list[str] = []
        self.cancelled: list[str] = []
        self.running = False

    def is_initialized(self) -> bool:
        return self.running

    def init(self, **settings: Any) -> None:
        self.running = True

    def shutdown(self) -> None:
        self.running = False

    def put(self, value: object) -> str:
        self.puts -= 1
        if self.puts < 0:
            raise MemoryError
        return "placed"

    def remote(self, *ignored: Any, **settings: Any) -> Any:
        return lambda function: self.Task(self)

    def cancel(self, reference: str, *, force: bool) -> None:
        self.cancelled.append(reference)

    class Task:
        """Something to be called from afar."""

        def __init__(self, ray: Pretended) -> None:
            self.ray = ray

        def remote(self, run: Run, placed: str) -> str:
            if len(self.ray.given) == self.ray.tasks:
                raise KeyboardInterrupt
            self.ray.given.append(f"task {run.seed}")
            return self.ray.given[-1]


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


def play(ray: Pretended, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", ray)
    list(RayEngine().play([replace(run, seed=seed) for seed in range(4)], DataFiles(), NoCallback()))


def test_ctrl_c_while_runs_are_submitted_cancels_them_and_stops_ray(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = Pretended(tasks=2)
    with pytest.raises(KeyboardInterrupt):
        play(ray, run, monkeypatch)
    assert ray.cancelled == ["task 0", "task 1"]
    assert not ray.running


def test_vectors_that_cannot_be_sent_stop_ray(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = Pretended(puts=0)
    with pytest.raises(MemoryError):
        play(ray, run, monkeypatch)
    assert not ray.given
    assert not ray.running
