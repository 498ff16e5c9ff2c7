"""An extension for the API reference: makers such as `CLUB` are shown as readers call them.

`coterie.policies.entries.register` turns a function that returns a `Plan` into one that returns a `LinearBandit`.
The reference is read from the source without importing it, so the decorator's effect has to be told.
"""

from __future__ import annotations

from typing import Any

from griffe import ExprName, Extension, Function

REGISTER = "coterie.policies.entries.register"


class Makers(Extension):
    """Replace the return type of registered makers, and hide the decorator."""

    def on_function(self, *, func: Function, **kwargs: Any) -> None:
        """Correct one function as soon as it was read."""
        if any(decorator.callable_path == REGISTER for decorator in func.decorators):
            func.returns = ExprName("LinearBandit", parent=func.package)
            func.decorators = []
