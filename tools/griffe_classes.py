"""An extension for the API reference: classes are shown as readers call them.

The reference is read from the source without importing it. A class is explained by its own docstring, not by
that of its `__init__`, and the fields of a NamedTuple are the parameters of its class.
"""

from __future__ import annotations

from typing import Any

from griffe import Attribute, Class, Extension, Function, Parameter, ParameterKind, Parameters


class Constructors(Extension):
    """Correct the constructors of classes."""

    def on_function(self, *, func: Function, **kwargs: Any) -> None:
        """Leave the docstring of a constructor out."""
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
