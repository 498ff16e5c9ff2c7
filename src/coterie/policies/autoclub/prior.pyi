from coterie.policies.autoclub.histories import UserHistories
from coterie.policies.autoclub.quorums import SizeLimits
from coterie.policies.kernel.arrays import NamedArrays
from coterie.types import Floats

class CommonPrior(NamedArrays):
    noise2: float
    precision: float
    offset: float
    def __init__(self, users: UserHistories, limits: SizeLimits, *, ridge: float) -> None: ...
    def fit(self, user: int) -> Floats: ...
