"""The live display."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from time import sleep

import numpy as np
import pytest
from rich.console import Console

from coterie.cli.progress_bars import (
    INTERVAL,
    BarProgress,
    Label,
    LineProgress,
    display,
    policy_label,
    progress_display,
)
from coterie.experiments.run_store import Run, Store
from coterie.experiments.runner import DataFiles, LocalEngine, Runner
from coterie.experiments.specs import EnvironmentSpec, PolicySpec
from coterie.simulation import Trace

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
SMALL = EnvironmentSpec(n_users=8, n_clusters=2, n_arms=6, dim=4, pool_users=12, pool_items=40)


def runs(name: str, seeds: int, horizon: int = 1000) -> list[Run]:
    contender = PolicySpec(name, {"beta": 0.1})
    return [Run(environment=SMALL, policy=contender, horizon=horizon, seed=seed) for seed in range(seeds)]


def ended(regret: float) -> Trace:
    one = np.array([regret])
    return Trace(
        policy="",
        seed=0,
        rounds=np.array([1000]),
        regret=one,
        reward=one,
        uniform=one,
        clusters=np.array([1]),
        ari=one,
        explored=one,
        seconds=1.0,
    )


class Screen:
    """Bars on a terminal that is only a string."""

    def __init__(self, label: Label = policy_label) -> None:
        self.text = StringIO()
        shown = Console(file=self.text, force_terminal=True, width=100, height=40, highlight=False)
        self.progress = display(shown)
        self.bars = BarProgress(self.progress, label)

    def lines(self) -> list[str]:
        """What the next refresh draws."""
        self.text.seek(0)
        self.text.truncate()
        self.progress.refresh()
        return [line.rstrip() for line in ANSI.sub("", self.text.getvalue()).splitlines() if line.strip()]


@pytest.fixture
def screen() -> Iterator[Screen]:
    made = Screen()
    made.progress.live.auto_refresh = False
    with made.progress:
        yield made


def test_the_stage_comes_first_and_then_a_line_for_each_policy(screen: Screen) -> None:
    screen.bars.begin("tuning", [*runs("LinUCBOne", 3), *runs("LinUCBInd", 12)], 4)
    stage, one, ind = screen.lines()
    assert re.match(r"tuning +━+ +0 % 0:00:0\d, -:--:-- left, 15 runs, 4 more were there$", stage)
    assert re.match(r"LinUCBOne +━+ +0 % 0/3 runs$", one)
    assert re.match(r"LinUCBInd +━+ +0 %  0/12 runs$", ind)


def test_a_run_under_way_shows_its_regret_and_moves_both_bars(screen: Screen) -> None:
    first, second = runs("LinUCBOne", 2)
    screen.bars.begin("playing", [first, second], 0)
    screen.bars.advance(first, 300, 40.0)
    screen.bars.advance(first, 300, 71.4)
    screen.bars.advance(second, 100, 99.0)
    stage, one = screen.lines()
    assert " 35 %" in stage
    assert one.endswith("35 % 0/2 runs, now 71 at 600")


def test_finished_runs_show_their_mean_regret(screen: Screen) -> None:
    first, second, third = runs("LinUCBOne", 3)
    screen.bars.begin("playing", [first, second, third], 0)
    for run, regret in ((first, 1000.0), (second, 2000.0)):
        screen.bars.advance(run, 1000, regret)
        screen.bars.finish(run, ended(regret))
    assert screen.lines()[1].endswith("67 % 2/3 runs, regret 1,500")
    screen.bars.advance(third, 500, 12.0)
    assert screen.lines()[1].endswith("83 % 2/3 runs, regret 1,500, now 12 at 500")


def test_the_bar_of_the_stage_is_weighted_by_what_a_round_costs(screen: Screen) -> None:
    (cheap,), (dear,) = runs("LinUCBOne", 1), runs("GraphUCB", 1)
    screen.bars.begin("playing", [cheap, dear], 0)
    screen.bars.advance(cheap, 1000, 1.0)
    stage, one, _ = screen.lines()
    assert "  3 %" in stage
    assert "100 %" in one


def test_a_stage_takes_the_place_of_the_one_before(screen: Screen) -> None:
    screen.bars.begin("tuning", runs("LinUCBOne", 3), 0)
    screen.bars.begin("playing", runs("LinUCBInd", 3), 0)
    text = "\n".join(screen.lines())
    assert "LinUCBInd" in text
    assert "tuning" not in text
    assert "LinUCBOne" not in text
    screen.bars.begin("timing", [], 3)
    screen.bars.advance(runs("LinUCBInd", 1)[0], 10, 1.0)
    assert screen.lines() == []


def test_no_round_is_lost_among_threads(screen: Screen) -> None:
    played = runs("LinUCBOne", 8)
    screen.bars.begin("playing", played, 0)

    def one(run: Run) -> None:
        for step in range(100):
            screen.bars.advance(run, 10, float(step))
        screen.bars.finish(run, ended(5.0))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, played))
    stage, line = screen.lines()
    assert "100 %" in stage
    assert line.endswith("100 % 8/8 runs, regret 5")


def test_the_display_follows_an_experiment_to_its_end(screen: Screen, tmp_path: Path) -> None:
    played = runs("LinUCBOne", 2, horizon=600)
    store = Store(tmp_path)
    Runner(store, LocalEngine(2), DataFiles(), screen.bars).play("playing", played)
    mean = sum(float(store.read(run).regret[-1]) for run in played) / 2
    stage, line = screen.lines()
    assert "100 %" in stage
    assert line.endswith(f"100 % 2/2 runs, regret {mean:,.0f}")


def test_nothing_is_left_on_the_screen_in_the_end() -> None:
    screen = Screen()
    with screen.progress:
        screen.bars.begin("playing", runs("LinUCBOne", 2), 0)
        screen.progress.refresh()
    erased = screen.text.getvalue().rpartition("LinUCBOne")[2]
    assert erased.count("\x1b[2K") >= 2


def test_a_line_says_how_far_the_work_is_and_when_it_ends() -> None:
    first, second = runs("LinUCBOne", 2)
    lines = LineProgress()
    assert str(lines).startswith("coterie: reading data, 0:00:0")
    lines.begin("playing", [first, second], 0)
    assert re.fullmatch(r"coterie: playing, 0 of 2 runs, 0% of the work, 0:00:0\d gone", str(lines))
    lines.advance(first, 1000, 3.0)
    assert str(lines).startswith("coterie: playing, 0 of 2 runs, 50% of the work, 0:00:0")
    lines.finish(first, ended(3.0))
    lines.advance(second, 500, 1.0)
    assert str(lines).startswith("coterie: playing, 1 of 2 runs, 75% of the work")
    assert str(lines).endswith(" left")


def test_without_a_terminal_there_is_a_line_every_half_minute(capsys: pytest.CaptureFixture[str]) -> None:
    assert INTERVAL == 30.0
    with progress_display(interval=0.05) as callback:
        callback.begin("playing", runs("LinUCBOne", 2), 0)
        sleep(0.5)
    out, said = capsys.readouterr()
    assert out == ""
    assert 2 <= said.count("coterie: playing, 0 of 2 runs") <= 20
    sleep(0.1)
    assert capsys.readouterr().err == ""


def test_what_ends_within_half_a_minute_prints_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_display() as callback:
        callback.begin("playing", runs("LinUCBOne", 2), 0)
    assert capsys.readouterr().err == ""
