"""Every policy by name. A new policy adds one import here, and nothing else outside its family's folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from inspect import signature
from types import MappingProxyType
from typing import NamedTuple

from coterie.errors import UnknownName, unknown
from coterie.policies.autoclub.autoclub import AutoCLUB as AutoCLUB
from coterie.policies.base import LinearBandit
from coterie.policies.club.club import CLUB as CLUB
from coterie.policies.club.club import SACLUB as SACLUB
from coterie.policies.club.club import UniCLUB as UniCLUB
from coterie.policies.club.club_cascade import CLUBCascade as CLUBCascade
from coterie.policies.club.offc2lub import OffC2LUB as OffC2LUB
from coterie.policies.club.offclub import OffCLUB as OffCLUB
from coterie.policies.club.phase_uniclub import PhaseUniCLUB as PhaseUniCLUB
from coterie.policies.declarations import Feedback, Grid, Style
from coterie.policies.dueling.coldb import COLDB as COLDB
from coterie.policies.dynamic.codband import CoDBand as CoDBand
from coterie.policies.dynamic.dyclu import DyClu as DyClu
from coterie.policies.dynamic.dynucb import DynUCB as DynUCB
from coterie.policies.federated.fclubdc import FCLUBDC as FCLUBDC
from coterie.policies.graph.goblin import GOBLin as GOBLin
from coterie.policies.graph.graphucb import GraphUCB as GraphUCB
from coterie.policies.hier.hier import HierTS as HierTS
from coterie.policies.hier.hier import HierUCB as HierUCB
from coterie.policies.items.cofiba import COFIBA as COFIBA
from coterie.policies.items.item_bandits import ItemTS as ItemTS
from coterie.policies.items.item_bandits import ItemUCB as ItemUCB
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


class PolicyEntry(NamedTuple):
    """What the registry knows of a policy.

    Parameters
    ----------
    name : str
        Name of the policy, the same as in `coterie`.
    make : class
        Class of the policy, such as `coterie.CLUB`.
    summary : str
        What it is, in one line.
    use_when : str
        When to use it, in one line.
    grid : Grid
        Values to try when it is tuned.
    style : Style
        How it is drawn.
    cost : float
        About how many microseconds a round takes among 50 users.
    clusters : bool
        Whether it looks for clusters, so that a round takes longer among more users.
    parameters : tuple of str
        Names of the class's parameters.
    feedback : str
        What it is made to learn from: "rewards", "lists", "duels" or "logs".
    figures : tuple of str
        Figures of `coterie reproduce` that play it because it names them.

    Examples
    --------
    >>> from coterie.policies import find
    >>> find("CLUB").parameters
    ('n_users', 'dim', 'confidence', 'alpha', 'beta', 'growing', 'ridge', 'seed', 'items')
    """

    name: str
    make: type[LinearBandit]
    summary: str
    use_when: str
    grid: Grid
    style: Style
    cost: float
    clusters: bool
    parameters: tuple[str, ...]
    feedback: Feedback
    figures: tuple[str, ...]

    @property
    def page(self) -> str:
        """Where its page is in the documentation, from `docs`."""
        return f"algorithms/{self.name.lower()}.md"


def _entry(policy: type[LinearBandit]) -> PolicyEntry:
    """What a class declares, with its name and parameters."""
    declared = {one.name: getattr(policy.declared, one.name) for one in fields(policy.declared)}
    return PolicyEntry(
        name=policy.__name__, make=policy, parameters=tuple(signature(policy).parameters), **declared
    )


DEFAULT = "AutoCLUB"
"""The policy that is used where none is named."""

REGISTRY: Mapping[str, PolicyEntry] = MappingProxyType(
    {
        name: _entry(one)
        for name, one in list(globals().items())
        if isinstance(one, type) and issubclass(one, LinearBandit) and one is not LinearBandit
    }
)
"""Every policy that is imported above, by name."""

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
        Its class, summary, grid and style.

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
