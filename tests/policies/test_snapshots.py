from __future__ import annotations

import io
import json
import os
import pickle
import stat
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie
from contracts.examples import EXAMPLES, TUNED, changed, grow, make, memory, play
from coterie import CLUB, LinUCBOracle, Policy, SnapshotError, Theory, Tuned, UniCLUB

ALL = sorted(EXAMPLES)


def restored(policy: Policy, folder: Path) -> Policy:
    policy.save(folder / "policy.npz")
    return coterie.load(folder / "policy.npz")


def refusal(path: Path) -> str:
    """What `load` says of a file that it refuses."""
    with pytest.raises(SnapshotError) as caught:
        coterie.load(path)
    said = str(caught.value)
    assert "\n" not in said
    assert repr(str(path)) in said
    return said.replace(repr(str(path)), "it")


def with_header(path: Path, **changes: Any) -> None:
    """Rewrite a snapshot with other words in its header."""
    with np.load(path) as file:
        content = {name: file[name] for name in file.files}
    header = json.loads(content["header"].tobytes()) | changes
    content["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with path.open("wb") as out:
        np.savez(out, allow_pickle=False, **content)


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
    assert (header["format"], header["version"]) == ("coterie-policy", 1)
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


@pytest.mark.parametrize("example", ["CLUB", "GraphUCB", "LinUCBOracle"])
def test_a_truncated_file_is_refused_wherever_it_ends(example: str, tmp_path: Path) -> None:
    path = tmp_path / "policy"
    policy = make(example)
    play(policy, 50)
    policy.save(path)
    content = path.read_bytes()
    for length in {0, 1, 3, 4, 30, 100, 1000, *range(0, len(content), 97), len(content) - 1}:
        path.write_bytes(content[:length])
        assert refusal(path) == "it is not a whole Coterie snapshot"


def test_a_file_with_one_damaged_byte_is_refused_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "policy"
    policy = make("CLUB")
    play(policy, 50)
    policy.save(path)
    content = path.read_bytes()
    for at in (*range(0, len(content), 83), *range(len(content) - 500, len(content))):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
        try:
            again = coterie.load(path)
        except SnapshotError:
            continue
        assert changed(policy, again) == []


def zipped(name: str, content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, content)
    return file.getvalue()


def saved(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def array_file() -> bytes:
    file = io.BytesIO()
    np.save(file, np.eye(3))
    return file.getvalue()


def words(**header: Any) -> Any:
    return np.frombuffer(json.dumps(header).encode(), np.uint8)


FOREIGN = {
    "text": b"Dear Sir or Madam,\n",
    "an empty file": b"",
    "zeros": bytes(5000),
    "a pickle": pickle.dumps({"policy": "CLUB"}),
    "a pickled array": pickle.dumps(np.eye(3)),
    "a zip of text": zipped("letter.txt", b"Dear Sir or Madam,\n"),
    "a zip with a header of text": zipped("header", b"Dear Sir or Madam,\n"),
    "an empty zip": zipped("x", b"")[:0] + b"PK\x05\x06" + bytes(18),
    "one array": array_file(),
    "arrays of other content": saved(weights=np.eye(3), bias=np.ones(3)),
    "arrays of objects": saved(header=np.array([{"format": "coterie-policy"}], object)),
    "a header of numbers": saved(header=np.eye(3)),
    "a header of other words": saved(header=words(format="something else", version=1)),
    "a header that is a list": saved(header=np.frombuffer(b"[1, 2]", np.uint8)),
    "a header without a body": saved(
        header=words(format="coterie-policy", version=1, policy="CLUB", arguments={}, generator={})
    ),
    "arguments that are not a record": saved(
        header=words(format="coterie-policy", version=1, policy="CLUB", arguments=7, generator={})
    ),
}


@pytest.mark.parametrize("kind", sorted(FOREIGN))
def test_a_foreign_file_is_refused_by_one_sentence(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(FOREIGN[kind])
    assert len(refusal(path)) < 200


def test_loading_a_pickle_runs_nothing(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "sprung"),)

    for content in (pickle.dumps(Trap()), saved(header=np.array([Trap()], object))):
        (tmp_path / "trap").write_bytes(content)
        refusal(tmp_path / "trap")
    assert not (tmp_path / "sprung").exists()


def test_a_directory_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path) == "it is not a whole Coterie snapshot"
    assert refusal(tmp_path / "nowhere") == "there is no snapshot at it"


def test_saving_into_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match=r"there is no folder '.*nowhere' to save into"):
        make("CLUB").save(tmp_path / "nowhere" / "policy")


@pytest.mark.parametrize("extra", [{}, {"checksum": "of a later time"}])
def test_a_newer_version_is_refused_with_both_versions(extra: dict[str, str], tmp_path: Path) -> None:
    make("CLUB").save(tmp_path / "policy")
    with_header(tmp_path / "policy", version=2, **extra)
    assert refusal(tmp_path / "policy") == "it is of format version 2; this Coterie reads version 1"


def test_an_unknown_policy_or_format_is_refused(tmp_path: Path) -> None:
    make("CLUB").save(tmp_path / "policy")
    with_header(tmp_path / "policy", policy="TURBO")
    assert refusal(tmp_path / "policy") == "it holds a policy 'TURBO' that this Coterie does not know"
    with_header(tmp_path / "policy", policy="CLUB", format="jazz")
    assert refusal(tmp_path / "policy") == "it holds 'jazz', not 'coterie-policy'"


def test_arrays_that_do_not_fit_the_arguments_are_refused(tmp_path: Path) -> None:
    make("CLUB", n_users=4).save(tmp_path / "policy")
    arguments = {
        "n_users": 5,
        "dim": 3,
        "ridge": 1.0,
        "seed": 0,
        "confidence": {"kind": "Tuned", "alpha": 1, "beta": 1},
    }
    with_header(tmp_path / "policy", arguments=arguments)
    assert refusal(tmp_path / "policy").startswith("it has no array 'users.inverse' of shape (5, 3, 3)")


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


def test_a_snapshot_has_the_rights_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "any").write_bytes(b"")
    CLUB(2, 2, confidence=TUNED).save(tmp_path / "policy")
    rights = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("any", "policy")]
    assert rights[0] == rights[1]
