from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from coterie.datasets import load
from coterie.errors import DataError, MissingData
from datasets import generated, naive
from inspection import read_blocks_of

TABLE = generated.rows()
EXPECTED = naive.gather(
    [(generated.yelp_user(user), generated.yelp_item(item), rating > 3) for user, item, rating in TABLE],
    20,
    40,
)
NAME = "yelp_academic_dataset_review.json"
MEMBERS = [
    ("Dataset_User_Agreement.pdf", b"%PDF"),
    ("yelp_academic_dataset_business.json", b'{"business_id": "x"}\n'),
    (NAME, generated.yelp(TABLE).encode()),
]


def as_file(folder: Path) -> Path:
    return generated.write(folder / NAME, generated.yelp(TABLE))


def as_folder(folder: Path) -> Path:
    return as_file(folder / "yelp").parent


def as_tar(folder: Path) -> Path:
    (folder / "yelp_dataset.tar").write_bytes(generated.tar(MEMBERS))
    return folder / "yelp_dataset.tar"


def as_tgz(folder: Path) -> Path:
    (folder / "yelp_dataset.tgz").write_bytes(generated.tar(MEMBERS, gzipped=True))
    return folder / "yelp_dataset.tgz"


def as_tar_in_a_zip(folder: Path) -> Path:
    members = [("Yelp JSON/yelp_dataset.tar", generated.tar(MEMBERS, gzipped=True))]
    return generated.write_zip(folder / "Yelp-JSON.zip", members)


@pytest.mark.parametrize("block", [400, 1 << 25])
@pytest.mark.parametrize("release", [as_file, as_folder, as_tar, as_tgz, as_tar_in_a_zip])
def test_every_release_gives_the_same_matrix_as_plain_python(
    release: Callable[[Path], Path], block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_blocks_of(block, monkeypatch)
    data = load("yelp", release(tmp_path), dim=5, n_users=20, n_items=40)
    assert data.user_ids.tolist() == EXPECTED.users
    assert data.user_ids.dtype.kind == "U"
    assert data.provenance.rows == len(TABLE)
    assert data.provenance.density == EXPECTED.matrix.mean()
    assert data.provenance.tied_items == EXPECTED.tied_items
    singular = np.linalg.svd(EXPECTED.matrix, compute_uv=False)
    np.testing.assert_allclose(data.provenance.singular_values, singular, atol=1e-10)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('{"user_id": "a", "business_id": "b"', r"not a JSON object \(Expecting"),
        ("rubbish", r"not a JSON object \(Expecting"),
        ("[1]", "expected a JSON object, got list"),
        ('{"business_id": "b", "stars": 4}', "user_id must be a string, got None"),
        ('{"user_id": "a", "business_id": 7, "stars": 4}', "business_id must be a string, got 7"),
        ('{"user_id": "a", "business_id": "b", "stars": "4"}', "stars must be a number from 0 to 5, got '4'"),
        ('{"user_id": "a", "business_id": "b", "stars": NaN}', "stars must be a number from 0 to 5, got nan"),
        ('{"user_id": "a", "business_id": "b", "stars": 6}', "stars must be a number from 0 to 5, got 6"),
        ('{"user_id": "a", "business_id": "b"}', "stars must be a number from 0 to 5, got None"),
    ],
)
def test_a_malformed_line_says_its_number(
    line: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_blocks_of(400, monkeypatch)
    good = generated.yelp_line(generated.Row(1, 1, 4.0))
    path = generated.write(tmp_path / NAME, 10 * good + line + "\n" + good)
    with pytest.raises(DataError, match=f"^line 11 of {NAME}: {fault}"):
        load("yelp", path)


def test_the_file_is_never_whole_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken, path = read_blocks_of(1000, monkeypatch), as_file(tmp_path)
    load("yelp", path, dim=5, n_users=20, n_items=40)
    assert 0 < max(taken) < 2000 < path.stat().st_size


def test_a_tar_without_reviews_is_missing_data(tmp_path: Path) -> None:
    path = tmp_path / "yelp_dataset.tar"
    path.write_bytes(generated.tar(MEMBERS[:2]))
    with pytest.raises(MissingData, match=r"no yelp file inside 'yelp_dataset.tar'; download"):
        load("yelp", path)
