from coterie.policies._autoclub_members import Memberships
from coterie.types import Floats

FIRST_REVIEW: int

class EvidenceRows(Memberships):
    def cluster(self, row: int) -> tuple[Floats, Floats]: ...
