"""Policies: contextual linear bandits that share data between similar users."""

from coterie.policies.base import LinearBandit
from coterie.policies.confidence import Confidence, SmoothedTheory, Theory, Tuned
from coterie.policies.declarations import Declaration, Grid, Style
from coterie.policies.protocols import ListPolicy, PairPolicy, Policy
from coterie.policies.registry import REGISTRY, PolicyEntry, find

__all__ = [
    "REGISTRY",
    "Confidence",
    "Declaration",
    "Grid",
    "LinearBandit",
    "ListPolicy",
    "PairPolicy",
    "Policy",
    "PolicyEntry",
    "SmoothedTheory",
    "Style",
    "Theory",
    "Tuned",
    "find",
]
