from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coterie.policies._arrays import NamedArrays
from coterie.policies.schedule import Schedule
from coterie.types import Floats, Ints

LONGEST2: float

class ArmChoice(NamedArrays):
    ridge: float
    explored: bool
    grows: bool
    limit: float
    schedule: Schedule
    generator: np.random.Generator
    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        ridge: float,
        schedule: Schedule,
        generator: np.random.Generator,
        **settings: Any,
    ) -> None: ...
    @property
    def exploring(self) -> bool: ...
    def recommend(self, user: int, arms: ArrayLike) -> int: ...
    def recommend_list(self, user: int, arms: Floats, k: int) -> Ints | None: ...
    def accepts(self, rows: Floats) -> bool: ...
    def scores(self, user: int, arms: Floats) -> tuple[Floats, Floats]: ...
