from coterie.policies._autoclub_members import Memberships
from coterie.types import Floats

class ClusterSums(Memberships):
    def cluster(self, row: int) -> tuple[Floats, Floats]: ...
