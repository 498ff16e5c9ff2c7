"""Many tasks on threads that end with their caller."""

from __future__ import annotations

import threading
from collections.abc import Callable
from threading import Event

import pytest

from coterie.errors import ArgumentError
from coterie.parallel import run_all


def until(stop: Event) -> Callable[[int], int]:
    """Work that is done at once for task 0, fails for task 1, and else waits to be stopped."""

    def work(task: int) -> int:
        if task == 1:
            raise ZeroDivisionError
        if task > 1:
            assert stop.wait(30)
        return task

    return work


def test_all_results_come() -> None:
    stop = Event()
    assert sorted(run_all(range(20), lambda task: -task, jobs=3, stop=stop)) == list(range(-19, 1))
    assert not stop.is_set()


def test_results_come_as_they_finish() -> None:
    first = Event()

    def work(task: int) -> int:
        if task == 0:
            assert first.wait(30)
        return task

    results = run_all([0, 1], work, jobs=2)
    assert next(results) == 1
    first.set()
    assert list(results) == [0]


def test_a_failing_task_stops_the_others_and_is_raised() -> None:
    stop, before = Event(), threading.active_count()
    with pytest.raises(ZeroDivisionError):
        list(run_all([2, 3, 1], until(stop), jobs=3, stop=stop))
    assert stop.is_set()
    assert threading.active_count() == before


def test_a_caller_who_stops_listening_stops_the_tasks() -> None:
    stop, before, begun = Event(), threading.active_count(), []
    work = until(stop)

    def noted(task: int) -> int:
        begun.append(task)
        return work(task)

    results = run_all([0, 2, 3, 4, 5, 6], noted, jobs=2, stop=stop)
    assert next(results) == 0
    results.close()
    assert stop.is_set()
    assert threading.active_count() == before
    assert len(begun) < 6


@pytest.mark.parametrize("jobs", [0, -1, 1.5, True])
def test_a_number_of_jobs_that_cannot_be_is_refused(jobs: int) -> None:
    with pytest.raises(ArgumentError, match="jobs must be a whole number of at least 1"):
        list(run_all([1], abs, jobs=jobs))
