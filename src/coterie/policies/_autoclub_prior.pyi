from coterie.policies._learner import Learner

class Prior(Learner):
    noise2: float
    weight: float
