from coterie.policies.kernel.learner import Learner
from coterie.policies.sclub.kd_tree import Tree

class Sets(Learner):
    n_clusters: int
    compare_all: bool

class SplitMerge(Sets):
    tree: Tree
