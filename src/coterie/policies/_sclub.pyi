from coterie.policies._learner import Learner

class SplitMerge(Learner):
    n_clusters: int
    compare_all: bool
