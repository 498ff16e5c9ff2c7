"""Every policy by name. A new family adds one import here, and nothing else in the library."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from coterie.errors import UnknownName, unknown
from coterie.policies.autoclub.autoclub import AutoCLUB as AutoCLUB
from coterie.policies.club.club import CLUB as CLUB
from coterie.policies.club.club import SACLUB as SACLUB
from coterie.policies.club.club import UniCLUB as UniCLUB
from coterie.policies.club.club_cascade import CLUBCascade as CLUBCascade
from coterie.policies.club.offclub import OffCLUB as OffCLUB
from coterie.policies.club.phase_uniclub import PhaseUniCLUB as PhaseUniCLUB
from coterie.policies.dueling.coldb import COLDB as COLDB
from coterie.policies.dynamic.codband import CoDBand as CoDBand
from coterie.policies.dynamic.dyclu import DyClu as DyClu
from coterie.policies.dynamic.dynucb import DynUCB as DynUCB
from coterie.policies.entries import ENTRIES, PolicyEntry
from coterie.policies.graph.goblin import GOBLin as GOBLin
from coterie.policies.graph.graphucb import GraphUCB as GraphUCB
from coterie.policies.hier.hier import HierTS as HierTS
from coterie.policies.hier.hier import HierUCB as HierUCB
from coterie.policies.linucb.cascade_linucb import CascadeLinUCB as CascadeLinUCB
from coterie.policies.linucb.lints import LinTSInd as LinTSInd
from coterie.policies.linucb.lints import LinTSOne as LinTSOne
from coterie.policies.linucb.lints import LinTSOracle as LinTSOracle
from coterie.policies.linucb.linucb import LinUCBInd as LinUCBInd
from coterie.policies.linucb.linucb import LinUCBOne as LinUCBOne
from coterie.policies.linucb.linucb import LinUCBOracle as LinUCBOracle
from coterie.policies.neighbours.cab import CAB as CAB
from coterie.policies.neighbours.locb import LOCB as LOCB
from coterie.policies.robust.rclubwcu import RCLUBWCU as RCLUBWCU
from coterie.policies.robust.rclumb import RCLUMB as RCLUMB
from coterie.policies.robust.rclumb import RSCLUMB as RSCLUMB
from coterie.policies.sclub.sclub import SASCLUB as SASCLUB
from coterie.policies.sclub.sclub import SCLUB as SCLUB
from coterie.policies.sclub.sclub import UniSCLUB as UniSCLUB
from coterie.policies.sclub.sclub2019 import SCLUB2019 as SCLUB2019

REGISTRY: Mapping[str, PolicyEntry] = MappingProxyType(ENTRIES)
"""Filled by the imports above."""

SERVED_BY = {
    "duelingclub": "CLUB serves duels by recommend_pair and update_pair, COLDB by logistic regressions",
    "occud": "RCLUBWCU reports suspected users by suspects()",
}
"""Algorithms of the literature that are no policy of their own, in small letters, and what does the same."""


def find(name: str) -> PolicyEntry:
    """Find a policy by name.

    Parameters
    ----------
    name : str
        Name such as "CLUB".

    Returns
    -------
    PolicyEntry
        Its maker, summary, grid and style.

    Raises
    ------
    UnknownName
        If there is no such policy; the message suggests the nearest name, or what does the same.

    Examples
    --------
    >>> find("CLUB").summary
    'removes edges of a user graph; clusters are its components'
    """
    if other := SERVED_BY.get(name.replace("-", "").casefold()):
        raise UnknownName(f"no policy {name!r}: {other}")
    if name not in REGISTRY:
        raise unknown("policy", name, REGISTRY, "`coterie policies` lists all")
    return REGISTRY[name]
