from coterie.policies.kernel.learner import Learner

class GibbsClusters(Learner):
    concentration: float
