"""AutoCLUB: clustering of bandits without constants to set."""

from __future__ import annotations

from coterie.policies._autoclub import ByEvidence
from coterie.policies.base import Plan
from coterie.policies.entries import Style, register


@register(
    summary="clusters by evidence, no constants to set",
    use_when="there is no reason for another",
    style=Style("AutoCLUB", "#A5112B", "d", "-"),
    cost=25.0,
)
def AutoCLUB(n_users: int, dim: int, *, ridge: float = 1.0, seed: int = 0) -> Plan:
    """Clustering by evidence: no gap, no noise level, no horizon, no constants.

    Each user is reviewed at ever longer intervals and put where its data is explained best: in a cluster, or
    alone. Noise, prior and mean preference are estimated from all users.

    Parameters
    ----------
    n_users, dim : int
        How many users there are, and the length d of an arm's vector.
    ridge : float
        The λ to begin with, and the least that clusters act with. 1 suits features of about unit length.
    seed : int
        Seed of the policy's own random numbers; AutoCLUB draws none.

    Examples
    --------
    >>> AutoCLUB(n_users=3, dim=2).labels().tolist()
    [0, 0, 0]
    """
    return Plan(ByEvidence, {})
