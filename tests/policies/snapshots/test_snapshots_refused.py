"""What is no snapshot, or no longer one, is refused by one sentence."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie
from contracts.examples import changed, make, play
from coterie import SnapshotError


def refusal(path: Path) -> str:
    """What `load` says of a file that it refuses."""
    with pytest.raises(SnapshotError) as caught:
        coterie.load(path)
    said = str(caught.value)
    assert "\n" not in said
    assert repr(str(path)) in said
    return said.replace(repr(str(path)), "it")


def header_of(path: Path) -> dict[str, Any]:
    """What a snapshot says of itself."""
    with np.load(path) as file:
        found: dict[str, Any] = json.loads(file["header"].tobytes())
    return found


def with_header(path: Path, **changes: Any) -> None:
    """Rewrite a snapshot with other words in its header."""
    with np.load(path) as file:
        content = {name: file[name] for name in file.files}
    header = json.loads(content["header"].tobytes()) | changes
    content["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with path.open("wb") as out:
        np.savez(out, allow_pickle=False, **content)


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
    "a header of other words": saved(header=words(format="something else", version=2)),
    "a header that is a list": saved(header=np.frombuffer(b"[1, 2]", np.uint8)),
    "a header without a body": saved(
        header=words(format="coterie-policy", version=2, policy="CLUB", arguments={}, generator={})
    ),
    "arguments that are not a record": saved(
        header=words(format="coterie-policy", version=2, policy="CLUB", arguments=7, generator={})
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
    assert refusal(tmp_path) == "it is a folder, not a snapshot"
    assert refusal(tmp_path / "nowhere") == "there is no snapshot at it"
    with pytest.raises(FileNotFoundError):
        coterie.load(tmp_path / "nowhere")


@pytest.mark.parametrize("extra", [{}, {"checksum": "of a later time"}])
def test_a_newer_version_is_refused_with_both_versions(extra: dict[str, str], tmp_path: Path) -> None:
    make("CLUB").save(tmp_path / "policy")
    with_header(tmp_path / "policy", version=3, **extra)
    assert refusal(tmp_path / "policy") == "it is of format version 3; this Coterie reads version 2"


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
        "growing": False,
    }
    with_header(tmp_path / "policy", arguments=arguments)
    assert refusal(tmp_path / "policy").startswith("it has no array 'users.inverse' of shape (5, 3, 3)")


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (((",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }     \n  x",
        "{'descr': 'O', 'fortran_order': False, 'shape': (3,), }",
        "'''",
        "(" * 300,
    ],
)
def test_an_array_whose_header_cannot_be_parsed_is_refused(header: str, tmp_path: Path) -> None:
    text = header.encode()
    content = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(24)
    path = tmp_path / "policy"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.npy", content)
    assert refusal(path) == "it is not a whole Coterie snapshot"


def test_an_array_that_the_policy_does_not_have_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "policy"
    make("CLUB").save(path)
    with np.load(path) as file:
        content = {name: file[name] for name in file.files}
    content["state/nonsense"] = np.ones(3)
    with path.open("wb") as out:
        np.savez(out, allow_pickle=False, **content)
    assert refusal(path) == "it has an array 'nonsense' that this policy does not have"
