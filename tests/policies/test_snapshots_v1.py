"""Files of format version 1 go on exactly as the library that wrote them would have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie
from contracts.examples import changed, play
from coterie import SnapshotError
from policies.test_snapshots_hostile import objection

FOLDER = Path(__file__).parent / "snapshots_v1"
EXPECTED: dict[str, dict[str, Any]] = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))


def test_every_file_has_its_expected_future() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.npz")) == sorted([*EXPECTED, "autoclub"])


def test_an_autoclub_that_learnt_by_other_rules_is_refused() -> None:
    with pytest.raises(SnapshotError, match="holds an AutoCLUB that learnt by other rules"):
        coterie.load(FOLDER / "autoclub.npz")


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_an_old_file_plays_the_very_arms_that_were_written_down(name: str, tmp_path: Path) -> None:
    policy = coterie.load(FOLDER / f"{name}.npz")
    policy.save(tmp_path / "new")
    assert play(policy, 200, seed=5) == EXPECTED[name]["arms"]
    assert policy.labels().tolist() == EXPECTED[name]["labels"]
    assert policy.rounds == EXPECTED[name]["rounds"]
    again = coterie.load(tmp_path / "new")
    assert play(again, 200, seed=5) == EXPECTED[name]["arms"]
    assert changed(policy, again) == []


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_an_old_file_that_was_edited_is_refused_or_harmless(name: str, tmp_path: Path) -> None:
    with np.load(FOLDER / f"{name}.npz") as file:
        content = {key: file[key] for key in file.files}
    for key, array in content.items():
        if key == "header" or array.dtype.kind == "f":
            continue
        for value in (-1, 2**62, 7):
            edited = np.full(array.shape, value).astype(array.dtype)
            with (tmp_path / "edited").open("wb") as out:
                np.savez(out, allow_pickle=False, **{**content, key: edited})
            assert "\n" not in objection(tmp_path / "edited")


@pytest.mark.parametrize("missing", ["state/clock", "state/labels", "state/grams"])
def test_an_old_file_without_an_array_is_refused(missing: str, tmp_path: Path) -> None:
    for name in ("sclub", "club"):
        with np.load(FOLDER / f"{name}.npz") as file:
            content = {key: file[key] for key in file.files if key != missing}
        with (tmp_path / "part").open("wb") as out:
            np.savez(out, allow_pickle=False, **content)
        with pytest.raises(SnapshotError):
            coterie.load(tmp_path / "part")
