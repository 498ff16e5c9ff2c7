from __future__ import annotations

from pathlib import Path

import pytest

from coterie.datasets import Dataset, load
from coterie.errors import DataError
from datasets import generated


def read(folder: Path, text: str, threshold: float | None = None) -> Dataset:
    path = generated.write(folder / "mine.csv", text)
    return load("interactions", path, dim=1, n_users=2, n_items=2, threshold=threshold)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("a,,4,x", "item must be an id, got None"),
        ("a,b,many,x", "value must be a finite number, got 'many'"),
        ("a,b,,x", "value must be a finite number, got None"),
        ("a,b,nan,x", "value must be a finite number, got 'nan'"),
        ("a,b", "value must be a finite number, got None"),
        ("a,b,4,x,y", "expected 4 fields, got 5"),
    ],
)
def test_a_malformed_line_says_its_number(line: str, fault: str, end: str, tmp_path: Path) -> None:
    text = end.join(["user,item,value,text", "u,i,4,x", "", "v,i,1.5,x", line, "u,j,4,x", ""])
    with pytest.raises(DataError) as caught:
        read(tmp_path, text, threshold=3)
    assert str(caught.value) == f"line 5 of mine.csv: {fault}"


def test_a_quoted_line_end_counts_as_a_line_but_not_as_a_row(tmp_path: Path) -> None:
    text = 'user,item,value,text\nu,i,4,"two\nlines, ""quoted"""\nu,,4,x\n'
    with pytest.raises(DataError, match=r"^line 4 of mine.csv: item must be an id, got None$"):
        read(tmp_path, text, threshold=3)


def test_quotes_around_ids_are_not_part_of_them(tmp_path: Path) -> None:
    data = read(tmp_path, 'user,item\n"a, b",1\n"a, b",2\nc,1\n')
    assert data.user_ids.tolist() == ["a, b", "c"]
    assert data.item_ids.tolist() == [1, 2]


def test_empty_lines_are_no_rows(tmp_path: Path) -> None:
    assert read(tmp_path, "user,item\n\na,1\n\n\na,2\nb,1\n\n").provenance.rows == 3


def test_a_byte_order_mark_is_not_part_of_the_first_name(tmp_path: Path) -> None:
    path = generated.write(tmp_path / "mine.csv", "\ufeffuser,item\na,1\na,2\nb,1\n")
    data = load("interactions", path, dim=1, n_users=2, n_items=2, columns=("user", "item"))
    assert data.user_ids.tolist() == ["a", "b"]


def test_a_file_without_a_header_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 1 of mine.csv: no header"):
        read(tmp_path, "")


def test_a_file_that_is_not_text_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(b"user,item\n\xff\xfe,1\n")
    with pytest.raises(DataError, match=r"mine.csv"):
        load("interactions", path, dim=1, n_users=2, n_items=2)
