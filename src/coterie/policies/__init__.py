"""Policies: who learns from whom, and which arm to play."""

from coterie.policies.base import LinearBandit
from coterie.policies.confidence import Confidence, SmoothedTheory, Theory, Tuned
from coterie.policies.entries import Grid, PolicyEntry, Style
from coterie.policies.protocols import ListPolicy, PairPolicy, Policy
from coterie.policies.registry import REGISTRY, find

__all__ = [
    "REGISTRY",
    "Confidence",
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
