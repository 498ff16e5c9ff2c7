from coterie.policies._learner import Learner

class Components(Learner):
    n_components: int
