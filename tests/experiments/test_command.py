"""`coterie reproduce` in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

MAIN = "from coterie.cli import main; main()"


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-c", MAIN, "reproduce", *map(str, words)]


def call(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*words), capture_output=True, text=True, check=False)


def small(out: Path) -> list[str | Path]:
    return ["clusters", "--datasets", "synthetic", "--quick", "--horizon", "60", "--seeds", "2", "--out", out]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of a first command, so that a second one has nothing left to play."""
    return tmp_path_factory.mktemp("clusters")


def test_it_ends_with_a_table_a_path_and_a_sentence(folder: Path) -> None:
    done = call(*small(folder))
    assert (done.returncode, done.stderr) == (0, "")
    assert "PhaseUniCLUB" in done.stdout
    assert str(folder / "clusters" / "clusters.png") in done.stdout
    last = " ".join(done.stdout.partition("report: ")[2].split())
    assert "; CLUB ends with an adjusted Rand index of" in last
    assert last.endswith(".")


def test_json_is_for_programs(folder: Path) -> None:
    found = json.loads(call(*small(folder), "--json").stdout)
    (figure,) = found["figures"]
    assert figure["name"] == "clusters"
    assert {row["policy"] for row in figure["rows"]} >= {"CLUB", "UniCLUB"}
    assert figure["finding"]


def test_ctrl_c_keeps_finished_runs_and_says_how_to_go_on(tmp_path: Path) -> None:
    words = command("fig-1", "--datasets", "synthetic", "--quick", "--horizon", "5000", "--out", tmp_path)
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env={**os.environ})
    for _ in range(6000):
        if any(tmp_path.glob("runs/*.parquet")) or process.poll() is not None:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "finished runs are kept" in said
    assert "coterie reproduce fig-1 --datasets synthetic --quick" in said
    assert list(tmp_path.glob("runs/*.parquet"))
    assert not list(tmp_path.glob("runs/.*.tmp"))
