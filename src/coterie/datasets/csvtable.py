"""A CSV file of anyone's making: columns by name, quotes allowed, no types but those its text shows."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from coterie.errors import DataError

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class CsvTable:
    """A CSV or TSV file with a header."""

    path: Path
    separator: str

    def header(self) -> list[str]:
        """The names in line 1."""
        import polars as pl

        try:
            return self._scan().collect_schema().names()
        except pl.exceptions.PolarsError as error:
            raise DataError(f"line 1 of {self.path.name}: no header ({first_line(error)})") from None

    def read(self, names: list[str]) -> pl.DataFrame:
        """Some columns without the empty rows: whole numbers where every entry is one, otherwise text."""
        import polars as pl

        try:
            lazy = self._scan().filter(~pl.all_horizontal(pl.all().is_null())).select(names)
            plain = lazy.select(_is_plain(name) for name in names).collect(engine="streaming").row(0)
            whole = [name for name, yes in zip(names, plain, strict=True) if yes]
            return lazy.with_columns(pl.col(whole).cast(pl.Int64)).collect(engine="streaming")
        except pl.exceptions.PolarsError as error:
            raise self._ragged(first_line(error)) from None

    def refuse(self, row: int, fault: str) -> DataError:
        """The error for a row counted from 0, by the number of its line."""
        return DataError(f"line {self._line_of(row)} of {self.path.name}: {fault}")

    def _scan(self) -> pl.LazyFrame:
        import polars as pl

        return pl.scan_csv(self.path, separator=self.separator, infer_schema_length=0)

    def _line_of(self, row: int) -> int:
        """Where a row starts: quoted line ends make it more than the row's own number."""
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
                        f"line {start} of {self.path.name}: expected {width} fields, got {len(record)}"
                    )
                start = records.line_num + 1
        return DataError(f"{self.path.name} cannot be read as CSV: {otherwise}")


def _is_plain(name: str) -> pl.Expr:
    """Whether every entry is a whole number as one would print it: 7, but not 007, which is a name."""
    import polars as pl

    text = pl.col(name)
    same = text.cast(pl.Int64, strict=False).cast(pl.String) == text
    return same.fill_null(False).all()


def first_line(error: Exception) -> str:
    """What an error says before it goes into advice."""
    return str(error).partition("\n")[0]
