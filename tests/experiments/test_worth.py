"""The parts of `python -m benchmarks.worth`, on generated files in the original formats."""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import pytest
from benchmarks import worth
from benchmarks.worth import STEPS, WORLDS, Result

from coterie.experiments.figures import find_figure
from coterie.experiments.runner import DataFiles
from coterie.experiments.specs import EnvironmentSpec
from docs.pages import DOCS
from experiments.test_real_figure import folder as folder
from experiments.test_real_figure import small

TEN = EnvironmentSpec(noise=0.2)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> tuple[worth.World, ...]:
    """The worlds with short vectors, few arms and 40 rounds."""
    monkeypatch.setattr(worth, "find_figure", lambda name: small(find_figure(name)))
    return tuple(world._replace(rounds=40, once=min(world.once, 40)) for world in WORLDS)


def test_every_world_is_one_of_the_figure_real() -> None:
    played = list(worth.protocols(WORLDS))
    assert {one.environment.dataset for one in played} == set(find_figure("real").datasets)
    assert [one.world.name for one in played if not one.once] == [world.name for world in WORLDS]
    assert all(one.environment.once == one.once for one in played)
    assert [one.world.name for one in played if one.environment.unit] == [
        "Last.fm, one of 25",
        "Last.fm, one of 25, longer",
    ]


def test_policies_play_without_popularity_and_with_it() -> None:
    specs = list(worth.specs(TEN))
    known = {(spec.name, worth.knows_items(spec)) for spec in specs}
    assert known == {(step.policy, True) for step in STEPS} | {(s.policy, False) for s in STEPS if s.optional}
    assert len(specs) == len(known)
    assert {spec.params["beta"] for spec in specs if spec.name == "LinUCBOne"} == {0.2}


def test_all_worlds_are_played_and_drawn(
    folder: Path, tmp_path: Path, short: tuple[worth.World, ...]
) -> None:
    results = worth.play(DataFiles(folder), range(2), short)
    n_protocols = len(list(worth.protocols(short)))
    assert len(results) == n_protocols * len(list(worth.specs(TEN)))
    assert all(len(result.runs) == 2 and min(result.runs) >= 0 for result in results)
    shown = worth.table(results)
    assert len(shown.rows) == n_protocols
    assert shown.heads[1:4] == ("ItemTS", "LinUCBOne", "LinUCBOne + items")
    worth.write(results, tmp_path / "out")
    with (tmp_path / "out" / "worth.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [float(line["relative"]) for line in lines] == pytest.approx(
        [result.mean for result in results], rel=1e-5
    )
    assert (tmp_path / "out" / "worth.png").stat().st_size > 10_000


def test_a_dataset_without_its_files_is_left_out(
    folder: Path, short: tuple[worth.World, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "hetrec" / "user_artists.dat").unlink()
    results = worth.play(DataFiles(folder), range(1), short[:1] + short[-1:])
    assert {result.world for result in results} == {"Coat, random coats"}
    assert "Last.fm, one of 25 is left out" in capsys.readouterr().out


def test_a_result_is_a_mean_and_its_standard_error() -> None:
    result = Result("Coat", False, 40, "ItemTS", True, (1.0, 2.0, 3.0))
    assert result.mean == 2.0
    assert result.error == pytest.approx(3**-0.5)
    assert result._replace(runs=(2.0,)).error == 0.0


def test_seeds_are_a_number_or_a_range() -> None:
    assert list(worth.seed_range("0-2")) == [0, 1, 2]
    assert list(worth.seed_range("7")) == [7]
    with pytest.raises(argparse.ArgumentTypeError, match="below the first"):
        worth.seed_range("3-1")


def test_the_table_of_the_page_follows_from_the_numbers_beside_it() -> None:
    with (DOCS / "reproduce" / "real" / "worth.csv").open(encoding="utf-8") as file:
        played = list(csv.DictReader(file))
    text = (DOCS / "reproduce" / "real.md").read_text(encoding="utf-8")
    rows = [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    header = next(k for k, row in enumerate(rows) if row[1:3] == ["rounds", "ItemTS"])
    table = rows[header + 2 : rows.index([], header)]
    told = [(row[0].removesuffix(", each once"), cell) for row in table for cell in row[2:]]
    assert len(told) == len(played)
    for (world, cell), row in zip(told, played, strict=True):
        digits = len(cell.split()[0].partition(".")[2])
        found = [f"{float(row[name]):.{digits}f}" for name in ("relative", "relative_error")]
        assert (world, cell) == (row["world"], " ± ".join(found))
