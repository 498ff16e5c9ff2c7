from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie
from contracts.examples import ALL, TUNED, changed, grow, make, memory, play
from coterie import CLUB, LinearBandit, LinUCBOracle, SnapshotError, Theory, Tuned, UniCLUB, atomic_files


def restored(policy: LinearBandit, folder: Path) -> LinearBandit:
    policy.save(folder / "policy.npz")
    return coterie.load(folder / "policy.npz")


@pytest.mark.parametrize("example", ALL)
@pytest.mark.parametrize("rounds", [0, 9, 333])
def test_a_restored_policy_goes_on_as_if_never_stopped(example: str, rounds: int, tmp_path: Path) -> None:
    policy = make(example)
    play(policy, rounds)
    before = memory(policy)
    again = restored(policy, tmp_path)
    assert changed(before, policy) == []
    assert changed(policy, again) == []
    assert again.name == policy.name
    assert again.exploration == policy.exploration
    assert again.rounds == rounds
    assert play(again, 1000, seed=4) == play(policy, 1000, seed=4)
    assert changed(policy, again) == []


@pytest.mark.parametrize("example", ALL)
def test_a_policy_that_grew_is_restored_and_can_grow_again(example: str, tmp_path: Path) -> None:
    policy = make(example)
    for step in range(2):
        play(policy, 100, seed=step)
        grow(policy, 3)
    again = restored(policy, tmp_path)
    assert again.n_users == 12
    assert play(again, 500, seed=9) == play(policy, 500, seed=9)
    for grown in (policy, again):
        grow(grown, 60)
    assert play(again, 500, seed=10) == play(policy, 500, seed=10)
    assert changed(policy, again) == []


@pytest.mark.parametrize("example", ALL)
def test_a_snapshot_of_a_restored_policy_holds_the_same_again(example: str, tmp_path: Path) -> None:
    policy = make(example)
    play(policy, 80)
    policy.save(tmp_path / "one")
    coterie.load(tmp_path / "one").save(tmp_path / "two")
    with np.load(tmp_path / "one") as one, np.load(tmp_path / "two") as two:
        assert one.files == two.files
        assert all(np.array_equal(one[name], two[name]) for name in one.files)


def test_nothing_is_shared_between_a_policy_and_its_restored_twin(tmp_path: Path) -> None:
    policy = make("CLUB")
    again = restored(policy, tmp_path)
    before = memory(policy)
    play(again, 50)
    assert changed(before, policy) == []


def test_the_file_holds_named_arrays_a_version_and_no_pickle(tmp_path: Path) -> None:
    make("LinUCBOracle").save(tmp_path / "policy.npz")
    with np.load(tmp_path / "policy.npz", allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    header = json.loads(arrays.pop("header").tobytes())
    assert (header["format"], header["version"]) == ("coterie-policy", 2)
    assert header["policy"] == "LinUCBOracle"
    assert {name.split("/")[0] for name in arrays} == {"state", "argument"}
    assert all(array.dtype != object for array in arrays.values())


@pytest.mark.parametrize("name", ["policy", "policy.npz", "ein paar Wörter.snapshot", ".hidden"])
def test_the_file_has_the_very_name_that_was_given(name: str, tmp_path: Path) -> None:
    make("CLUB").save(str(tmp_path / name))
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    assert coterie.load(str(tmp_path / name)).name == "CLUB"


def test_numbers_of_numpy_in_the_arguments_are_restored(tmp_path: Path) -> None:
    kind: Any = Theory
    theory = kind(horizon=np.int64(1000), lambda_x=np.float64(0.1))
    maker: Any = CLUB
    assert restored(maker(np.int64(3), 2, confidence=theory), tmp_path).n_users == 3
    kind = Tuned
    tuned = kind(alpha=np.float32(0.1), beta=0.1, explore=np.int32(10))
    maker = UniCLUB
    policy = maker(3, 2, confidence=tuned, seed=np.uint8(3))
    assert changed(policy, restored(policy, tmp_path)) == []


def test_labels_that_the_caller_changes_later_do_not_reach_the_snapshot(tmp_path: Path) -> None:
    labels = np.array([0, 0, 1, 1])
    policy = LinUCBOracle(4, 2, labels=labels)
    labels[:] = [0, 1, 2, 3]
    assert restored(policy, tmp_path).labels().tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("example", ["LinUCBOracle", "GOBLin", "GraphUCB"])
def test_what_a_policy_says_it_was_made_with_cannot_be_changed_from_outside(example: str) -> None:
    policy = make(example)
    before = repr(policy.arguments)
    for value in policy.arguments.values():
        if isinstance(value, np.ndarray) and value.flags.writeable:
            value[...] = 5
    assert repr(policy.arguments) == before


def test_saving_into_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match=r"is a folder; name a file to save into"):
        make("CLUB").save(tmp_path)
    with pytest.raises(SnapshotError, match=r"is no file; name a file to save into"):
        make("CLUB").save(os.devnull)
    with pytest.raises(SnapshotError, match=r"there is no folder '.*nowhere' to save into"):
        make("CLUB").save(tmp_path / "nowhere" / "policy")


