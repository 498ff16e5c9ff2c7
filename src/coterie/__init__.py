"""Online clustering of bandits: users who turn out to be alike learn from each other."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from coterie import datasets as datasets
    from coterie import environments as environments
    from coterie import evaluation as evaluation
    from coterie import policies as policies
    from coterie import theory as theory
    from coterie.errors import ArgumentError as ArgumentError
    from coterie.errors import Conflict as Conflict
    from coterie.errors import CoterieError as CoterieError
    from coterie.errors import DataError as DataError
    from coterie.errors import MissingData as MissingData
    from coterie.errors import MissingExtra as MissingExtra
    from coterie.errors import MissingSnapshot as MissingSnapshot
    from coterie.errors import PolicyError as PolicyError
    from coterie.errors import SnapshotError as SnapshotError
    from coterie.errors import StoreError as StoreError
    from coterie.errors import UnknownName as UnknownName
    from coterie.policies.base import LinearBandit as LinearBandit
    from coterie.policies.catalogue.item_catalogue import Catalogue as Catalogue
    from coterie.policies.confidence import Confidence as Confidence
    from coterie.policies.confidence import SmoothedTheory as SmoothedTheory
    from coterie.policies.confidence import Theory as Theory
    from coterie.policies.confidence import Tuned as Tuned
    from coterie.policies.protocols import ListPolicy as ListPolicy
    from coterie.policies.protocols import PairPolicy as PairPolicy
    from coterie.policies.protocols import Policy as Policy
    from coterie.policies.registry import *  # every policy, listed there alone
    from coterie.policies.sharded import Sharded as Sharded
    from coterie.policies.snapshots import load as load
    from coterie.service.client import AsyncClient as AsyncClient
    from coterie.service.client import Client as Client
    from coterie.service.recommender import Recommender as Recommender
    from coterie.simulation import Trace as Trace
    from coterie.simulation import simulate as simulate
    from coterie.simulation import simulate_many as simulate_many
    from coterie.types import Scores as Scores

_HOMES = {
    "errors": (
        "ArgumentError",
        "Conflict",
        "CoterieError",
        "DataError",
        "MissingData",
        "MissingExtra",
        "MissingSnapshot",
        "PolicyError",
        "SnapshotError",
        "StoreError",
        "UnknownName",
    ),
    "types": ("Scores",),
    "policies.base": ("LinearBandit",),
    "policies.catalogue.item_catalogue": ("Catalogue",),
    "policies.confidence": ("Confidence", "SmoothedTheory", "Theory", "Tuned"),
    "policies.protocols": ("ListPolicy", "PairPolicy", "Policy"),
    "policies.sharded": ("Sharded",),
    "policies.snapshots": ("load",),
    "service.client": ("AsyncClient", "Client"),
    "service.recommender": ("Recommender",),
    "simulation": ("Trace", "simulate", "simulate_many"),
}
_HOME = {name: f"coterie.{module}" for module, names in _HOMES.items() for name in names}
_PACKAGES = ("datasets", "environments", "evaluation", "policies", "theory")


def __getattr__(name: str) -> Any:
    """A public name, imported at first use: `import coterie` itself is instant."""
    if name == "__version__":
        from importlib.metadata import version

        return version("coterie")
    if name == "__all__":
        return sorted([*_HOME, *_PACKAGES, *import_module("coterie.policies.registry").REGISTRY])
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if not name.startswith("_") and name[:1].isupper():
        registry = import_module("coterie.policies.registry")
        if name in registry.REGISTRY:
            return registry.REGISTRY[name].make
    try:
        return import_module(f"coterie.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"coterie.{name}":
            raise
        raise AttributeError(f"module 'coterie' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted([*__getattr__("__all__"), "__version__"])
