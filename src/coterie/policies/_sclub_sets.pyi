from coterie.policies._learner import Learner

class Sets(Learner):
    n_clusters: int
    compare_all: bool
