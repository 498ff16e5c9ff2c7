from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from coterie.datasets import Dataset, load
from coterie.errors import DataError
from datasets import generated

MISSING = "is missing; leave out such rows with missing='drop' (--missing drop)"


def read(folder: Path, text: str, threshold: float | None = None) -> Dataset:
    path = generated.write(folder / "mine.csv", text)
    return load("interactions", path, dim=1, n_users=2, n_items=2, threshold=threshold)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("a,,4,x", f"item {MISSING}"),
        ("a,b,many,x", "value must be a finite number, got 'many'"),
        ("a,b,,x", f"value {MISSING}"),
        ("a,b,nan,x", "value must be a finite number, got 'nan'"),
        ("a,b", f"value {MISSING}"),
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
    with pytest.raises(DataError, match=r"^line 4 of mine.csv: item is missing; "):
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


def test_text_of_another_encoding_says_its_line_and_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes("user,item\na,1\nmüller,1\nmüller,2\n".encode("cp1252"))
    with pytest.raises(DataError, match=r"^line 3 of mine.csv is not utf-8 text; give its encoding, such as"):
        load("interactions", path, dim=1, n_users=2, n_items=2)
    data = load("interactions", path, dim=1, n_users=2, n_items=2, encoding="cp1252")
    assert data.user_ids.tolist() == ["müller", "a"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
@pytest.mark.parametrize("name", ["mine.csv.gz", "mine.tsv.gz", "mine.csv"])
def test_every_separator_encoding_and_compression_gives_the_same(
    name: str, encoding: str, tmp_path: Path
) -> None:
    for mark in ",;\t|":
        text = "user,item,price\nü,1,3\nü,2,3\na,1,\n".replace(",", mark).encode(encoding)
        path = tmp_path / name
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        data = load("interactions", path, dim=1, n_users=2, n_items=2, encoding=encoding)
        assert data.user_ids.tolist() == ["ü", "a"]
        assert data.item_ids.tolist() == [1, 2]
        assert data.provenance.file == name


def test_a_given_separator_is_used_whatever_the_header_looks_like(tmp_path: Path) -> None:
    path = generated.write(tmp_path / "mine.csv", "user,id;item\na;1\na;2\nb;1\n")
    data = load("interactions", path, dim=1, n_users=2, n_items=2, separator=";")
    assert data.user_ids.tolist() == ["a", "b"]


def test_a_bad_line_of_a_compressed_file_says_its_number(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv.gz"
    path.write_bytes(gzip.compress(b"user,item\nu,i\nu,\n"))
    with pytest.raises(DataError, match=r"^line 3 of mine.csv.gz: item is missing"):
        load("interactions", path, dim=1, n_users=2, n_items=2)


def test_a_damaged_archive_says_so(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv.gz"
    path.write_bytes(gzip.compress(b"user,item\nu,i\nu,j\n" * 1000)[:60])
    with pytest.raises(DataError, match=r"^mine.csv.gz is damaged: "):
        load("interactions", path, dim=1, n_users=2, n_items=2)


def test_rows_that_lack_a_value_are_dropped_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = "user,item,value\n1,7,4\n1,8,4\n,7,4\n2,,4\n2,7,\n2,7,nan\n2,7,5\n"
    path = generated.write(tmp_path / "mine.csv", text)
    data = load("interactions", path, dim=1, n_users=2, n_items=2, threshold=3, missing="drop")
    assert data.user_ids.tolist() == [1, 2]
    assert data.provenance.rows == 3
    assert data.provenance.notes == ("4 of 7 rows lack a value and were left out",)
    assert "interactions: 4 of 7 rows lack a value and were left out" in caplog.text


def test_a_table_that_lacks_a_value_everywhere_is_an_error(tmp_path: Path) -> None:
    path = generated.write(tmp_path / "mine.csv", "user,item\na,\nb,\n")
    with pytest.raises(DataError, match="every one of the 2 rows lacks a value"):
        load("interactions", path, dim=1, missing="drop")


def test_dropping_does_not_hide_what_is_no_number(tmp_path: Path) -> None:
    path = generated.write(tmp_path / "mine.csv", "user,item,value\na,x,4\na,y,many\n")
    with pytest.raises(DataError, match=r"line 3 of mine.csv: value must be a finite number, got 'many'"):
        load("interactions", path, dim=1, threshold=3, missing="drop")
