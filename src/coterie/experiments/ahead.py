"""Compiling side by side: numba compiles one kernel at a time, so other processes do it before threads play.

Each process compiles its share into a cache folder of its own, from which the results are taken over.
Whatever fails here is compiled later, by the threads themselves.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from coterie.experiments.kernelcache import adopt, compiled, kind
from coterie.experiments.runs import Run, read_description
from coterie.experiments.shelf import Shelf
from coterie.experiments.watching import Watch
from coterie.experiments.worlds import World
from coterie.kernels.compiling import COMPILING

ROUNDS = 8
SECONDS = {
    "AutoCLUB": 45.0,
    **dict.fromkeys(("SCLUB", "UniSCLUB", "SASCLUB"), 22.0),
    **dict.fromkeys(("LinUCBOne", "LinUCBInd", "LinUCBOracle"), 8.0),
}
"""Rough seconds to compile for a policy (others: 16), so that the shares take about as long."""


def compile_ahead(runs: Iterable[Run], jobs: int, watch: Watch) -> None:
    """Compile what these runs need and the cache lacks, if there is enough of it to share among processes."""
    workers = min(jobs, os.cpu_count() or 1)
    if workers < 2 or getattr(sys, "frozen", False):
        return
    try:
        lacking = missing(runs)
        if len(lacking) > 1:
            watch.say(COMPILING)
            compile_shares(shares(lacking, workers))
    except Exception:  # it would have been faster, no more
        return


def missing(runs: Iterable[Run]) -> list[Run]:
    """A short run for each kind of policy whose kernels are not in the cache."""
    known = compiled()
    found: dict[object, Run] = {}
    for run in {run.contender.policy: shortest(run) for run in runs}.values():
        world = run.world.environment(Shelf().dataset(run.world), run.seed)
        needed = kind(run.contender.make(world, run.seed))
        if needed not in known:
            found.setdefault(needed, run)
    return list(found.values())


def shortest(run: Run) -> Run:
    """A run that needs the same kernels: some rounds in a small world of the same setting."""
    world = World(
        setting=run.world.setting,
        n_users=8,
        n_clusters=2,
        n_arms=10,
        dim=5,
        pool_users=20,
        pool_items=100,
    )
    return replace(run, world=world, horizon=ROUNDS, record=1, data=None)


def shares(runs: Sequence[Run], workers: int) -> list[list[Run]]:
    """The runs in at most so many shares that take about as long: the longest first, to whom has least."""
    split: list[list[Run]] = [[] for _ in range(min(workers, len(runs)))]
    for run in sorted(runs, key=seconds, reverse=True):
        min(split, key=lambda share: sum(map(seconds, share))).append(run)
    return split


def seconds(run: Run) -> float:
    """About how long compiling for a run takes."""
    return SECONDS.get(run.contender.policy, 16.0)


def compile_shares(split: Sequence[Sequence[Run]]) -> None:
    """A process for each share; none is left behind, however this ends."""
    with TemporaryDirectory(prefix="coterie-compiling-") as folder:
        places = [Path(folder, str(number)) for number in range(len(split))]
        processes: list[subprocess.Popen[bytes]] = []
        try:
            for share, place in zip(split, places, strict=True):
                processes.append(start(share, place))
            for process in processes:
                process.wait()
        finally:
            for process in processes:
                process.kill()
                process.wait()
        for place in places:
            adopt(place)


def start(share: Sequence[Run], place: Path) -> subprocess.Popen[bytes]:
    """A process that plays these runs and so leaves what it compiled in this place."""
    package = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, "-P", "-m", __name__, *(run.description for run in share)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(place), "PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def main(descriptions: Sequence[str]) -> None:
    """What such a process does."""
    for description in descriptions:
        run = read_description(description)
        run.play(Shelf().dataset(run.world))


if __name__ == "__main__":
    main(sys.argv[1:])
