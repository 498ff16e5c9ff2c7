from __future__ import annotations

import inspect

import pytest

from coterie import errors
from coterie.errors import (
    ArgumentError,
    Conflict,
    CoterieError,
    DataError,
    MissingData,
    MissingExtra,
    MissingSnapshot,
    PolicyError,
    SnapshotError,
    StoreError,
    UnknownName,
    unknown,
)
from coterie.policies import REGISTRY, find

BUILT_IN = {
    ArgumentError: ValueError,
    UnknownName: LookupError,
    SnapshotError: ValueError,
    DataError: ValueError,
    MissingData: FileNotFoundError,
    MissingExtra: ImportError,
    MissingSnapshot: FileNotFoundError,
    PolicyError: RuntimeError,
    Conflict: ValueError,
    StoreError: OSError,
}


@pytest.mark.parametrize("kind", BUILT_IN)
def test_an_error_of_ours_is_also_the_one_a_stranger_would_catch(kind: type[CoterieError]) -> None:
    for caught in (CoterieError, BUILT_IN[kind]):
        with pytest.raises(caught, match="what came"):
            raise kind("what came")


def test_every_error_is_in_the_drawn_tree() -> None:
    kinds = [
        kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, CoterieError)
    ]
    assert set(kinds) == {CoterieError, *BUILT_IN}
    for kind, built_in in BUILT_IN.items():
        line = next(line for line in (errors.__doc__ or "").splitlines() if f" {kind.__name__} " in line)
        assert f"(also a{'n' * (built_in in (ImportError, OSError))} {built_in.__name__})" in line


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("club", "CLUB"),
        ("UNICLUB", "UniCLUB"),
        ("Uni-CLUB", "UniCLUB"),
        ("gob.lin", "GOBLin"),
        ("GraphUBC", "GraphUCB"),
    ],
)
def test_a_wrong_name_suggests_the_nearest_right_one(wrong: str, right: str) -> None:
    with pytest.raises(UnknownName, match=f"did you mean {right!r}"):
        find(wrong)


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_a_right_name_is_found(name: str) -> None:
    assert find(name).name == name


def test_a_name_like_no_other_suggests_nothing() -> None:
    error = unknown("policy", "zzzz", ["CLUB", "SCLUB"], "`coterie policies` lists all")
    assert str(error) == "no policy 'zzzz'. `coterie policies` lists all"


def test_names_may_come_from_anything_that_can_be_gone_through_once() -> None:
    error = unknown("policy", "clubb", (name for name in ["CLUB", "LinUCB"]), "see the list")
    assert str(error) == "no policy 'clubb'; did you mean 'CLUB'? see the list"
