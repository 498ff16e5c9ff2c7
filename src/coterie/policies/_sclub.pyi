from coterie.policies._kd_tree import Tree
from coterie.policies._sclub_sets import Sets

class SplitMerge(Sets):
    tree: Tree
