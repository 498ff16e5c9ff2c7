from coterie.policies._autoclub import ByEvidence
from coterie.policies._hier import UpperBounds

SEATS: int

class ClustersAndPeople(ByEvidence):
    people: UpperBounds
    odds: float
