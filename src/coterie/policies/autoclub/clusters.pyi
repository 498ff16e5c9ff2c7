from typing import Any

from coterie.policies.autoclub.histories import UserHistories
from coterie.policies.autoclub.prior import CommonPrior
from coterie.policies.autoclub.quorums import SharedValues
from coterie.policies.kernel.arrays import NamedArrays
from coterie.types import Floats

class Clusters(NamedArrays):
    partition: Any
    sums: Any
    def __init__(self, users: UserHistories, values: SharedValues, prior: CommonPrior) -> None: ...
    def learn(self, user: int, x: Floats, reward: float) -> None: ...
    def likeliest(self, user: int) -> tuple[list[int], int]: ...
