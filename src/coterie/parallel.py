"""Work on many tasks at once, on threads that all end when the caller does."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from threading import Event
from typing import TypeVar

from coterie.validation import whole

T = TypeVar("T")
R = TypeVar("R")


def run_all(
    tasks: Iterable[T], work: Callable[[T], R], *, jobs: int | None = None, stop: Event | None = None
) -> Generator[R, None, None]:
    """Results of all tasks, each as soon as it is there.

    Compiled rounds release the GIL, so threads use all processors. No thread outlives this iterator.

    Parameters
    ----------
    tasks : iterable
        What to work on, in the order in which work begins.
    work : callable
        Turns a task into a result; it should look at `stop` from time to time and give up when it is set.
    jobs : int, optional
        Tasks at a time; one a processor unless given.
    stop : Event, optional
        Set when a task fails, when the caller stops listening, and on Ctrl-C. Tasks that have not begun are
        then dropped.

    Yields
    ------
    object
        The results, in the order in which they finish. The first exception of a task is raised here.

    Examples
    --------
    >>> sorted(run_all([1, 2, 3], lambda n: n * n, jobs=2))
    [1, 4, 9]
    """
    workers = (os.cpu_count() or 1) if jobs is None else whole("jobs", jobs, 1)
    pool = ThreadPoolExecutor(workers)
    try:
        for future in as_completed([pool.submit(work, task) for task in tasks]):
            yield future.result()
    except BaseException:  # GeneratorExit among them: the caller stopped listening
        if stop is not None:
            stop.set()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
