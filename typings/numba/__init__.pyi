from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

def typeof(value: object) -> object: ...
def njit(*, cache: bool = ..., nogil: bool = ..., error_model: str = ...) -> Callable[[F], F]: ...
