"""Everything that Coterie raises on purpose.

CoterieError
├── ArgumentError   (also a ValueError)         what came cannot be used
├── UnknownName     (also a LookupError)        no policy, dataset or figure of that name
├── SnapshotError   (also a ValueError)         a file is not a snapshot this version can read
├── PolicyError     (also a RuntimeError)       a policy of somebody else's raised an exception
├── Conflict        (also a ValueError)         an id was used before, for something else
├── StoreError      (also an OSError)           a store cannot be opened or written now
├── DataError       (also a ValueError)         a data file is malformed
└── MissingData     (also a FileNotFoundError)  a data file is not there
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class CoterieError(Exception):
    """The root of all errors raised by Coterie."""


class ArgumentError(CoterieError, ValueError):
    """An argument cannot be used; the sentence says what came and what would do."""


class UnknownName(CoterieError, LookupError):
    """No such name; the sentence suggests the nearest one."""


class SnapshotError(CoterieError, ValueError):
    """A file is not a snapshot that this version can read."""


class PolicyError(CoterieError, RuntimeError):
    """A policy of somebody else's raised an exception; the sentence names it and says where."""


class Conflict(CoterieError, ValueError):
    """An id of a decision or a reward was used before, for something else; nothing has changed."""


class StoreError(CoterieError, OSError):
    """A store cannot be opened or written now; what was not acknowledged was not counted."""


class DataError(CoterieError, ValueError):
    """A data file is malformed; the sentence says where."""


class MissingData(CoterieError, FileNotFoundError):
    """A data file is not there; the sentence says where to get it."""


def unknown(kind: str, name: str, known: Iterable[str], lister: str) -> UnknownName:
    """The error for a wrong name, with the nearest right one."""
    spelled = {k.lower(): k for k in known}
    nearest = get_close_matches(name.lower(), spelled, n=1, cutoff=0.4)
    hint = f"; did you mean {spelled[nearest[0]]!r}?" if nearest else "."
    return UnknownName(f"no {kind} {name!r}{hint} {lister}")
