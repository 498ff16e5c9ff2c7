from coterie.policies.kernel.learner import Learner

class Servers(Learner):
    messages: int
    numbers_sent: int
