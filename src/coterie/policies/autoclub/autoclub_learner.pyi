from typing import Any

from coterie.policies.autoclub.adaptive.change_test import ChangeTest
from coterie.policies.autoclub.adaptive.column_scales import ColumnScales
from coterie.policies.autoclub.clusters import Clusters
from coterie.policies.autoclub.hierarchical_model import ModelWeights, PosteriorCache
from coterie.policies.autoclub.histories import UserHistories
from coterie.policies.autoclub.prior import CommonPrior
from coterie.policies.autoclub.quorums import SharedValues, SizeLimits
from coterie.policies.hier.arrivals import Arrivals
from coterie.policies.kernel.effects import Effects
from coterie.policies.kernel.learner import Learner
from coterie.types import Floats, Ints

class AutoClubLearner(Learner):
    arrivals: Arrivals
    users: UserHistories
    limits: SizeLimits
    values: SharedValues
    prior: CommonPrior
    clusters: Clusters
    hierarchy: PosteriorCache
    weights: ModelWeights
    pairs: Effects | None
    columns: ColumnScales
    changes: ChangeTest
    def learnt_rewards(self) -> Ints: ...
    def noise_weights(self) -> Floats: ...
    def changes_of(self, user: int) -> int: ...
    def explained(self, user: int) -> dict[str, Any]: ...
    def modelled(self, user: int, arms: Floats) -> tuple[Floats, Floats, Floats]: ...
