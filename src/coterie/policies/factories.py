"""What makes a policy, found by name: a registered one, or your own as `package.module:Attribute`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from inspect import Parameter, Signature, signature
from operator import attrgetter
from pathlib import Path
from typing import Any

from coterie.errors import ArgumentError, unknown
from coterie.policies.confidence import Tuned
from coterie.policies.registry import REGISTRY, find
from coterie.validation import shown

TUNED = tuple(field.name for field in fields(Tuned))
"""The parameters that become `confidence=Tuned(...)` for a policy that takes a confidence, and not them."""

GIVEN = ("n_users", "dim", "seed")
"""Arguments that every policy is offered."""

MADE = ("confidence", "labels", "graph", "catalogue")
"""Arguments that are made only for a policy whose signature names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFactory:
    """A class or function that makes a policy, and the parameters that it takes.

    `arguments` are the names in its signature, `parameters` those that a `PolicySpec` may set. A policy that
    takes `confidence` also takes the fields of `Tuned`, even if its signature does not name them. With
    `takes_any` (`**kwargs`) it takes others too.
    """

    name: str
    make: Callable[..., Any]
    arguments: tuple[str, ...]
    parameters: tuple[str, ...]
    takes_any: bool = False

    def takes(self, parameter: str) -> bool:
        """May a spec set this parameter?"""
        return parameter in self.parameters or (self.takes_any and parameter not in (*GIVEN, *MADE))

    def passes(self, argument: str) -> bool:
        """Is this argument passed on, by its name or as a part of `confidence`?"""
        return argument in self.arguments or self.takes_any or self._composes(argument)

    def _composes(self, argument: str) -> bool:
        """Is this argument a part of `confidence`?"""
        return argument in TUNED and argument not in self.arguments and "confidence" in self.arguments

    def _confidence(self, constants: Mapping[str, Any]) -> Tuned:
        """The confidence of a policy that takes one, and not its constants."""
        needed = [one.name for one in fields(Tuned) if one.default is MISSING]
        if any(one not in constants for one in needed):
            raise ArgumentError(f"{self.name} needs {' and '.join(needed)}, got {dict(constants)}")
        return Tuned(**constants)

    def check(self, params: Iterable[str]) -> None:
        """Refuse a parameter that the policy does not take."""
        for name in params:
            if not self.takes(name):
                raise unknown(f"parameter of {self.name}:", name, self.parameters, self.summary())

    def summary(self) -> str:
        """What it takes, as a sentence."""
        return f"{self.name} takes {', '.join(self.parameters) or 'no parameters'}"

    def __call__(self, arguments: Mapping[str, Any]) -> Any:
        """The policy, known to have what the simulation calls."""
        given = {name: value for name, value in arguments.items() if not self._composes(name)}
        if len(given) < len(arguments):
            composed = {name: value for name, value in arguments.items() if name not in given}
            given["confidence"] = self._confidence(composed)
        try:
            signature(self.make).bind(**given)
        except TypeError as error:
            raise ArgumentError(f"{self.name} cannot be made: {error}; {self.summary()}") from None
        made = self.make(**given)
        for method in ("recommend", "update"):
            if not callable(getattr(made, method, None)):
                raise ArgumentError(
                    f"{self.name} has no method {method!r}: a policy needs recommend(user, arms) "
                    f"and update(user, x, reward), got {shown(made)}"
                )
        return made


def find_factory(name: str) -> PolicyFactory:
    """The factory of a policy; a name that leads nowhere is refused in one sentence.

    >>> find_factory("UniCLUB").parameters
    ('alpha', 'beta', 'explore', 'growing', 'ridge', 'items')
    """
    file, dot, rest = name.partition(".py")
    if dot and rest[:1] in ("", ":"):
        shown_class = rest[1:] or "CLASS"
        raise ArgumentError(f"a policy of your own is MODULE:CLASS: write {file}:{shown_class}, got {name!r}")
    return _own(name) if is_own(name) else _registered(name)


def is_own(name: str) -> bool:
    """Is this `package.module:Attribute`, not the name of a registered policy?"""
    return ":" in name


@cache
def _registered(name: str) -> PolicyFactory:
    """A policy of this library; of the fields of `Tuned` it takes those that are tuned."""
    entry = find(name)
    tuned = [axis for axis, _ in entry.grid.axes()]
    others = [one for one in entry.parameters if one not in (*GIVEN, *MADE, *tuned)]
    return PolicyFactory(name=name, make=entry.make, arguments=entry.parameters, parameters=(*tuned, *others))


def registered_parameters() -> tuple[str, ...]:
    """The parameters of all registered policies, each once."""
    return tuple(dict.fromkeys(one for name in REGISTRY for one in _registered(name).parameters))


def _own(name: str) -> PolicyFactory:
    """Anybody's policy, imported from its module."""
    make = _imported(name)
    try:
        parameters = signature(make).parameters.values()
    except (TypeError, ValueError):
        parameters = Signature([Parameter("kwargs", Parameter.VAR_KEYWORD)]).parameters.values()
    plain = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    arguments = tuple(one.name for one in parameters if one.kind in plain)
    tuned = TUNED if "confidence" in arguments else ()
    settable = (*tuned, *(one for one in arguments if one not in (*GIVEN, *MADE, *tuned)))
    takes_any = any(one.kind is Parameter.VAR_KEYWORD for one in parameters)
    return PolicyFactory(name=name, make=make, arguments=arguments, parameters=settable, takes_any=takes_any)


def _imported(name: str) -> Callable[..., Any]:
    """The attribute of a module, known to be callable."""
    module_name, _, attribute = name.partition(":")
    if not (attribute and all(part.isidentifier() for part in f"{module_name}.{attribute}".split("."))):
        raise ArgumentError(f"a policy of your own is package.module:Attribute, got {name!r}")
    try:
        module = import_module(module_name)
    except Exception as error:
        raise _import_error(module_name, error) from error
    try:
        found: object = attrgetter(attribute)(module)
    except AttributeError:
        public = [one for one in vars(module) if not one.startswith("_")]
        raise unknown(f"attribute of {module_name}:", attribute, public, f"It is {module.__file__}") from None
    if not callable(found):
        raise ArgumentError(f"{name} must be a class or a function that makes a policy, got {shown(found)}")
    return found


def _import_error(module: str, error: Exception) -> ArgumentError:
    """Why a module cannot be imported, in one sentence."""
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing is not None and f"{module}.".startswith(f"{missing}."):
        return ArgumentError(
            f"no module {module!r}: it is looked for on sys.path, and by `coterie` in the current directory"
        )
    said = " ".join(str(error).split())
    return ArgumentError(f"module {module!r} cannot be imported: {type(error).__name__}: {said}")


def source_of(name: str) -> Path:
    """The file that an own policy's module is in."""
    module = name.partition(":")[0]
    try:
        spec = find_spec(module)
    except Exception as error:
        raise _import_error(module, error) from error
    if spec is None:
        raise _import_error(module, ModuleNotFoundError(name=module))
    if spec.origin is None or not Path(spec.origin).is_file():
        raise ArgumentError(f"module {module!r} has no file, so that its code cannot be fingerprinted")
    return Path(spec.origin)
