from coterie.policies._autoclub_prior import Prior
from coterie.types import Floats

class Histories(Prior):
    used_vectors: int
    n_packed: int
    def gram(self, user: int) -> Floats: ...
