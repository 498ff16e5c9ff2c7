from typing import Any

from coterie.policies.autoclub.histories import UserHistories
from coterie.policies.autoclub.prior import CommonPrior
from coterie.policies.autoclub.reward_sizes import RewardSizes
from coterie.policies.kernel.arrays import NamedArrays
from coterie.types import Floats

class Clusters(NamedArrays):
    partition: Any
    sums: Any
    def __init__(self, users: UserHistories, sizes: RewardSizes, prior: CommonPrior) -> None: ...
    def learn(self, user: int, x: Floats, reward: float) -> None: ...
    def likeliest(self, user: int) -> tuple[list[int], int]: ...
