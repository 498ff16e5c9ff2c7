"""An extension for the API reference: makers and classes are shown as readers call them.

The reference is read from the source without importing it. What decorators and base classes do to a
signature has to be told: `coterie.policies.entries.register` turns a function that returns a `Plan` into one
that returns a `LinearBandit`, and the fields of a NamedTuple are the parameters of its class.
"""

from __future__ import annotations

from typing import Any

from griffe import Attribute, Class, ExprName, Extension, Function, Parameter, ParameterKind, Parameters

REGISTER = "coterie.policies.entries.register"


class Makers(Extension):
    """Correct the signatures of makers and of NamedTuples; a class is explained by its own docstring."""

    def on_function(self, *, func: Function, **kwargs: Any) -> None:
        """Correct one function as soon as it was read."""
        if any(decorator.callable_path == REGISTER for decorator in func.decorators):
            func.returns = ExprName("LinearBandit", parent=func.package)
            func.decorators = []
        if func.name == "__init__":
            func.docstring = None

    def on_class(self, *, cls: Class, **kwargs: Any) -> None:
        """Give a NamedTuple the constructor that its fields make."""
        if "NamedTuple" in map(str, cls.bases):
            made = Function("__init__", parameters=Parameters(*map(_parameter, _fields(cls))))
            cls.set_member("__init__", made)


def _fields(cls: Class) -> list[Attribute]:
    """The annotated attributes of a class, in order; properties are not among them."""
    attributes = [one for one in cls.members.values() if isinstance(one, Attribute)]
    return [one for one in attributes if one.annotation is not None and "property" not in one.labels]


def _parameter(field: Attribute) -> Parameter:
    """A field as the parameter of a constructor."""
    kind = ParameterKind.positional_or_keyword
    return Parameter(field.name, annotation=field.annotation, kind=kind, default=field.value)
