"""Policies by name: registered ones, and anybody's."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie.errors import ArgumentError, CoterieError, UnknownName
from coterie.experiments.runner import DataFiles
from coterie.experiments.specs import EnvironmentSpec, PolicySpec
from coterie.policies.confidence import Tuned
from coterie.policies.factories import find_factory, registered_parameters, source_of

Module = Callable[[str], str]

POLICY = """
class Base:
    def __init__(self, **kwargs):
        self.given = kwargs

    def recommend(self, user, arms):
        return 0

    def update(self, user, x, reward):
        pass


class Plain(Base):
    def __init__(self, n_users, dim, *, epsilon=0.1, seed=0):
        super().__init__(n_users=n_users, dim=dim, epsilon=epsilon, seed=seed)


class Told(Base):
    def __init__(self, labels, graph, confidence=None):
        super().__init__(labels=labels, graph=graph, confidence=confidence)


class Needs(Base):
    def __init__(self, size):
        super().__init__(size=size)


class Lazy:
    def __init__(self, n_users):
        pass

    def recommend(self, user, arms):
        return 0


class Outer:
    class Inner(Base):
        pass


def make(dim, **others):
    return Base(dim=dim, **others)


number = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Module]:
    """Write a module that can be imported, under a name of its own."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def written(text: str) -> str:
        name = f"own_{tmp_path.name}_{len(list(tmp_path.iterdir()))}".replace("-", "_")
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        return name

    yield written
    for name in set(sys.modules) - before:
        if name.startswith("own_"):
            del sys.modules[name]


def made(name: str, **params: Any) -> Any:
    environment = EnvironmentSpec(n_users=8, n_clusters=2, n_arms=6, dim=4, pool_users=12, pool_items=40)
    world = environment.make(DataFiles().dataset(environment), 3)
    return PolicySpec(name, params).make(world, 7)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("LinUCBInd", ("beta", "growing", "ridge", "items")),
        ("CLUB", ("alpha", "beta", "growing", "ridge", "items")),
        ("PhaseUniCLUB", ("alpha", "beta", "explore", "phase", "growth", "growing", "ridge")),
        ("SCLUB", ("alpha", "beta", "growing", "ridge", "items", "arrivals")),
        ("GraphUCB", ("alpha", "ridge", "growing", "delta")),
        ("LOCB", ("alpha", "beta", "n_seeds", "gamma", "growing", "ridge")),
        ("AutoCLUB", ("ridge",)),
    ],
)
def test_a_registered_policy_takes_what_it_uses(name: str, parameters: tuple[str, ...]) -> None:
    assert find_factory(name).parameters == parameters
    assert set(parameters) <= set(registered_parameters())


def test_an_own_class_is_given_what_it_names(module: Module) -> None:
    name = f"{module(POLICY)}:Plain"
    assert made(name).given == {"n_users": 8, "dim": 4, "epsilon": 0.1, "seed": 7}
    assert made(name, epsilon=0.5).given["epsilon"] == 0.5
    assert find_factory(name).parameters == ("epsilon",)


def test_an_own_function_with_keywords_is_given_everything(module: Module) -> None:
    policy = made(f"{module(POLICY)}:make", anything="goes")
    assert policy.given == {"n_users": 8, "dim": 4, "seed": 7, "anything": "goes"}


def test_an_own_class_may_ask_for_labels_a_graph_and_a_confidence(module: Module) -> None:
    name = f"{module(POLICY)}:Told"
    given = made(name, alpha=1.0, beta=0.5).given
    assert np.bincount(given["labels"]).tolist() == [4, 4]
    assert given["graph"].sum() == 2 * 4 * 3
    assert given["confidence"] == Tuned(alpha=1.0, beta=0.5)
    assert made(name).given["confidence"] is None


def test_a_class_inside_a_class_can_be_named(module: Module) -> None:
    assert type(made(f"{module(POLICY)}:Outer.Inner")).__name__ == "Inner"


@pytest.mark.parametrize(
    ("attribute", "error", "sentence"),
    [
        ("Plane", UnknownName, "no attribute of .*: 'Plane'; did you mean 'Plain'"),
        ("number", ArgumentError, "must be a class or a function that makes a policy, got 3"),
        ("Lazy", ArgumentError, r"has no method 'update': a policy needs recommend\(user, arms\) and update"),
        ("Needs", ArgumentError, "cannot be made: missing a required argument: 'size'; .* takes size"),
        ("", ArgumentError, "a policy of your own is package.module:Attribute"),
        ("a b", ArgumentError, "a policy of your own is package.module:Attribute"),
    ],
)
def test_what_is_no_policy_is_refused_in_one_sentence(
    module: Module, attribute: str, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence) as told:
        made(f"{module(POLICY)}:{attribute}")
    assert isinstance(told.value, CoterieError)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("def broken(:\n", "cannot be imported: SyntaxError"),
        (
            "import nothing_of_this_name\n",
            "cannot be imported: ModuleNotFoundError: No module named 'nothing",
        ),
        ("1 / 0\n", "cannot be imported: ZeroDivisionError"),
    ],
)
def test_a_module_that_cannot_be_imported_says_why(module: Module, text: str, sentence: str) -> None:
    with pytest.raises(ArgumentError, match=sentence):
        find_factory(f"{module(text)}:Policy")


@pytest.mark.parametrize("name", ["nowhere:Policy", "nowhere.at.all:Policy", "json.nowhere:Policy"])
def test_a_module_that_is_not_there_says_where_it_is_looked_for(name: str) -> None:
    for function in (find_factory, source_of):
        with pytest.raises(ArgumentError, match=r"^no module .*: it is looked for on sys\.path"):
            function(name)


def test_a_parameter_that_an_own_policy_does_not_take_is_refused(module: Module) -> None:
    with pytest.raises(UnknownName, match="'epsilom'; did you mean 'epsilon'"):
        made(f"{module(POLICY)}:Plain", epsilom=1)


def test_the_source_of_a_policy_is_the_file_of_its_module(module: Module, tmp_path: Path) -> None:
    name = module(POLICY)
    assert source_of(f"{name}:Plain") == tmp_path / f"{name}.py"
    with pytest.raises(ArgumentError, match="has no file"):
        source_of("sys:Plain")
