from typing import Any

from coterie.policies.autoclub.clusters import Clusters
from coterie.policies.autoclub.hierarchical_model import ModelWeights, PosteriorCache
from coterie.policies.autoclub.histories import UserHistories
from coterie.policies.autoclub.prior import CommonPrior
from coterie.policies.autoclub.reward_sizes import RewardSizes
from coterie.policies.kernel.effects import Effects
from coterie.policies.kernel.learner import Learner
from coterie.types import Floats

class AutoClubLearner(Learner):
    users: UserHistories
    sizes: RewardSizes
    prior: CommonPrior
    clusters: Clusters
    hierarchy: PosteriorCache
    weights: ModelWeights
    pairs: Effects | None
    def explained(self, user: int) -> dict[str, Any]: ...
    def modelled(self, user: int, arms: Floats) -> tuple[Floats, Floats, Floats]: ...
