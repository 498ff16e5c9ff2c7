from coterie.policies._autoclub_sums import ClusterSums

FIRST_REVIEW: int

class EvidenceRows(ClusterSums): ...
