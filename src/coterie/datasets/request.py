"""The arguments of `load`, checked once."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Protocol, TypeAlias, runtime_checkable

from coterie.datasets.factorise import SCALES
from coterie.errors import ArgumentError
from coterie.seeding import check_seed
from coterie.validation import whole


@runtime_checkable
class Frame(Protocol):
    """A table in memory: pandas, polars and pyarrow all hand over their columns this way."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as an Arrow stream (the PyCapsule protocol)."""


Source: TypeAlias = str | os.PathLike[str] | Frame | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The arguments of `load`, after the name."""

    path: Source
    dim: int
    n_users: int
    n_items: int
    scale: str
    seed: int
    threshold: float | None
    columns: Sequence[str] | None
    missing: str
    separator: str | None
    encoding: str | None

    def __post_init__(self) -> None:
        """Check all arguments before any file is opened."""
        if not isinstance(self.path, str | os.PathLike | Frame | None):
            kind = type(self.path).__name__
            raise ArgumentError(f"path must be a file, a folder or a data frame, got {kind}")
        for name in ("dim", "n_users", "n_items"):
            object.__setattr__(self, name, whole(name, getattr(self, name), 1))
        if self.scale not in SCALES:
            raise ArgumentError(f"scale must be one of {', '.join(SCALES)}, got {self.scale!r}")
        object.__setattr__(self, "seed", check_seed(self.seed))
        self._check_threshold()
        self._check_columns()
        self._check_text()

    def _check_threshold(self) -> None:
        if self.threshold is None:
            return
        plain = isinstance(self.threshold, Real) and not isinstance(self.threshold, bool)
        if not plain or not math.isfinite(self.threshold):
            raise ArgumentError(f"threshold must be a finite number, got {self.threshold!r}")
        object.__setattr__(self, "threshold", float(self.threshold))

    def _check_text(self) -> None:
        """Check how text is read: missing values, separator and encoding."""
        if self.missing not in ("refuse", "drop"):
            raise ArgumentError(f"missing must be 'refuse' or 'drop', got {self.missing!r}")
        if self.separator is not None:
            mark = "\t" if self.separator in ("\\t", "tab") else self.separator
            if not isinstance(mark, str) or len(mark.encode()) != 1 or mark in '\r\n"':
                raise ArgumentError(f"separator must be one character such as ';', got {self.separator!r}")
            object.__setattr__(self, "separator", mark)
        try:
            "".encode(self.encoding or "utf-8")
        except (LookupError, TypeError, ValueError):
            known = "one that Python knows, such as utf-8, cp1252 or utf-16"
            raise ArgumentError(f"encoding must be {known}, got {self.encoding!r}") from None

    def refuse_table_options(self, name: str) -> None:
        """Refuse options that are for 'interactions' alone."""
        given = {
            "threshold": self.threshold is not None,
            "columns": self.columns is not None,
            "missing": self.missing != "refuse",
            "separator": self.separator is not None,
            "encoding": self.encoding is not None,
        }
        if any(given.values()):
            named = " and ".join(option for option, is_given in given.items() if is_given)
            raise ArgumentError(f"{named}: for 'interactions', your own table, not for {name!r}")

    def _check_columns(self) -> None:
        if self.columns is None:
            return
        names = (self.columns,) if isinstance(self.columns, str) else tuple(self.columns)
        if len(names) not in (2, 3) or len(set(names)) != len(names):
            raise ArgumentError(
                f"columns must name a user, an item and perhaps a value column, got {names!r}"
            )
        object.__setattr__(self, "columns", tuple(str(name) for name in names))
