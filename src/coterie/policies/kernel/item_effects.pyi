from coterie.policies.kernel.arrays import NamedArrays
from coterie.types import Floats

MOST_VECTORS: int

class ItemEffects(NamedArrays):
    used: int
    vectors: int
    mean: float
    variance: float
    shrinkage: float
    def __init__(self, most_vectors: int = ...) -> None: ...
    def learn(self, item: int | Floats, residual: float, weight: float = 1.0) -> None: ...
    def effect(self, item: int | Floats) -> tuple[float, float]: ...
