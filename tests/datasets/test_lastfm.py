from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from coterie.datasets import load
from coterie.errors import DataError
from datasets import generated, naive

TABLE = generated.rows()
TAGS = [(user, item, True) for user, item, rating in TABLE for _ in range(int(2 * rating))]
EXPECTED = naive.gather(TAGS, 20, 40)
NAME = "user_taggedartists.dat"


def as_file(folder: Path) -> Path:
    return generated.write(folder / NAME, generated.lastfm(TABLE))


def as_folder(folder: Path) -> Path:
    return as_file(folder / "hetrec2011-lastfm-2k").parent


def as_zip(folder: Path) -> Path:
    members = [("user_artists.dat", b"userID\n"), (NAME, generated.lastfm(TABLE).encode())]
    return generated.write_zip(folder / "hetrec2011-lastfm-2k.zip", members)


@pytest.mark.parametrize("release", [as_file, as_folder, as_zip])
def test_each_tag_counts_as_a_row_and_a_tagged_artist_is_feedback(
    release: Callable[[Path], Path], tmp_path: Path
) -> None:
    data = load("lastfm", release(tmp_path), dim=5, n_users=20, n_items=40)
    facts = data.provenance
    assert data.user_ids.tolist() == EXPECTED.users
    assert facts.rows == len(TAGS)
    assert facts.density == EXPECTED.matrix.mean()
    assert facts.dropped_items == np.sum(~EXPECTED.matrix.any(axis=0))
    assert facts.tied_items == EXPECTED.tied_items
    singular = np.linalg.svd(EXPECTED.matrix, compute_uv=False)
    np.testing.assert_allclose(facts.singular_values, singular, atol=1e-10)


def test_the_data_folder_is_searched_when_no_path_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_folder(tmp_path)
    monkeypatch.setenv("COTERIE_DATA", str(tmp_path))
    assert load("lastfm", dim=5, n_users=20, n_items=40).provenance.file == NAME


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("2\t52\tx\t1\t4\t2009", "tagID 'x' is not a whole number"),
        ("2\t52\t13\t1\t4", r"expected 6 fields separated by '\\t', got 5"),
    ],
)
def test_a_malformed_line_says_its_number(line: str, fault: str, tmp_path: Path) -> None:
    text = generated.lastfm([generated.Row(1, 1, 1.0)]) + line + "\n"
    with pytest.raises(DataError, match=rf"^line 4 of user_taggedartists.dat: {fault}$"):
        load("lastfm", generated.write(tmp_path / NAME, text))


def test_another_file_of_the_release_is_told_by_its_header(tmp_path: Path) -> None:
    path = generated.write(tmp_path / "user_artists.dat", "userID\tartistID\tweight\n2\t51\t13883\n")
    with pytest.raises(DataError, match=r"line 1 of user_artists.dat: expected the header"):
        load("lastfm", path)
