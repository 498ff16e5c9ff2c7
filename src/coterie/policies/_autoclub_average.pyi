from coterie.policies._autoclub_people import ClustersAndPeople

class Averaged(ClustersAndPeople):
    recurring: float

class Levelled(Averaged): ...
