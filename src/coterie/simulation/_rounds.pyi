from collections.abc import Callable

from coterie.environments.blocks import Block
from coterie.policies.kernel.learner import Learner
from coterie.types import Floats, Ints

class AnyPolicy(Learner):
    policy: object
    def __init__(self, policy: object, n_users: int, dim: int) -> None: ...
    def grow(self, n_users: int) -> None: ...

class Ledger:
    marks: Ints
    regrets: Floats
    rewards: Floats
    uniforms: Floats
    uniform_rounds: Ints
    clusters: Ints
    ari: Floats
    judging: float
    regret: float
    reward: float
    uniform: float
    rounds: int
    explored: int
    def __init__(self, marks: Ints, n_users: int, judge: Callable[[Ints], tuple[int, float]]) -> None: ...
    def add(self, learner: Learner, regret: float, reward: float, uniform: float, explored: bool) -> None: ...

class Pending:
    def __init__(self, longest: int, length: int, dim: int) -> None: ...

class Remembered:
    n_rows: int
    def __init__(self, items: Floats, n_rows: int) -> None: ...

class Shown:
    n_items: int
    def __init__(self, n_users: int, n_items: int) -> None: ...

def play(
    learner: Learner,
    block: Block,
    ledger: Ledger,
    pending: Pending,
    remembered: Remembered | None,
    shown: Shown | None,
) -> None: ...
