from coterie.policies.hier.hierarchy import UpperBounds
from coterie.policies.kernel.effects import Effects
from coterie.policies.kernel.learner import Learner
from coterie.types import Floats

class Averaged(Learner):
    noise2: float
    weight: float
    used_vectors: int
    n_packed: int
    n_clusters: int
    bar: float
    people: UpperBounds
    odds: float
    pairs: Effects | None
    def gram(self, user: int) -> Floats: ...
    def cluster(self, row: int) -> tuple[Floats, Floats]: ...
    def likeliest(self, user: int) -> tuple[list[int], int]: ...

class Levelled(Averaged): ...
