"""Where runs are played: on this machine, or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from coterie.errors import unknown
from coterie.experiments.engines.local import Local
from coterie.experiments.engines.ray import Ray
from coterie.experiments.execute import Engine

ENGINES: Mapping[str, Callable[[int | None], Engine]] = MappingProxyType({"local": Local, "ray": Ray})


def find(name: str) -> Callable[[int | None], Engine]:
    """The engine of this name, to be told how many runs at a time; a wrong name suggests the right one."""
    if name not in ENGINES:
        raise unknown("engine", name, ENGINES, "There are local and ray")
    return ENGINES[name]
