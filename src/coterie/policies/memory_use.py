"""Memory of policies: bytes by part, and a check that a graph of users fits before it is allocated."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from coterie.errors import ArgumentError
from coterie.policies.kernel.arrays import Field
from coterie.policies.kernel.learner import Learner

UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
GRAPH, USERS, CLUSTERS = "graph", "statistics of users", "statistics of clusters"
OF_USERS = ("users", "vectors", "packed")
"""Axes along which each row belongs to a user."""
LABELS, EFFECTS = "labels and counts", "effects of items"
WORK, ARGUMENTS = "work space", "arguments"


@dataclass(frozen=True, slots=True, repr=False)
class MemoryUse:
    """Bytes that a policy holds, by part, as `LinearBandit.memory` returns them.

    Parameters
    ----------
    parts : dict of str to int
        Bytes of each part, room for more users included: "statistics of users" and "statistics of clusters"
        (matrices and vectors), "graph" (who is joined to whom), "labels and counts", "effects of items",
        "arguments" (arrays that the policy was made with) and "work space". Parts that a policy does not have
        are left out.

    Examples
    --------
    >>> import coterie
    >>> coterie.LinUCBInd(n_users=1000, dim=10).memory()
    statistics of clusters   960 kB
    labels and counts         32 kB
    work space                 2 kB
    in all                   994 kB
    """

    parts: dict[str, int]

    @property
    def total(self) -> int:
        """Bytes in all."""
        return sum(self.parts.values())

    def __repr__(self) -> str:
        """Show a line for each part, the largest first."""
        ordered = sorted(self.parts.items(), key=lambda part: -part[1])
        lines = [*((name, readable(size)) for name, size in ordered), ("in all", readable(self.total))]
        widths = [max(len(line[k]) for line in lines) for k in (0, 1)]
        return "\n".join(f"{name:<{widths[0]}}   {size:>{widths[1]}}" for name, size in lines)


def memory_use(learner: Learner, arguments: Mapping[str, Any]) -> MemoryUse:
    """What a learner holds now."""
    parts: dict[str, int] = {}
    fields = learner.fields()
    for name, size in learner.held().items():
        part = part_of(fields[name]) if name in fields else EFFECTS
        parts[part] = parts.get(part, 0) + size
    given = sum(value.nbytes for value in arguments.values() if isinstance(value, np.ndarray))
    parts |= {WORK: learner.scratch(), ARGUMENTS: given}
    return MemoryUse({part: size for part, size in parts.items() if size})


def part_of(field: Field) -> str:
    """The part that an array belongs to, by its axes."""
    if "words" in field.axes:
        return GRAPH
    if len(field.axes) == 1:
        return LABELS
    return USERS if field.axes[0] in OF_USERS else CLUSTERS


def readable(size: float) -> str:
    """Bytes with three digits.

    >>> readable(12), readable(1_250_000_000), readable(999_999)
    ('12 B', '1.2 GB', '1 MB')
    """
    unit = 0
    while float(f"{size:.3g}") >= 1000 and unit + 1 < len(UNITS):
        size, unit = size / 1000, unit + 1
    return f"{size:.2g} {UNITS[unit]}" if size < 10 else f"{size:.0f} {UNITS[unit]}"


def check_graph(learner: type[Learner], n_users: int, dim: int, settings: Mapping[str, Any]) -> None:
    """Refuse a graph of users that does not fit into memory, before any of it is allocated."""
    graphs = [name for name, field in learner.FIELDS.items() if part_of(field) == GRAPH]
    if not graphs:
        return
    sizes = {
        name: prod(shape) * dtype.itemsize
        for name, (shape, dtype) in learner.shapes(n_users, dim, **settings).items()
    }
    edges, free = sum(sizes[name] for name in graphs), available_memory()
    if free is not None and edges > free:
        raise ArgumentError(
            f"a graph of {n_users:,} users needs {readable(edges)} and statistics of up to "
            f"{readable(sum(sizes.values()) - edges)}, but {readable(free)} of memory are free; "
            "AutoCLUB, SCLUB and LinUCBInd keep no graph"
        )


def available_memory() -> int | None:
    """Bytes that this process may still take; None where the system does not say."""
    found = []
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        found += [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    with suppress(OSError, ValueError):  # the limit of a container; the word "max" is none
        group = Path("/sys/fs/cgroup")
        limit = int((group / "memory.max").read_text())
        found.append(max(limit - int((group / "memory.current").read_text()), 0))
    return min(found, default=None)
