from coterie.policies._learner import Learner

class GibbsClusters(Learner):
    concentration: float
