"""Every public name is explained: its parameters, an example that runs, a place in the API reference."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Protocol

import pytest

import coterie
import policy_pages
from coterie.experiments.runner import Callback

PAGES = Path(__file__).resolve().parents[1] / "docs" / "reference" / "api"
PACKAGES = ("datasets", "environments", "policies", "simulation", "theory")
EXPERIMENTS = {
    "comparison": ("Comparison", "compare_results", "read_results"),
    "figures": ("find_figure",),
    "reproduction": ("ReproduceOptions", "Reproduction", "reproduce"),
    "run_store": ("FinishedRun", "Run", "Store"),
    "runner": ("Callback", "DataFiles", "LocalEngine", "NoCallback", "RayEngine"),
    "specs": ("EnvironmentSpec", "PolicySpec"),
    "tuning": ("TuningProtocol",),
}
"""What scripts use of `coterie.experiments`, by module."""

PROTOCOLS = (coterie.Confidence, Callback, coterie.Client)
"""Classes that explain the parameters of their methods for all classes that have the same ones."""

HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
DIRECTIVE = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)


class Name(NamedTuple):
    """A public object, and where a user finds it."""

    path: str
    thing: Any

    def __str__(self) -> str:
        return self.path


def public_names() -> Iterator[Name]:
    for name in coterie.__all__:
        yield Name(f"coterie.{name}", getattr(coterie, name))
    for package in PACKAGES:
        module = import_module(f"coterie.{package}")
        for name in module.__all__:
            yield Name(f"coterie.{package}.{name}", getattr(module, name))
    for file, names in EXPERIMENTS.items():
        module = import_module(f"coterie.experiments.{file}")
        for name in names:
            yield Name(f"coterie.experiments.{file}.{name}", getattr(module, name))


NAMES = list({id(name.thing): name for name in public_names() if callable(name.thing)}.values())
"""All public functions and classes, each once."""


def members(name: Name) -> Iterator[Name]:
    """The public methods and properties of a class, inherited from this library or its own."""
    if not inspect.isclass(name.thing):
        return
    for kind in name.thing.__mro__:
        if kind.__module__.startswith("coterie"):
            for key, value in vars(kind).items():
                own = getattr(value, "__module__", kind.__module__) == kind.__module__  # no alias of a type
                attribute = isinstance(value, property | cached_property | classmethod | staticmethod)
                if not key.startswith("_") and (attribute or (callable(value) and own)):
                    yield Name(f"{name.path}.{key}", getattr(value, "__func__", value))


FUNCTIONS = [name for name in NAMES if not inspect.isclass(name.thing)]
MEMBERS = list({id(member.thing): member for name in NAMES for member in members(name)}.values())
METHODS = [member for member in MEMBERS if callable(member.thing)]


def sections(thing: Any) -> dict[str, str]:
    """The sections of a numpydoc docstring by heading; what comes first is under ''."""
    parts = HEADING.split(inspect.getdoc(thing) or "")
    return dict(zip(["", *parts[1::2]], parts[0::2], strict=True))


def documented(thing: Any) -> list[str]:
    """The parameters that a docstring explains, in order."""
    lines = sections(thing).get("Parameters", "").splitlines()
    titles = [line.partition(" : ")[0] for line in lines if line and not line[0].isspace()]
    return [one.strip().lstrip("*") for title in titles for one in title.split(",")]


def taken(thing: Any) -> list[str]:
    """The parameters that a function, or a class when called, takes."""
    if inspect.isclass(thing) and (issubclass(thing, Exception) or Protocol in thing.__bases__):
        return []
    return [one for one in inspect.signature(thing).parameters if one not in ("self", "cls")]


def summary(thing: Any) -> str:
    return sections(thing)[""].partition("\n\n")[0].strip()


def complaints(thing: Any) -> list[str]:
    """What is wrong with the Parameters of a docstring."""
    given, explained = taken(thing), documented(thing)
    missing = [f"{one} is not explained" for one in given if one not in explained]
    invented = [f"there is no {one}" for one in explained if one not in given]
    twice = [f"{one} is explained twice" for one in set(explained) if explained.count(one) > 1]
    return missing + invented + twice


def explaining(method: Name) -> Any:
    """The method of a protocol that a class implements, or the method itself."""
    path, _, role = method.path.rpartition(".")
    owned = {one.path.rpartition(".")[2] for one in members(Name(path, find_object(path)))}
    for protocol in PROTOCOLS:
        promised = {key for key in vars(protocol) if not key.startswith("_")}
        if role in promised <= owned:
            return vars(protocol)[role]
    return method.thing


@pytest.mark.parametrize("name", NAMES, ids=str)
def test_every_parameter_is_explained_and_no_other(name: Name) -> None:
    assert complaints(name.thing) == []


@pytest.mark.parametrize("name", MEMBERS, ids=str)
def test_every_method_and_property_has_a_summary(name: Name) -> None:
    assert summary(name.thing).endswith(".")


@pytest.mark.parametrize("name", METHODS, ids=str)
def test_every_method_explains_its_parameters(name: Name) -> None:
    meant = name.thing if documented(name.thing) else explaining(name)
    assert complaints(meant) == []
    assert taken(meant) == taken(name.thing)


@pytest.mark.parametrize("name", NAMES, ids=str)
def test_the_summary_is_one_sentence_on_one_line(name: Name) -> None:
    first = summary(name.thing)
    assert first.endswith(".")
    assert "\n" not in first


@pytest.mark.parametrize("name", FUNCTIONS, ids=str)
def test_what_is_returned_is_explained(name: Name) -> None:
    assert {"Returns", "Yields"} & set(sections(name.thing))


@pytest.mark.parametrize("name", NAMES, ids=str)
def test_there_is_an_example_and_it_runs(name: Name, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert ">>> " in sections(name.thing).get("Examples", "")
    plain = inspect.unwrap(name.thing)
    home = vars(import_module(plain.__module__))
    example = doctest.DocTestParser().get_doctest(inspect.getdoc(plain) or "", dict(home), str(name), None, 0)
    failed, tried = doctest.DocTestRunner(verbose=False).run(example)
    assert tried > 0
    assert failed == 0


def shown_objects() -> set[int]:
    """The objects that the pages of the API reference show."""
    texts = {page.name: page.read_text(encoding="utf-8") for page in PAGES.glob("*.md")}
    texts["policies.md"] = policy_pages.with_directives(texts["policies.md"])
    text = "\n".join(texts.values())
    return {id(find_object(path)) for path in DIRECTIVE.findall(text)}


def find_object(path: str) -> Any:
    """An object by its full path."""
    thing: Any = coterie
    for at, part in enumerate(path.split(".")[1:], 2):
        if isinstance(thing, ModuleType) and not hasattr(thing, part):
            import_module(".".join(path.split(".")[:at]))
        thing = getattr(thing, part)
    return thing


@pytest.mark.parametrize(
    "name", [name for name in public_names() if not isinstance(name.thing, ModuleType)], ids=str
)
def test_every_public_name_is_in_the_api_reference(name: Name) -> None:
    assert id(name.thing) in shown_objects()


def test_what_alpha_is_and_what_to_set_it_to_is_told_by_help() -> None:
    told = inspect.getdoc(coterie.CLUB) or ""
    assert "Set it to 15σ" in told
    assert "standard deviation of the noise" in told
    assert "f(T) = α √((1 + ln(1 + T))/(1 + T))" in told


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Add.\n\nParameters\n----------\na : int\n    One.\n", ["b is not explained"]),
        ("Add.\n\nParameters\n----------\na, b, c : int\n    All.\n", ["there is no c"]),
        ("Add.\n\nParameters\n----------\na, b : int\n    Both.\n", []),
    ],
)
def test_a_wrong_docstring_is_noticed(text: str, wrong: list[str]) -> None:
    def add(a: int, b: int) -> int:
        return a + b

    add.__doc__ = text
    assert complaints(add) == wrong
