from coterie.policies.kernel.learner import Learner

class CuttingGraph(Learner): ...

class Components(CuttingGraph):
    n_components: int
