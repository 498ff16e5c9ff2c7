"""`coterie run`."""

from __future__ import annotations

import json
import os
import pty
import re
import resource
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from time import monotonic, sleep

import pytest

from cli.conftest import SMALL, Call
from coterie.experiments.run_store import Store

TWO = ("LinUCBInd", "CLUB")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def test_the_table_has_a_row_for_each_policy(coterie: Call) -> None:
    result = coterie("run", *TWO, *SMALL)
    assert result.exit_code == 0
    for name in (*TWO, "regret", "± s.e.", "clusters", "ARI", "µs/round", "alpha 1.5"):
        assert name in result.stdout
    assert "8 users in 2 clusters" in result.stdout


def test_a_pipe_gets_neither_control_codes_nor_a_chart(child: Call) -> None:
    done = child("run", "LinUCBOne", *SMALL)
    assert done.returncode == 0
    assert not CONTROL.search(done.stdout)
    assert "└" not in done.stdout
    assert "━" not in done.stderr


def test_the_chart_can_be_asked_for(coterie: Call) -> None:
    assert "└" in coterie("run", *TWO, *SMALL, "--chart").stdout


def test_json_has_everything(coterie: Call) -> None:
    told = json.loads(coterie("run", *TWO, *SMALL, "--json").stdout)
    assert (told["horizon"], told["seeds"], told["environment"]["n_users"]) == (512, [0, 1], 8)
    ind, club = told["policies"]
    assert (ind["policy"], club["policy"]) == TWO
    assert ind["regret"] == pytest.approx(sum(ind["regret_by_seed"].values()) / 2)
    assert club["constants"] == {"alpha": 1.5, "beta": 0.1}
    assert club["curve"]["rounds"][-1] == 512
    assert ind["clusters"] == 8
    assert ind["microseconds_a_round"] > 0


def test_a_world_can_be_disturbed(coterie: Call) -> None:
    settings = {
        "liars": 1,
        "liar_sd": 9.0,
        "outlier": 50.0,
        "uneven": 3.0,
        "within": 0.2,
        "feature_scale": 0.5,
    }
    words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    told, plain = (json.loads(coterie("run", *TWO, *SMALL, *more, "--json").stdout) for more in (words, ()))
    assert {name: told["environment"][name] for name in settings} == settings
    assert told["policies"][0]["regret"] != plain["policies"][0]["regret"]
    heavy = json.loads(
        coterie("run", "CLUB", *SMALL, "--set", "rewards=cauchy", "--set", "rank=2", "--json").stdout
    )
    assert (heavy["environment"]["rewards"], heavy["environment"]["rank"]) == ("cauchy", 2)


def test_a_single_seed_has_no_standard_error(coterie: Call) -> None:
    told = json.loads(coterie("run", "CLUB", *SMALL, "--seeds", "7,", "--json").stdout)
    assert told["policies"][0]["standard_error"] is None
    assert list(told["policies"][0]["regret_by_seed"]) == ["7"]


def test_results_pictures_and_a_table_are_kept(coterie: Call, tmp_path: Path) -> None:
    out = tmp_path / "results"
    result = coterie("run", *TWO, *SMALL, "--out", out)
    assert len(list(Store(out))) == 4
    assert (out / "regret.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (out / "regret.svg").read_bytes()
    assert (
        (out / "summary.csv")
        .read_text()
        .splitlines()[0]
        .startswith("dataset,variation,policy,seeds,horizon,gamma,regret,regret_error")
    )
    for name in ("regret.png", "regret.svg", "summary.csv"):
        assert str(out / name) in result.stdout


def test_what_a_single_seed_cannot_tell_is_empty_in_the_table(coterie: Call, tmp_path: Path) -> None:
    assert coterie("run", "LinUCBOne", *SMALL, "--seeds", "1", "--out", tmp_path).exit_code == 0
    heading, row = (line.split(",") for line in (tmp_path / "summary.csv").read_text().splitlines())
    assert row[heading.index("regret_error")] == ""
    assert row[heading.index("clusters")] == "1"


def test_finished_runs_are_not_played_again(coterie: Call, tmp_path: Path) -> None:
    first = json.loads(coterie("run", "CLUB", *SMALL, "--out", tmp_path, "--json").stdout)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir()}
    again = json.loads(coterie("run", "CLUB", *SMALL, "--out", tmp_path, "--json").stdout)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir()} == kept
    assert again["policies"][0]["microseconds_a_round"] is None
    for told in (first, again):
        told["policies"][0].pop("microseconds_a_round")
    assert first == again


