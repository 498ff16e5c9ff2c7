from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

class Field(NamedTuple):
    axes: tuple[str, ...]
    dtype: str = ...

def ridge_fields(prefix: str, rows: str) -> dict[str, Field]: ...

class NamedArrays:
    FIELDS: ClassVar[dict[str, Field]]
    NUMBERS: ClassVar[tuple[str, ...]]
    LENGTHS: ClassVar[dict[str, str]]
    n_users: int
    dim: int
    rounds: int
    @classmethod
    def shapes(
        cls, n_users: int, dim: int, numbers: dict[str, Any], **settings: Any
    ) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]: ...
    def array(self, name: str) -> np.ndarray[Any, Any]: ...
    def arrays(self) -> dict[str, np.ndarray[Any, Any]]: ...
    def numbers(self) -> dict[str, float]: ...
    def refresh(self) -> None: ...
    def restore(self, fill: Callable[[str, np.ndarray[Any, Any]], None], numbers: dict[str, Any]) -> None: ...
