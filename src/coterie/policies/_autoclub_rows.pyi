from coterie.policies._autoclub_prior import Prior

FIRST_REVIEW: int

class EvidenceRows(Prior):
    n_clusters: int
