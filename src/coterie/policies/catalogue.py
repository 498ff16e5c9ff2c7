"""Every policy by name: what it is, when to use it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from coterie.errors import unknown
from coterie.policies.autoclub import AutoCLUB
from coterie.policies.base import Policy
from coterie.policies.club import CLUB, SACLUB, UniCLUB
from coterie.policies.graphs import GOBLin, GraphUCB
from coterie.policies.linucb import LinUCBInd, LinUCBOne, LinUCBOracle
from coterie.policies.phase import PhaseUniCLUB
from coterie.policies.sclub import SASCLUB, SCLUB, UniSCLUB


class Entry(NamedTuple):
    """A policy as people choose it."""

    name: str
    make: Callable[..., Policy]
    summary: str
    use_when: str


CATALOGUE = {
    entry.name: entry
    for entry in (
        Entry(
            "AutoCLUB",
            AutoCLUB,
            "clusters by evidence, no constants to set",
            "there is no reason for another",
        ),
        Entry("LinUCBOne", LinUCBOne, "one LinUCB for all users", "everybody wants the same"),
        Entry(
            "LinUCBInd", LinUCBInd, "a LinUCB for each user", "nobody resembles anybody, or data is plenty"
        ),
        Entry(
            "LinUCBOracle", LinUCBOracle, "a LinUCB for each known cluster", "a simulation needs a yardstick"
        ),
        Entry(
            "CLUB", CLUB, "a graph that loses edges; components are clusters", "a classic baseline is wanted"
        ),
        Entry("SCLUB", SCLUB, "sets that split and merge", "users arrive unevenly"),
        Entry("UniCLUB", UniCLUB, "CLUB after uniform exploration", "the gap between clusters is known"),
        Entry("PhaseUniCLUB", PhaseUniCLUB, "CLUB that explores in phases", "the gap is not known"),
        Entry(
            "UniSCLUB", UniSCLUB, "SCLUB after uniform exploration", "the gap is known, and users come and go"
        ),
        Entry(
            "SACLUB", SACLUB, "CLUB for smoothed contexts", "an adversary picks the arms, noise blurs them"
        ),
        Entry("SASCLUB", SASCLUB, "SCLUB for smoothed contexts", "arms as for SACLUB, and users come and go"),
        Entry(
            "GOBLin", GOBLin, "friends in a given graph share what they learn", "a social graph is at hand"
        ),
        Entry(
            "GraphUCB",
            GraphUCB,
            "estimates smooth over a given graph",
            "a social graph is at hand, degrees differ",
        ),
    )
}


def find(name: str) -> Entry:
    """The entry of this name; a wrong name suggests the right one."""
    if name not in CATALOGUE:
        raise unknown("policy", name, CATALOGUE, "`coterie policies` lists all")
    return CATALOGUE[name]
