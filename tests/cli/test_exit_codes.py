"""Errors are one line on stderr, and exit codes mean something."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cli.conftest import SMALL, Call
from coterie.cli.exit_codes import Interrupted, describe_error
from coterie.errors import ArgumentError, DataError, MissingData, SnapshotError, UnknownName

WRONG = [
    (["run", "CLBU"], "did you mean 'CLUB'?"),
    (["policies", "DuelingCLUB"], "CLUB serves duels by recommend_pair and update_pair, COLDB by"),
    (["run", "Dueling-CLUB:alpha=1"], "CLUB serves duels by recommend_pair"),
    (["run", "OCCUD"], "RCLUBWCU reports suspected users by suspects()"),
    (["run", "CLUB", "--dataset", "movilens"], "did you mean 'movielens'?"),
    (["run", "CLUB:alfa=1"], "did you mean 'alpha'?"),
    (["run", "CLUB:alpha=much"], "alpha must be at least 0, got 'much'"),
    (["run", "CLUB:alpha"], "needs key=value, got 'alpha'"),
    (["run", "CLUB:alpha=-1"], "alpha must be at least 0"),
    (["run", "ItemTS", "--set", "duels=1"], "ItemTS learns nothing from duels"),
    (["run", "CLUB", "--set", "zpf=1"], "did you mean 'zipf'?"),
    (["run", "CLUB", "--set", "zipf=often"], "zipf must be a number, got 'often'"),
    (["run", "CLUB", "--noise", "-1"], "coterie: --noise must be at least 0, got -1.0"),
    (["run", "CLUB", "--noise=1e300"], "coterie: --noise must be at most 1e+100, got 1e+300"),
    (["run", "--users", "0"], "coterie: --users must be a whole number of at least 1, got 0"),
    (["run", "--arms", "0"], "coterie: --arms must be a whole number of at least 1, got 0"),
    (["run", "--set", "n_arms=0"], "coterie: n_arms must be a whole number of at least 1, got 0"),
    (["run", "--clusters", "100"], "coterie: --clusters must be from 1 to 50, got 100"),
    (["run", "--missing", "drop"], "coterie: --missing can only be given with --dataset interactions"),
    (["run", "--dataset", "interactions"], "--data must be your own table"),
    (["bench", "CLUB", "--rounds", "0"], "coterie: --rounds must be a whole number of at least 1, got 0"),
    (["reproduce", "fig-1", "--horizon", "0"], "coterie: --horizon must be a whole number of at least 1"),
    (["theory", "--lambda-x", "2"], "coterie: --lambda-x must be at most"),
    (["run", "CLUB", "--param", "size=3"], "size is for policies that take it, and none of these does: CLUB"),
    (["run", "CLUB", "--param", "size"], "--param needs key=value, got 'size'"),
    (["run", "CLUB", "--param", "alpha=inf"], "alpha must be a finite number"),
    (["run", "--policy", "CLBU"], "did you mean 'CLUB'?"),
    (["run", "CLUB", "--log", "log.parquet", "--log-share", "2"], "coterie: --log-share must be above 0"),
    (["run", "CLUB", "--set", "late=2"], "late"),
    (["run", "CLUB", "--set", "liars=60"], "liars must be at most 50, got 60"),
    (["run", "CLUB", "--set", "liars=some"], "liars must be a whole number, got 'some'"),
    (["run", "CLUB", "--set", "within=-1"], "within must be at least 0"),
    (["run", "CLUB", "--set", "onehot=true"], "must have as many items as dimensions, got 5000 items"),
    (["run", "CLUB", "--set", "rank=51"], "rank must be at most 50, got 51"),
    (["run", "CLUB", "--set", "feature_scale=0"], "feature_scale must be positive, got 0"),
    (
        ["run", "CLUB", "--setting", "hostile"],
        "--setting must be one of stochastic, smoothed, lastfm-2014, rated, complete, stream, payoffs, got",
    ),
    (["run", "CLUB", "--horizon", "-5"], "coterie: --horizon must be a whole number of at least 1, got -5"),
    (["run", "CLUB", "--horizon", "many"], "--horizon"),
    (["run", "CLUB", "--seeds", "few"], "seeds must be a count such as 5"),
    (["run", "CLUB", "--seeds", ","], "at least one seed"),
    (["run", "CLUB", "--jobs", "0"], "jobs must be a whole number"),
    (["run", "CLUB", "--engine", "rey"], "did you mean 'ray'?"),
    (["run", "--users", "500", "--set", "pool_users=200"], "--users must be from 1 to 200"),
    (["run", "CLUB", "--columns", "user=a,item=b"], "--data must be your own table"),
    (["run", "CLUB", "--config", "nowhere.toml"], "cannot read 'nowhere.toml'"),
    (["run", "--horzon", "5"], "--horizon"),
    (["rnu"], "'run'"),
    (["policies", "Clubb"], "did you mean 'CLUB'?"),
    (["bench", "Clubb"], "did you mean 'CLUB'?"),
    (["data", "describe", "lastf"], "did you mean 'lastfm'?"),
    (["data", "prepare", "lastf"], "did you mean 'lastfm'?"),
    (["theory", "--gamma", "3"], "gamma must be at most 2"),
    (["theory", "--dim", "0"], "dim must be at least 1"),
    (["theory", "--horizon", "0"], "horizon must be at least 1"),
    (["compare", "one"], "Missing argument"),
]
MISSING = [
    (["run", "CLUB", "--dataset", "movielens"], "download ml-25m.zip"),
    (["run", "CLUB", "--dataset", "lastfm", "--data", "nowhere"], "no lastfm file"),
    (["run", "CLUB", "--dataset", "interactions", "--data", "nowhere.csv"], "no file at 'nowhere.csv'"),
    (["data", "describe", "yelp", "--data", "nowhere"], "no yelp file"),
    (["data", "prepare", "yelp"], "no yelp file"),
    (["compare", "nowhere", "neither"], "no results in 'nowhere'"),
]


def lines(result: object) -> list[str]:
    return str(getattr(result, "stderr", "")).splitlines()


@pytest.mark.parametrize(
    ("arguments", "sentence"), WRONG, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_wrong_use_is_one_line_and_exit_code_2(coterie: Call, arguments: list[str], sentence: str) -> None:
    result = coterie(*arguments)
    assert result.exit_code == 2
    assert len(lines(result)) == 1
    assert result.stderr.startswith("coterie: ")
    assert sentence in result.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"), MISSING, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_missing_data_is_exit_code_3(coterie: Call, arguments: list[str], sentence: str) -> None:
    result = coterie(*arguments)
    assert result.exit_code == 3
    assert len(lines(result)) == 1
    assert sentence in result.stderr


@pytest.mark.parametrize("place", ["file", "file/inside"])
def test_an_out_folder_that_cannot_be_written_is_refused_before_anything_is_played(
    coterie: Call, tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").touch()
    result = coterie("run", "CLUB", *SMALL, "--out", tmp_path / place)
    assert result.exit_code == 2
    assert "--out must be a folder that can be written" in result.stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ArgumentError("a"), 2),
        (UnknownName("a"), 2),
        (MissingData("a"), 3),
        (DataError("a"), 1),
        (SnapshotError("a"), 1),
        (Interrupted("a"), 130),
        (PermissionError(13, "Permission denied", "there"), 1),
        (ZeroDivisionError("a"), 1),
    ],
)
def test_every_error_has_its_exit_code(error: Exception, code: int) -> None:
    line, given = describe_error(error)
    assert given == code
    assert "\n" not in line


def test_an_error_of_the_system_names_the_file() -> None:
    assert describe_error(PermissionError(13, "Permission denied", "there"))[0] == "there: Permission denied"


def test_a_bug_is_told_in_one_line_that_says_how_to_see_more() -> None:
    assert "COTERIE_DEBUG=1" in describe_error(ZeroDivisionError("division\nby zero"))[0]


def test_debug_shows_the_traceback(child: Call) -> None:
    done = child("policies", "Clubb", COTERIE_DEBUG="1")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "UnknownName" in done.stderr


def test_no_traceback_without_debug(child: Call) -> None:
    done = child("policies", "Clubb")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


UNREAD = ["theory", "theory --json", "policies", "policies CLUB", "data list", "run --help", "--version"]


@pytest.mark.parametrize("words", UNREAD)
def test_a_reader_who_leaves_early_hears_no_complaint_and_sees_141(words: str) -> None:
    command = [sys.executable, "-m", "coterie", *words.split()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        assert started.stdout is not None
        assert started.stderr is not None
        started.stdout.close()
        said = started.stderr.read()
    assert (started.returncode, said) == (141, b"")


def test_an_error_that_nobody_reads_keeps_its_exit_code() -> None:
    command = [sys.executable, "-m", "coterie", "policies", "Clubb"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as started:
        assert started.stderr is not None
        started.stderr.close()
    assert started.returncode == 2
