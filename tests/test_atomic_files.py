"""Files that are whole or absent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import pytest

from coterie.atomic_files import ABANDONED, atomic_write, machine, process_exists

KILLED = """
import os, signal, sys
from pathlib import Path
from coterie.atomic_files import atomic_write
os.replace = lambda temporary, path: os.kill(os.getpid(), signal.SIGKILL)
atomic_write(Path(sys.argv[1]), b"lost")
"""


def killed_while_writing(path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL


def temporary(path: Path, pid: int, where: str) -> Path:
    left = path.with_name(f".{path.name}.{pid}-{where}-abcd.tmp")
    left.write_bytes(b"half")
    return left


def gone_process() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def test_bytes_and_functions_are_written_and_folders_made(tmp_path: Path) -> None:
    atomic_write(tmp_path / "a" / "b", b"bytes")
    atomic_write(tmp_path / "a" / "c", lambda file: file.write(b"function"))
    assert [(tmp_path / "a" / name).read_bytes() for name in "bc"] == [b"bytes", b"function"]
    assert len(list((tmp_path / "a").iterdir())) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_disk_that_takes_no_more_is_an_error_that_names_the_target(tmp_path: Path) -> None:
    code = """
import resource, sys
from pathlib import Path
from coterie.atomic_files import atomic_write
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    atomic_write(Path(sys.argv[1]), bytes(2000))
except OSError as error:
    print(error.filename, type(error.__cause__).__name__)
"""
    target = tmp_path / "a"
    command = [sys.executable, "-c", code, str(target)]
    seen = subprocess.run(command, capture_output=True, text=True, check=True)
    assert seen.stdout.split() == [str(target), "OSError"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failed_write_leaves_the_old_content_and_no_temporary_file(
    tmp_path: Path, error: type[BaseException]
) -> None:
    def fail(file: BinaryIO) -> None:
        file.write(b"half")
        raise error

    atomic_write(tmp_path / "a", b"old")
    with pytest.raises(error):
        atomic_write(tmp_path / "a", fail)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"old"}


def test_content_is_on_the_disk_before_the_rename_and_the_rename_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    rename = os.replace

    def noted(temporary: Path, path: Path) -> None:
        steps.append("rename")
        rename(temporary, path)

    monkeypatch.setattr(os, "fsync", lambda handle: steps.append("fsync"))
    monkeypatch.setattr(os, "replace", noted)
    atomic_write(tmp_path / "a", b"")
    assert steps == ["fsync", "rename", "fsync"]


def test_the_next_write_removes_what_a_killed_process_left(tmp_path: Path) -> None:
    killed_while_writing(tmp_path / "a")
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".a.")
    atomic_write(tmp_path / "other", b"")
    assert left.exists()
    atomic_write(tmp_path / "a", b"whole")
    assert {path.name for path in tmp_path.iterdir()} == {"a", "other"}


def test_temporary_files_of_living_writers_and_of_other_machines_stay(tmp_path: Path) -> None:
    path, gone = tmp_path / "a", gone_process()
    kept = [
        temporary(path, os.getpid(), machine()),
        temporary(path, os.getppid(), machine()),
        temporary(path, gone, "0123abcd"),
    ]
    temporary(path, gone, machine())
    atomic_write(path, b"")
    assert set(tmp_path.iterdir()) == {path, *kept}


def test_a_day_later_any_temporary_file_is_stale(tmp_path: Path) -> None:
    left = temporary(tmp_path / "a", gone_process(), "0123abcd")
    then = left.stat().st_mtime - ABANDONED - 1
    os.utime(left, (then, then))
    atomic_write(tmp_path / "a", b"")
    assert not left.exists()


def test_names_that_only_look_alike_are_left_alone(tmp_path: Path) -> None:
    near = [f".a.{gone_process()}-{machine()}-zz.tmp", ".a.tmp", f".ab.1-{machine()}-aa.tmp", "a.tmp"]
    for name in near:
        (tmp_path / name).touch()
    atomic_write(tmp_path / "a", b"")
    assert {path.name for path in tmp_path.iterdir()} == {"a", *near}


def test_writers_at_the_same_time_do_not_disturb_each_other(tmp_path: Path) -> None:
    contents = [bytes([k]) * 100_000 for k in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda content: atomic_write(tmp_path / "a", content), contents))
    assert (tmp_path / "a").read_bytes() in contents
    assert len(list(tmp_path.iterdir())) == 1


def test_files_obey_the_umask(tmp_path: Path) -> None:
    atomic_write(tmp_path / "a", b"")
    (tmp_path / "b").touch()
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_a_process_exists_until_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    assert process_exists(os.getpid())
    assert not process_exists(gone_process())
    assert not process_exists(10**30)

    def denied(pid: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", denied)
    assert process_exists(1)
