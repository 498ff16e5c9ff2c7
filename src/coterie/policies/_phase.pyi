from coterie.policies._learner import Learner

class Neighbourhoods(Learner):
    n_neighbourhoods: int
