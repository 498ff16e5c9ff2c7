from coterie.policies.kernel.arrays import NamedArrays
from coterie.types import Floats

class RewardSizes(NamedArrays):
    greatest: float
    second: float
    def __init__(self, n_users: int, dim: int) -> None: ...
    def limited(
        self, user: int, x: Floats, reward: float
    ) -> tuple[float, tuple[int, float, float] | None]: ...
