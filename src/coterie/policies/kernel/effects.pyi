from coterie.policies.kernel.arrays import NamedArrays
from coterie.types import Floats

MOST_KEYS: int

class Effects(NamedArrays):
    used: int
    forgettable: int
    mean: float
    variance: float
    shrinkage: float
    def __init__(
        self,
        *,
        explored: float = ...,
        least_shrinkage: float = ...,
        most_shrinkage: float = ...,
        most_weight: float = ...,
        most_keys: int = ...,
    ) -> None: ...
    def learn(self, key: int | Floats, value: float, level: float = 0.0, weight: float = 1.0) -> None: ...
    def effect(self, key: int | Floats, level: float = 0.0) -> tuple[float, float, float]: ...
