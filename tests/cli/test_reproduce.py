"""`coterie reproduce` refuses what it cannot do, before anything is played."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.conftest import Call
from coterie.experiments.figures import FIGURES

WRONG = [
    ([], f"name what to reproduce: {', '.join(FIGURES)}, or all"),
    (["fig1"], "did you mean 'fig-1'?"),
    (["fig-1", "--datasets", ","], "--datasets must name at least one of synthetic, movielens, lastfm, yelp"),
    (["fig-1", "--datasets", ""], "--datasets must name at least one"),
    (
        ["fig-1", "--datasets", "foo"],
        "no dataset 'foo'. They are synthetic, movielens, lastfm, yelp, jester, ",
    ),
    (["fig-1", "--datasets", "yepl"], "did you mean 'yelp'?"),
    (["fig-1", "--datasets", "interactions"], "no dataset 'interactions'"),
    (["fig-1", "--data", "nowhere"], "--data must be a folder or a file that is there, got 'nowhere'"),
    (["fig-1", "--data", "movielens=nowhere"], "got 'nowhere'"),
    (["fig-1", "--widths", "wide"], "--widths must be tuned, theory or both, got 'wide'"),
    (["fig-1", "--engine", "rey"], "did you mean 'ray'?"),
]


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("arguments", "sentence"), WRONG)
def test_wrong_use_is_one_line_and_exit_code_2_and_leaves_nothing(
    coterie: Call, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    result = coterie("reproduce", *arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_without_any_data_nothing_is_written_and_the_exit_code_is_3(coterie: Call, tmp_path: Path) -> None:
    result = coterie("reproduce", "fig-3", "fig-2", "--datasets", "yelp,lastfm")
    assert (result.exit_code, result.stdout) == (3, "")
    (line,) = result.stderr.splitlines()
    assert "nothing is left to reproduce: yelp is missing, download yelp_dataset.tar" in line
    assert "lastfm is missing, download hetrec2011-lastfm-2k.zip" in line
    assert not list((tmp_path / "results").iterdir())


@pytest.mark.parametrize("place", ["file", "file/inside"])
def test_an_out_folder_that_cannot_be_written_is_refused_before_anything_is_played(
    coterie: Call, tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").touch()
    result = coterie("reproduce", "table-1", "--datasets", "synthetic", "--out", tmp_path / place)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--out must be a folder that can be written" in result.stderr
