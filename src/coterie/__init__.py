"""Online clustering of bandits: users who turn out to be alike learn from each other."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from coterie import datasets, environments, policies, theory
    from coterie.errors import ArgumentError, CoterieError, DataError, MissingData, SnapshotError, UnknownName
    from coterie.policies.autoclub import AutoCLUB
    from coterie.policies.base import Policy
    from coterie.policies.club import CLUB, SACLUB, UniCLUB
    from coterie.policies.confidence import Confidence, Smoothed, Theory, Tuned
    from coterie.policies.graphs import GOBLin, GraphUCB
    from coterie.policies.linucb import LinUCBInd, LinUCBOne, LinUCBOracle
    from coterie.policies.phase import PhaseUniCLUB
    from coterie.policies.sclub import SASCLUB, SCLUB, UniSCLUB
    from coterie.policies.snapshots import load
    from coterie.simulation import simulate, simulate_many
    from coterie.traces import Trace
    from coterie.types import Scores

_HOMES = {
    "errors": ("ArgumentError", "CoterieError", "DataError", "MissingData", "SnapshotError", "UnknownName"),
    "types": ("Scores",),
    "policies.autoclub": ("AutoCLUB",),
    "policies.base": ("Policy",),
    "policies.club": ("CLUB", "SACLUB", "UniCLUB"),
    "policies.confidence": ("Confidence", "Smoothed", "Theory", "Tuned"),
    "policies.graphs": ("GOBLin", "GraphUCB"),
    "policies.linucb": ("LinUCBInd", "LinUCBOne", "LinUCBOracle"),
    "policies.phase": ("PhaseUniCLUB",),
    "policies.sclub": ("SASCLUB", "SCLUB", "UniSCLUB"),
    "policies.snapshots": ("load",),
    "simulation": ("simulate", "simulate_many"),
    "traces": ("Trace",),
}
_HOME = {name: f"coterie.{module}" for module, names in _HOMES.items() for name in names}

__all__ = [
    "CLUB",
    "SACLUB",
    "SASCLUB",
    "SCLUB",
    "ArgumentError",
    "AutoCLUB",
    "Confidence",
    "CoterieError",
    "DataError",
    "GOBLin",
    "GraphUCB",
    "LinUCBInd",
    "LinUCBOne",
    "LinUCBOracle",
    "MissingData",
    "PhaseUniCLUB",
    "Policy",
    "Scores",
    "Smoothed",
    "SnapshotError",
    "Theory",
    "Trace",
    "Tuned",
    "UniCLUB",
    "UniSCLUB",
    "UnknownName",
    "datasets",
    "environments",
    "load",
    "policies",
    "simulate",
    "simulate_many",
    "theory",
]


def __getattr__(name: str) -> Any:
    """A public name, imported when first asked for: `import coterie` itself is instant."""
    if name == "__version__":
        from importlib.metadata import version

        return version("coterie")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    try:
        return import_module(f"coterie.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"coterie.{name}":
            raise
        raise AttributeError(f"module 'coterie' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
