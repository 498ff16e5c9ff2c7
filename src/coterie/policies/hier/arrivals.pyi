from coterie.policies.kernel.arrays import NamedArrays
from coterie.types import Ints

class Arrivals(NamedArrays):
    count: int
    def of_all(self) -> Ints: ...
