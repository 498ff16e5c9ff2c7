"""Policies: who learns from whom, and which arm to play."""

from coterie.policies.base import Policy
from coterie.policies.catalogue import CATALOGUE, Entry, find
from coterie.policies.confidence import Confidence, Smoothed, Theory, Tuned
from coterie.policies.snapshots import load

__all__ = ["CATALOGUE", "Confidence", "Entry", "Policy", "Smoothed", "Theory", "Tuned", "find", "load"]
