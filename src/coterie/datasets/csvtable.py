"""Any CSV file with a header: columns by name, quotes allowed; whole numbers or text."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING

from coterie.datasets.lines import DAMAGE
from coterie.datasets.sources import CHUNK, FileStream
from coterie.errors import DataError

if TYPE_CHECKING:
    import polars as pl

SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
SEPARATORS = (",", ";", "\t", "|")
"""Separators that are tried where none is given."""


@dataclass(frozen=True, slots=True)
class CsvTable:
    """A CSV or TSV file with a header; `name` is that of the file that was given."""

    path: Path
    separator: str
    name: str

    def header(self) -> list[str]:
        """The names in line 1."""
        import polars as pl

        try:
            return self._scan().collect_schema().names()
        except pl.exceptions.PolarsError as error:
            _check_utf8(self.path, self.name)
            raise DataError(f"line 1 of {self.name}: no header ({first_line(error)})") from None

    def read(self, names: list[str]) -> pl.DataFrame:
        """Some columns without the empty rows: whole numbers where every entry is one, otherwise text."""
        import polars as pl

        try:
            lazy = self._scan().filter(~pl.all_horizontal(pl.all().is_null())).select(names)
            plain = lazy.select(_is_plain(name) for name in names).collect(engine="streaming").row(0)
            whole = [name for name, yes in zip(names, plain, strict=True) if yes]
            return lazy.with_columns(pl.col(whole).cast(pl.Int64)).collect(engine="streaming")
        except pl.exceptions.PolarsError as error:
            _check_utf8(self.path, self.name)
            raise self._ragged(first_line(error)) from None

    def refuse(self, row: int, fault: str) -> DataError:
        """The error for a row counted from 0, by the number of its line."""
        return DataError(f"line {self._line_of(row)} of {self.name}: {fault}")

    def _scan(self) -> pl.LazyFrame:
        import polars as pl

        return pl.scan_csv(self.path, separator=self.separator, infer_schema_length=0)

    def _line_of(self, row: int) -> int:
        """The line where a row starts: quoted fields may span several lines."""
        with self.path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            records = csv.reader(file, delimiter=self.separator)
            line = 1
            for record in records:  # the header is row -1
                row -= any(record)  # empty rows were left out
                if row < -1:
                    break
                line = records.line_num + 1
            return line

    def _ragged(self, otherwise: str) -> DataError:
        """The error for the first line with too many fields."""
        with self.path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            records = csv.reader(file, delimiter=self.separator)
            width, start = len(next(records, [])), records.line_num + 1
            for record in records:
                if len(record) > width:
                    return DataError(
                        f"line {start} of {self.name}: expected {width} fields, got {len(record)}"
                    )
                start = records.line_num + 1
        return DataError(f"{self.name} cannot be read as CSV: {otherwise}")


@contextmanager
def opened_csv(path: Path, separator: str | None, encoding: str) -> Iterator[CsvTable]:
    """The table in a file; what is compressed or not UTF-8 is read from a temporary copy that is neither."""
    compressed = path.suffix.lower() == ".gz"
    if not compressed and codecs.lookup(encoding).name in ("utf-8", "utf-8-sig", "ascii"):
        yield CsvTable(path, separator or _separator(path, path.name), path.name)
        return
    with TemporaryDirectory(prefix="coterie-") as folder:
        copy = Path(folder, "table.csv")
        with gzip.open(path) if compressed else path.open("rb") as source, copy.open("wb") as target:
            for text in _decoded(source, encoding, path.name):
                target.write(text.encode())
        yield CsvTable(copy, separator or _separator(copy, path.name), path.name)


def text_columns(stream: FileStream, names: tuple[str, ...]) -> dict[str, list[str]]:
    """Columns of a small CSV file as text; the file may be a member of an archive."""
    found: dict[str, list[str]] = {name: [] for name in names}
    try:
        rows = csv.DictReader(io.StringIO(stream.file.read().decode("utf-8-sig"), newline=""))
        header = rows.fieldnames or []
        if lacking := [name for name in names if name not in header]:
            raise DataError(
                f"line 1 of {stream.name}: no column {lacking[0]!r} in {','.join(header)[:100]!r}"
            )
        line = rows.line_num + 1
        for row in rows:
            for name in names:
                if row[name] is None:
                    raise DataError(f"line {line} of {stream.name}: {name} is missing")
                found[name].append(row[name])
            line = rows.line_num + 1
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{stream.name} cannot be read as CSV: {error}") from None
    except DAMAGE as error:
        raise DataError(f"{stream.name} is damaged: {error}") from error
    return found


def _separator(path: Path, name: str) -> str:
    """The usual one for the file's name if it divides the header, else the one that divides it most."""
    usual = "\t" if ".tsv" in name.lower() else ","
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        header = file.readline(CHUNK)
    fields = {mark: len(next(csv.reader([header], delimiter=mark), [])) for mark in (usual, *SEPARATORS)}
    return usual if fields[usual] > 1 else max(fields, key=lambda mark: fields[mark])


def _decoded(file: gzip.GzipFile | IO[bytes], encoding: str, name: str) -> Iterator[str]:
    """The text of a file, piece by piece; what cannot be decoded is an error that says its line."""
    decoder, line, chunk = codecs.getincrementaldecoder(encoding)(), 1, b"-"
    try:
        while chunk:
            chunk = file.read(CHUNK)
            text = decoder.decode(chunk, final=not chunk)
            line += text.count("\n")
            yield text
    except UnicodeDecodeError as error:
        wrong = line + error.object[: error.start].count(b"\n")
        hint = "give its encoding, such as encoding='cp1252' (--encoding cp1252)"
        raise DataError(f"line {wrong} of {name} is not {encoding} text; {hint}") from None
    except DAMAGE as error:
        raise DataError(f"{name} is damaged: {error}") from None


def _check_utf8(path: Path, name: str) -> None:
    """Raise `DataError` if the file is not UTF-8 text."""
    with path.open("rb") as file:
        for _ in _decoded(file, "utf-8", name):
            pass


def _is_plain(name: str) -> pl.Expr:
    """Whether every entry is a whole number as one would print it: 7, but not 007, which is a name.

    Missing entries do not count.
    """
    import polars as pl

    text = pl.col(name)
    same = text.cast(pl.Int64, strict=False).cast(pl.String) == text
    return (same.fill_null(False) | text.is_null()).all()


def first_line(error: Exception) -> str:
    """The first line of an error, without the advice of polars."""
    return str(error).partition("\n")[0]
