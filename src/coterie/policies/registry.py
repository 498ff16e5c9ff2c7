"""Every policy by name. A new family adds one import here, and nothing else in the library."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from coterie.errors import UnknownName, unknown
from coterie.policies.autoclub import AutoCLUB as AutoCLUB
from coterie.policies.cab import CAB as CAB
from coterie.policies.cascade import CascadeLinUCB as CascadeLinUCB
from coterie.policies.cascade import CLUBCascade as CLUBCascade
from coterie.policies.club import CLUB as CLUB
from coterie.policies.club import SACLUB as SACLUB
from coterie.policies.club import UniCLUB as UniCLUB
from coterie.policies.codband import CoDBand as CoDBand
from coterie.policies.coldb import COLDB as COLDB
from coterie.policies.dyclu import DyClu as DyClu
from coterie.policies.dynucb import DynUCB as DynUCB
from coterie.policies.entries import ENTRIES, PolicyEntry
from coterie.policies.hier import HierTS as HierTS
from coterie.policies.hier import HierUCB as HierUCB
from coterie.policies.laplacian import GOBLin as GOBLin
from coterie.policies.laplacian import GraphUCB as GraphUCB
from coterie.policies.lints import LinTSInd as LinTSInd
from coterie.policies.lints import LinTSOne as LinTSOne
from coterie.policies.lints import LinTSOracle as LinTSOracle
from coterie.policies.linucb import LinUCBInd as LinUCBInd
from coterie.policies.linucb import LinUCBOne as LinUCBOne
from coterie.policies.linucb import LinUCBOracle as LinUCBOracle
from coterie.policies.locb import LOCB as LOCB
from coterie.policies.offclub import OffCLUB as OffCLUB
from coterie.policies.phase import PhaseUniCLUB as PhaseUniCLUB
from coterie.policies.rclubwcu import RCLUBWCU as RCLUBWCU
from coterie.policies.rclumb import RCLUMB as RCLUMB
from coterie.policies.rclumb import RSCLUMB as RSCLUMB
from coterie.policies.sclub import SASCLUB as SASCLUB
from coterie.policies.sclub import SCLUB as SCLUB
from coterie.policies.sclub import UniSCLUB as UniSCLUB
from coterie.policies.sclub2019 import SCLUB2019 as SCLUB2019

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
    'a graph that loses edges; components are clusters'
    """
    if other := SERVED_BY.get(name.replace("-", "").casefold()):
        raise UnknownName(f"no policy {name!r}: {other}")
    if name not in REGISTRY:
        raise unknown("policy", name, REGISTRY, "`coterie policies` lists all")
    return REGISTRY[name]