@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_an_interrupted_save_leaves_the_old_file_and_no_litter(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "policy"
    policy = make("CLUB")
    policy.save(path)
    old = path.read_bytes()
    play(policy, 10)

    def interrupted(*_: Any) -> None:
        raise OSError("the disk is on fire")

    monkeypatch.setattr(os, step, interrupted)
    with pytest.raises(OSError, match="on fire"):
        policy.save(path)
    monkeypatch.undo()
    assert path.read_bytes() == old
    assert coterie.load(path).rounds == 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["policy"]


def test_what_a_killed_save_left_behind_is_removed_by_the_next_one(tmp_path: Path) -> None:
    path, killed = tmp_path / "policy", 2**22 + 1  # no process has such a number
    gone = tmp_path / f".policy.{killed}-{atomic_files.machine()}-0123abcd.tmp"
    living = tmp_path / f".policy.{os.getpid()}-{atomic_files.machine()}-0123abcd.tmp"
    abroad = tmp_path / ".policy.7-00000000-0123abcd.tmp"
    old = tmp_path / ".policy.7-00000000-4567abcd.tmp"
    other = tmp_path / f".another.{killed}-{atomic_files.machine()}-0123abcd.tmp"
    for file in (gone, living, abroad, old, other):
        file.write_bytes(b"half of a snapshot")
    os.utime(old, (1.0, 1.0))
    make("CLUB").save(path)
    assert {entry.name for entry in tmp_path.iterdir()} == {
        "policy",
        living.name,  # of a process that may still be writing it
        abroad.name,  # of another machine, and young
        other.name,  # of another snapshot
    }


def test_a_save_killed_in_the_middle_leaves_the_old_file_and_the_next_cleans_up(tmp_path: Path) -> None:
    path = tmp_path / "policy"
    make("CLUB").save(path)
    old = path.read_bytes()
    dying = (
        "import os, coterie; from contracts.examples import make; "
        f"os.fsync = lambda file: os.kill(os.getpid(), 9); make('CLUB', seed=3).save({str(path)!r})"
    )
    tests = Path(__file__).resolve().parents[2]
    killed = subprocess.run([sys.executable, "-c", dying], cwd=tests, timeout=60, check=False)
    assert killed.returncode == -9
    assert path.read_bytes() == old
    assert len(list(tmp_path.iterdir())) == 2
    coterie.load(path).save(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["policy"]


def test_a_snapshot_has_the_rights_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "any").write_bytes(b"")
    CLUB(2, 2, confidence=TUNED).save(tmp_path / "policy")
    rights = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("any", "policy")]
    assert rights[0] == rights[1]
