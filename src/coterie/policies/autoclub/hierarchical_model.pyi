from typing import Any

from coterie.policies.autoclub.histories import UserHistories
from coterie.policies.hier.hierarchy import UpperBounds
from coterie.policies.kernel.arrays import NamedArrays

class PosteriorCache(NamedArrays):
    model: UpperBounds
    def __init__(self, users: UserHistories, *, slots: int = ..., **settings: Any) -> None: ...

class ModelWeights(NamedArrays):
    log_odds: float
    def __init__(self, n_users: int, dim: int) -> None: ...
    def weight(self) -> float: ...
    def update(
        self, reward: float, clusters: tuple[float, float], hierarchy: tuple[float, float], rewards: int
    ) -> None: ...
