from coterie.policies._autoclub import ByEvidence
from coterie.policies._hier import UpperBounds

class Averaged(ByEvidence):
    people: UpperBounds
    odds: float