def test_a_file_of_settings_gives_the_same_as_options(coterie: Call, tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(
        'policies = ["CLUB"]\nhorizon = 512\nseeds = 2\nusers = 8\nclusters = 2\narms = 10\ndim = 5\n'
        "[environment]\nzipf = 1.0\n"
    )
    from_file = json.loads(coterie("run", "--config", file, "--json").stdout)
    from_options = json.loads(coterie("run", "CLUB", *SMALL, "--set", "zipf=1", "--json").stdout)
    assert from_file["runs"] == from_options["runs"]


def test_a_bad_file_of_settings_names_the_line(coterie: Call, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("horizon = 5\nusers == 3\n")
    result = coterie("run", "--config", tmp_path / "bad.toml")
    assert result.exit_code == 2
    assert "line 2" in result.stderr


def test_an_own_table_is_a_world_and_its_threshold_is_part_of_the_run(coterie: Call, tmp_path: Path) -> None:
    rows = [f"u{u},i{i},{1 + (u * i) % 5}" for u in range(30) for i in range(40) if (u + i) % 3]
    (tmp_path / "clicks.csv").write_text("\n".join(["who,what,stars", *rows]))
    own = (
        "--dataset",
        "interactions",
        "--data",
        tmp_path / "clicks.csv",
        "--columns",
        "user=who,item=what,value=stars",
    )
    runs = [
        json.loads(coterie("run", "CLUB", *SMALL, *own, "--threshold", value, "--json").stdout)["runs"]
        for value in (2, 2, 3)
    ]
    assert runs[0] == runs[1]
    assert not set(runs[0]) & set(runs[2])


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_finished_and_the_same_command_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "coterie", "run", "LinUCBInd", "--seeds", "40", "--horizon", "60000"]
    command += ["--jobs", "1", "--out", str(tmp_path)]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    until = monotonic() + 120
    while not list((tmp_path / "runs").glob("*.parquet")) and started.poll() is None and monotonic() < until:
        sleep(0.05)
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=60)
    kept = len(list(Store(tmp_path)))
    last = err.splitlines()[-1]
    assert (started.returncode, out) == (130, "")
    assert f"interrupted; {kept} of 40 runs are kept in {tmp_path}" in last
    assert "the same command continues" in last
    assert 0 < kept < 40
    assert "Traceback" not in err
    assert [path.suffix for path in (tmp_path / "runs").iterdir()] == [".parquet"] * kept


def on_a_full_disk(largest: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A command that may write no file of more than so many bytes."""
    command = [sys.executable, "-m", "coterie", *map(str, arguments)]
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (largest, largest))
    return subprocess.run(command, capture_output=True, encoding="utf-8", preexec_fn=limit, check=False)


def test_a_picture_that_cannot_be_written_costs_neither_the_table_nor_the_runs(tmp_path: Path) -> None:
    done = on_a_full_disk(20_000, "run", *TWO, *SMALL, "--out", tmp_path)
    assert done.returncode == 1
    assert "LinUCBInd" in done.stdout
    picture = tmp_path / "regret.png"
    assert done.stderr == f"coterie: {picture}: File too large; all runs are kept in {tmp_path}\n"
    assert len(list(Store(tmp_path))) == 4


def test_a_run_that_cannot_be_written_says_how_many_are_kept(tmp_path: Path) -> None:
    done = on_a_full_disk(1_000, "run", *TWO, *SMALL, "--out", tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert done.stderr.startswith(f"coterie: {tmp_path / 'runs'}{os.sep}")
    assert f"File too large; 0 of 4 runs are kept in {tmp_path}" in done.stderr
    assert list((tmp_path / "runs").iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_cannot_be_written_is_one_line() -> None:
    command = [sys.executable, "-m", "coterie", "policies"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr) == (1, "coterie: standard output: No space left on device\n")


def on_a_terminal(*arguments: str, **environment: str) -> str:
    """What a command writes to a terminal of 100 columns."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "coterie", *arguments]
    with subprocess.Popen(
        command, stdout=follower, stderr=follower, env={**os.environ, "TERM": "xterm-256color", **environment}
    ):
        os.close(follower)
        pieces = []
        while True:
            try:
                piece = os.read(leader, 65536)
            except OSError:  # Linux's way to say that the other side is closed
                piece = b""
            if not piece:
                break
            pieces.append(piece)
    os.close(leader)
    return b"".join(pieces).decode()


def test_a_terminal_gets_colour_a_chart_and_a_live_display() -> None:
    text = on_a_terminal("run", *TWO, *SMALL)
    assert "\x1b[" in text
    assert "└" in text
    assert "━" in text
    assert "runs, regret" in text


def test_no_color_is_honoured_on_a_terminal() -> None:
    text = on_a_terminal("policies", NO_COLOR="1")
    assert "CLUB" in text
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", text)
