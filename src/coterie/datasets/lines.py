"""Reading a file of lines in blocks, so that it is never whole in memory and each line keeps its number."""

from __future__ import annotations

import gzip
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
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
