from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

def overload(function: Callable[..., Any], *, strict: bool = ...) -> Callable[[F], F]: ...
