"""The errors that Coterie raises on purpose.

CoterieError
├── ArgumentError   (also a ValueError)         an argument cannot be used
├── UnknownName     (also a LookupError)        no policy, dataset or figure of that name
├── SnapshotError   (also a ValueError)         a file is not a snapshot this version can read
│   └── MissingSnapshot  (also a FileNotFoundError)  there is no such file
├── PolicyError     (also a RuntimeError)       a policy that is not ours raised an exception
├── Conflict        (also a ValueError)         an id was used before, for something else
├── StoreError      (also an OSError)           a store cannot be opened or written now
├── DataError       (also a ValueError)         a data file is malformed
├── MissingData     (also a FileNotFoundError)  a data file is not there
└── MissingExtra    (also an ImportError)       an optional package is not installed
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class CoterieError(Exception):
    """Base class of all errors that Coterie raises on purpose.

    Examples
    --------
    >>> issubclass(ArgumentError, CoterieError)
    True
    """


class ArgumentError(CoterieError, ValueError):
    """Raised when an argument cannot be used; also a ValueError.

    The message says what was wrong, what came and what would do. Nothing has changed then.

    Examples
    --------
    >>> import coterie
    >>> coterie.LinUCBInd(n_users=3, dim=2, beta=-1.0)
    Traceback (most recent call last):
    coterie.errors.ArgumentError: beta must be at least 0, got -1.0
    """


class UnknownName(CoterieError, LookupError):
    """Raised when there is no policy, dataset or figure of a name; also a LookupError.

    The message suggests the nearest name.

    Examples
    --------
    >>> import coterie
    >>> coterie.policies.find("CLBU")
    Traceback (most recent call last):
    coterie.errors.UnknownName: no policy 'CLBU'; did you mean 'CLUB'? `coterie policies` lists all
    """


class SnapshotError(CoterieError, ValueError):
    """Raised when a file is not a snapshot that this version can read; also a ValueError.

    Examples
    --------
    >>> issubclass(SnapshotError, ValueError)
    True
    """


class MissingSnapshot(SnapshotError, FileNotFoundError):
    """Raised when there is no snapshot of that name; also a FileNotFoundError.

    Examples
    --------
    >>> issubclass(MissingSnapshot, SnapshotError), issubclass(MissingSnapshot, FileNotFoundError)
    (True, True)
    """


class PolicyError(CoterieError, RuntimeError):
    """Raised when a policy that is not ours raised an exception; also a RuntimeError.

    The message names the policy, the seed and the round; the cause is the policy's own exception.

    Examples
    --------
    >>> issubclass(PolicyError, RuntimeError)
    True
    """


class Conflict(CoterieError, ValueError):
    """Raised when an id was used before, for something else; also a ValueError. Nothing has changed.

    Examples
    --------
    >>> import coterie
    >>> shop = coterie.Recommender(items={"tea": [1.0, 0.0]})
    >>> _ = shop.decide("alice", decision_id="visit-1")
    >>> shop.decide("bob", decision_id="visit-1")
    Traceback (most recent call last):
    coterie.errors.Conflict: decision_id 'visit-1' was used for another request
    """


class StoreError(CoterieError, OSError):
    """Raised when a store cannot be opened or written now; also an OSError. Nothing was counted.

    Examples
    --------
    >>> issubclass(StoreError, OSError)
    True
    """


class DataError(CoterieError, ValueError):
    """Raised when a data file is malformed; also a ValueError. The message names the line.

    Examples
    --------
    >>> issubclass(DataError, ValueError)
    True
    """


class MissingData(CoterieError, FileNotFoundError):
    """Raised when a data file is not there; also a FileNotFoundError. The message says where to get it.

    Examples
    --------
    >>> issubclass(MissingData, FileNotFoundError)
    True
    """


class MissingExtra(CoterieError, ImportError):
    """Raised when an optional package is not installed; also an ImportError.

    The message says how to install it.

    Examples
    --------
    >>> issubclass(MissingExtra, ImportError)
    True
    """


def unknown(kind: str, name: str, known: Iterable[str], lister: str) -> UnknownName:
    """Make the error for an unknown name, with the nearest known one; `lister` is a sentence of its own."""
    spelled = {k.lower(): k for k in known}
    nearest = get_close_matches(name.lower(), spelled, n=1, cutoff=0.6)
    hint = f"; did you mean {spelled[nearest[0]]!r}?" if nearest else "."
    return UnknownName(f"no {kind} {name!r}{hint} {lister}")
