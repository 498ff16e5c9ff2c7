"""Files made to do harm are refused by one sentence, before memory is taken for what they promise."""

from __future__ import annotations

import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie
from contracts.examples import make, play
from coterie import SnapshotError
from policies.snapshots.test_snapshots_refused import header_of, refusal, with_header

PULLS = {"state/pulls", "state/users.pulls", "state/joint.pulls"}
NOT_WHOLE = "it is not a whole Coterie snapshot"


def objection(path: Path) -> str:
    """What `load` says of a file, nothing if the policy can be played."""
    try:
        play(coterie.load(path), 30)
    except SnapshotError as error:
        return str(error)
    return ""


def test_compressed_members_are_refused_unread(tmp_path: Path) -> None:
    """A zip bomb: less than half a megabyte that would unfold to 192."""
    make("CLUB").save(tmp_path / "policy")
    with zipfile.ZipFile(tmp_path / "policy") as old, zipfile.ZipFile(tmp_path / "packed", "w") as packed:
        for name in old.namelist():
            packed.writestr(name, old.read(name), zipfile.ZIP_DEFLATED)
    assert refusal(tmp_path / "packed") == NOT_WHOLE
    with zipfile.ZipFile(tmp_path / "bomb", "w", zipfile.ZIP_DEFLATED) as bomb:
        for name in ("header.npy", "state/a.npy", "state/b.npy"):
            bomb.writestr(name, bytes(2**26))
    assert (tmp_path / "bomb").stat().st_size < 2**19
    assert refusal(tmp_path / "bomb") == NOT_WHOLE


@pytest.mark.parametrize("size", [0, 1, 2**31, 2**32 - 2])
def test_members_that_lie_about_their_size_are_refused(size: int, tmp_path: Path) -> None:
    path = tmp_path / "policy"
    make("CLUB").save(path)
    content = bytearray(path.read_bytes())
    at = content.index(b"PK\x01\x02")
    content[at + 20 : at + 28] = struct.pack("<II", size, size)
    path.write_bytes(content)
    assert refusal(path) == NOT_WHOLE


def test_the_same_member_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "policy"
    make("CLUB").save(path)
    with zipfile.ZipFile(path, "a") as archive:
        header = archive.read("header.npy")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("header.npy", header)
    assert refusal(path) == NOT_WHOLE


SHAPES = ["(6, 3, 4)", "(10**9,)", "(1000000000000,)", "(-1, -54)", "(-54,)", "()", "(54.0,)", "'abc'"]
TYPES = ["'<f8'", "'|O'", "'<f4'", "'|V0'", "'|S0'", "[('a', '<f8')]"]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("descr", TYPES)
def test_arrays_that_lie_about_their_shape_or_type_are_refused(
    shape: str, descr: str, tmp_path: Path
) -> None:
    make("CLUB").save(tmp_path / "policy")
    words = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    lie = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(words) + 1) + words + b"\n" + bytes(8 * 54)
    with zipfile.ZipFile(tmp_path / "policy") as old, zipfile.ZipFile(tmp_path / "liar", "w") as liar:
        for name in old.namelist():
            liar.writestr(name, lie if name == "state/users.inverse.npy" else old.read(name))
    assert len(refusal(tmp_path / "liar")) < 200


