"""Files of lines: read in blocks, so that none is whole in memory, and parsed into columns."""

from __future__ import annotations

import gzip
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from coterie.datasets.sources import FileStream
from coterie.errors import DataError
from coterie.progress import progress_bar

if TYPE_CHECKING:
    import polars as pl

BLOCK = 1 << 25  # bytes
DAMAGE = (EOFError, zlib.error, zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile)


class LineBlock(NamedTuple):
    """Some whole lines of a file, and the number of the first."""

    file: str
    first_line: int
    data: bytes

    def numbered(self) -> Iterator[tuple[int, bytes]]:
        """Each line that is not blank, with its number."""
        for number, line in enumerate(self.data.split(b"\n"), start=self.first_line):
            if bare := line.rstrip(b"\r"):
                yield number, bare

    def malformed(self, number: int, fault: str) -> DataError:
        """The error for one of the lines."""
        return DataError(f"line {number} of {self.file}: {fault}")


def blocks(stream: FileStream) -> Iterator[LineBlock]:
    """The file, cut after line ends."""
    number, rest = 1, b""
    while chunk := _read(stream):
        cut = chunk.rfind(b"\n") + 1
        if cut:
            block = LineBlock(stream.name, number, rest + chunk[:cut])
            yield block
            number += block.data.count(b"\n")
            rest = chunk[cut:]
        elif len(rest) + len(chunk) > BLOCK:
            raise DataError(f"line {number} of {stream.name}: longer than {BLOCK:,} bytes")
        else:
            rest += chunk
    if rest:
        yield LineBlock(stream.name, number, rest)


def _read(stream: FileStream) -> bytes:
    try:
        return stream.file.read(BLOCK)
    except DAMAGE as error:
        raise DataError(f"{stream.name} is damaged: {error}") from error


def read(stream: FileStream, parse: Callable[[LineBlock], pl.DataFrame]) -> pl.DataFrame:
    """All lines, each block parsed to columns as soon as it is read."""
    import polars as pl

    parts = []
    with progress_bar(stream.size, "B", label=f"reading {stream.name}") as advance:
        for block in blocks(stream):
            parts.append(parse(block))
            advance(len(block.data))
    if not any(part.height for part in parts):
        raise DataError(f"{stream.name} has no rows")
    return pl.concat(parts, rechunk=False)


WHOLE = re.compile(r"-?\d{1,18}")
RATING = re.compile(r"-?(\d+(\.\d*)?|\.\d+)")
MOST_STARS = 5.0


class FieldFormat(NamedTuple):
    """A field of a line: a whole number, or with a `span` a number between its two ends."""

    name: str
    span: tuple[float, float] | None = None

    def fault(self, text: str) -> str | None:
        """Its fault, or None."""
        if self.span is None:
            return None if WHOLE.fullmatch(text) else f"{self.name} {text!r} is not a whole number"
        low, high = self.span
        right = RATING.fullmatch(text) and low <= float(text) <= high
        return None if right else f"{self.name} {text!r} is not a number from {low:g} to {high:g}"


@dataclass(frozen=True, slots=True)
class Delimited:
    """The shape of a file: its separator, its fields, and whether line 1 names them."""

    separator: str
    fields: tuple[FieldFormat, ...]
    has_header: bool

    def parse(self, block: LineBlock) -> pl.DataFrame:
        """The columns of a block; a malformed line is an error that says its number."""
        import polars as pl

        text = _tidy(self._body(block))
        schema = dict(self._schema())
        if not text:
            return pl.DataFrame(schema=schema)
        try:
            table = pl.read_csv(
                text, has_header=False, separator=self.separator[0], quote_char=None, schema=schema
            )
        except pl.exceptions.PolarsError as error:
            raise self._first_fault(block, str(error)) from None
        if not self._is_sound(table):
            raise self._first_fault(block, "a field is missing or out of range")
        return table

    def _schema(self) -> Iterator[tuple[str, type[pl.DataType]]]:
        """The types of the columns; a separator of two characters makes an empty column between fields."""
        import polars as pl

        for place, field in enumerate(self.fields):
            if place and len(self.separator) == 2:
                yield f"between {place}", pl.String
            yield field.name, pl.Int64 if field.span is None else pl.Float64

    def _is_sound(self, table: pl.DataFrame) -> bool:
        """Whether every field is there and nothing stands between them."""
        import polars as pl

        checks = [pl.col(field.name).is_not_null().all() for field in self.fields]
        checks += [pl.col(f.name).is_between(*f.span).all() for f in self.fields if f.span is not None]
        checks += [pl.col(name).is_null().all() for name in table.columns if name.startswith("between")]
        return bool(table.select(pl.all_horizontal(checks)).item())

    def _body(self, block: LineBlock) -> bytes:
        """The block without the header, which is checked."""
        if not self.has_header or block.first_line > 1:
            return block.data
        header, _, body = block.data.partition(b"\n")
        expected = self.separator.join(field.name for field in self.fields)
        found = header.decode("utf-8-sig", errors="replace").rstrip("\r")
        if found != expected:
            raise block.malformed(1, f"expected the header {expected!r}, got {found[:100]!r}")
        return body

    def _first_fault(self, block: LineBlock, otherwise: str) -> DataError:
        """The error for the first malformed line, found by reading the block again, slowly."""
        for number, line in block.numbered():
            is_header = self.has_header and number == 1
            fault = None if is_header else self._fault(line.decode("utf-8", errors="replace"))
            if fault is not None:
                return block.malformed(number, fault)
        return block.malformed(block.first_line, f"near here, {otherwise.splitlines()[0]}")

    def _fault(self, line: str) -> str | None:
        texts = line.split(self.separator)
        if len(texts) != len(self.fields):
            return f"expected {len(self.fields)} fields separated by {self.separator!r}, got {len(texts)}"
        faults = (field.fault(text) for field, text in zip(self.fields, texts, strict=True))
        return next((fault for fault in faults if fault is not None), None)


def _tidy(text: bytes) -> bytes:
    """The text with plain line ends and no blank lines, which the reader would take for empty rows."""
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n")
    if b"\n\n" in text or text.startswith(b"\n"):
        text = b"\n".join(line for line in text.split(b"\n") if line)
    return text
