"""Compiling side by side, before threads play."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from coterie.experiments import ahead
from coterie.experiments.ahead import compile_ahead, missing, seconds, shares, shortest
from coterie.experiments.contenders import Contender
from coterie.experiments.runs import Run
from coterie.experiments.shelf import Shelf
from coterie.experiments.watching import Silence
from coterie.experiments.worlds import World
from coterie.kernels.compiling import COMPILING

EVERY = {
    "LinUCBOne": Contender(policy="LinUCBOne", beta=0.1),
    "LinUCBInd": Contender(policy="LinUCBInd", beta=0.1),
    "CLUB": Contender(policy="CLUB", alpha=1.0, beta=0.1),
    "UniCLUB": Contender(policy="UniCLUB", alpha=1.0, beta=0.1, explore=500),
    "SCLUB": Contender(policy="SCLUB", alpha=1.0, beta=0.1),
    "UniSCLUB": Contender(policy="UniSCLUB", alpha=1.0, beta=0.1, explore=500),
    "PhaseUniCLUB": Contender(policy="PhaseUniCLUB", alpha=1.0, beta=0.1, phase=200),
    "AutoCLUB": Contender(policy="AutoCLUB"),
}


def run_of(name: str) -> Run:
    return Run(world=World(), contender=EVERY[name], horizon=1000, seed=0)


def names(runs: Sequence[Run]) -> list[str]:
    return [run.contender.policy for run in runs]


class Heard(Silence):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache with nothing in it."""
    monkeypatch.setattr(ahead, "compiled", set)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)


@pytest.mark.usefixtures("cold")
def test_policies_that_share_kernels_are_compiled_for_once() -> None:
    assert names(missing(map(run_of, EVERY))) == ["LinUCBOne", "CLUB", "SCLUB", "PhaseUniCLUB", "AutoCLUB"]


def test_what_is_in_the_cache_is_not_compiled_again() -> None:
    run = run_of("LinUCBOne")
    small = shortest(run)
    small.play(Shelf().dataset(small.world))
    assert missing([run]) == []


@pytest.mark.usefixtures("cold")
def test_shares_take_about_as_long_and_leave_nothing_out() -> None:
    lacking = missing(map(run_of, EVERY))
    split = shares(lacking, 2)
    assert sorted(names([run for share in split for run in share])) == sorted(names(lacking))
    spent = [sum(map(seconds, share)) for share in split]
    assert max(spent) - min(spent) < 10
    assert shares(lacking, 99) == [[run] for run in sorted(lacking, key=seconds, reverse=True)]


@pytest.mark.usefixtures("cold")
@pytest.mark.parametrize(("policies", "jobs"), [(["CLUB", "SCLUB"], 1), (["CLUB", "UniCLUB"], 4), ([], 4)])
def test_no_process_is_started_where_it_would_not_help(
    monkeypatch: pytest.MonkeyPatch, policies: list[str], jobs: int
) -> None:
    monkeypatch.setattr(ahead, "start", None)
    heard = Heard()
    compile_ahead(map(run_of, policies), jobs, heard)
    assert heard.lines == []


@pytest.mark.usefixtures("cold")
def test_processes_that_fail_break_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    heard = Heard()
    compile_ahead([run_of("CLUB"), run_of("SCLUB")], 2, heard)
    assert heard.lines == [COMPILING]
    wrong = replace(run_of("CLUB"), contender=Contender(policy="CLUB", alpha=-1.0, beta=0.1))
    compile_ahead([wrong], 2, heard)


@pytest.mark.usefixtures("cold")
def test_ctrl_c_stops_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def start(share: Sequence[Run], place: Path) -> subprocess.Popen[bytes]:
        if started:
            raise KeyboardInterrupt
        started.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]))
        return started[0]

    monkeypatch.setattr(ahead, "start", start)
    with pytest.raises(KeyboardInterrupt):
        compile_ahead([run_of("CLUB"), run_of("SCLUB")], 2, Heard())
    assert started[0].returncode is not None


PROBE = """
import sys
from coterie.experiments import ahead
from coterie.experiments.kernelcache import DISPATCHER
from coterie.experiments.runs import read_description
from coterie.experiments.shelf import Shelf

run = read_description(sys.argv[1])
(lacking,) = ahead.missing([run])
ahead.compile_shares([[lacking]])
assert ahead.missing([run]) == []
run.play(Shelf().dataset(run.world))
print(sum(DISPATCHER.stats.cache_hits.values()), sum(DISPATCHER.stats.cache_misses.values()))
"""


def test_what_a_process_compiled_is_loaded_from_the_cache(tmp_path: Path) -> None:
    """In a cache that begins empty; LinUCBOne's kernels are compiled soonest."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, run_of("LinUCBOne").description],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.stdout, done.stderr) == ("1 0\n", "")