WRONG: tuple[Any, ...] = (
    *(None, 0, -1, 2.5, "x", "two\nlines", "x" * 1000, [], [1, 2], list(range(1000))),
    *({}, {"a": {"b": [1]}}, {str(k): k for k in range(1000)}, 10**30, 2**62),
)
FIELDS = ["format", "version", "policy", "arguments", "generator", "numbers"]


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", WRONG, ids=lambda value: repr(value)[:20])
def test_a_header_of_wrong_kinds_is_refused_by_one_sentence(field: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "policy"
    make("CLUB").save(path)
    with_header(path, **{field: value})
    assert len(refusal(path)) < 250


@pytest.mark.parametrize("field", FIELDS)
def test_a_header_without_a_field_is_refused(field: str, tmp_path: Path) -> None:
    path = tmp_path / "policy"
    make("CLUB").save(path)
    with np.load(path) as file:
        content = {name: file[name] for name in file.files}
    header = header_of(path)
    del header[field]
    content["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with path.open("wb") as out:
        np.savez(out, allow_pickle=False, **content)
    assert len(refusal(path)) < 250


@pytest.mark.parametrize("example", ["CLUB", "SACLUB", "LinUCBOracle", "GOBLin", "AutoCLUB", "PhaseUniCLUB"])
def test_arguments_of_wrong_kinds_are_refused_or_harmless(example: str, tmp_path: Path) -> None:
    path = tmp_path / "policy"
    make(example).save(path)
    arguments = header_of(path)["arguments"]
    for name in (*arguments, "labels", "graph", "extra"):
        for value in WRONG:
            with_header(path, arguments={**arguments, name: value})
            said = objection(path)
            assert "\n" not in said
            assert len(said) < 400, (name, value)


@pytest.mark.parametrize("name", ["n_users", "dim"])
@pytest.mark.parametrize("huge", [10**4, 10**9, 2**31, 2**62, 10**30, -5])
def test_sizes_beyond_the_file_are_refused_before_memory_is_taken(
    name: str, huge: int, tmp_path: Path
) -> None:
    path = tmp_path / "policy"
    for example in ("CLUB", "LinUCBOne", "GOBLin", "AutoCLUB"):
        make(example).save(path)
        with_header(path, arguments={**header_of(path)["arguments"], name: huge})
        assert len(refusal(path)) < 200


COUNTS = {
    "CLUB": "n_components",
    "SCLUB": "n_clusters",
    "PhaseUniCLUB": "n_neighbourhoods",
    "AutoCLUB": "n_clusters",
}


@pytest.mark.parametrize("example", COUNTS)
@pytest.mark.parametrize("value", [10**9, -1, 1.5, 2**63, 10**30, np.nan, np.inf, "6", None, [1], {"a": 1}])
def test_numbers_that_cannot_be_are_refused(example: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "policy"
    make(example).save(path)
    with_header(path, numbers={**header_of(path)["numbers"], COUNTS[example]: value})
    assert len(refusal(path)) < 300


@pytest.mark.parametrize("value", [-1, 2**63 - 1])
def test_outdated_models_that_the_next_one_would_overflow_are_refused(value: int, tmp_path: Path) -> None:
    path = tmp_path / "policy"
    make("DyClu").save(path)
    with_header(path, numbers={**header_of(path)["numbers"], "retired": value})
    assert "outdated models" in refusal(path)


@pytest.mark.parametrize("example", ["CLUB", "SCLUB", "AutoCLUB"])
def test_a_count_in_bounds_that_is_not_that_of_the_labels_is_refused(example: str, tmp_path: Path) -> None:
    """The next split would lead beyond the rows."""
    path = tmp_path / "policy"
    make(example).save(path)
    with_header(path, numbers={**header_of(path)["numbers"], COUNTS[example]: 6})
    assert refusal(path)


def test_labels_that_are_not_the_components_of_the_edges_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "policy"
    make("CLUB").save(path)
    with np.load(path) as file:
        content = {name: file[name] for name in file.files}
    content["state/labels"] = np.array([0, 0, 1, 2, 2, 2])
    with path.open("wb") as out:
        np.savez(out, allow_pickle=False, **content)
    with_header(path, numbers={"rounds": 0, "n_components": 3})
    assert "component" in refusal(path)


@pytest.mark.parametrize(("user", "other"), [(3, 150), (150, 3), (129, 64), (10, 20), (70, 170)])
def test_an_edge_that_does_not_lead_back_is_refused(user: int, other: int, tmp_path: Path) -> None:
    """170 users are three words; the last place is nobody's."""
    path = tmp_path / "policy"
    coterie.CLUB(170, 2, confidence=coterie.Tuned(alpha=1.5, beta=0.1)).save(path)
    with np.load(path) as file:
        content = {name: file[name] for name in file.files}
    content["state/edges"][user, other // 64] ^= np.uint64(1) << np.uint64(other % 64)
    with path.open("wb") as out:
        np.savez(out, allow_pickle=False, **content)
    assert "leads nowhere" in refusal(path)


GROWING = ["LinUCBInd", "LinTSOne", "CLUB", "SCLUB", "AutoCLUB", "GOBLin", "DynUCB"]


@pytest.mark.parametrize("example", GROWING)
def test_counts_that_the_next_round_would_overflow_are_refused(example: str, tmp_path: Path) -> None:
    path = tmp_path / "policy"
    make(example).save(path)
    with_header(path, numbers={**header_of(path)["numbers"], "rounds": 2**63 - 1})
    assert refusal(path)
    make(example).save(path)
    with np.load(path) as file:
        content = {name: file[name] for name in file.files}
    (counts,) = [content[name] for name in content if name in PULLS]
    counts[0] = 2**63 - 1
    with path.open("wb") as out:
        np.savez(out, allow_pickle=False, **content)
    assert "count nothing" in refusal(path)
