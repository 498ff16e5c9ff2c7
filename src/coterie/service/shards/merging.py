"""Answers of several shards as one: totals of policies, users, clusters, metrics."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from coterie.service import messages
from coterie.service.shards.peers import PeerAnswer

M = TypeVar("M")
SAME = frozenset(("created", "configured", "items", "retired"))
"""Kinds of event that are the same in all shards."""
SAMPLE = re.compile(r"([A-Za-z_:][A-Za-z0-9_:]*)(?:\{(.*)\})? (\S+)")
"""A line of Prometheus' text format: name, labels, value."""


def merged_policy(parts: Mapping[int, messages.PolicyAnswer]) -> messages.PolicyAnswer:
    """Return the whole of a policy: counts of all shards; settings and catalogue are the same in each."""
    first = parts[min(parts)]
    found = list(parts.values())
    counts: Counter[str] = Counter()
    for one in found:
        counts.update(one.events)
    return messages.PolicyAnswer(
        name=first.name,
        settings=first.settings,
        rounds=sum(one.rounds for one in found),
        users=sum(one.users for one in found),
        items=first.items,
        clusters=sum(one.clusters for one in found),
        waiting=sum(one.waiting for one in found),
        events={kind: first.events.get(kind, 0) if kind in SAME else n for kind, n in counts.items()},
        version=sum(one.version for one in found),
    )


def merged_policies(parts: Mapping[int, messages.PoliciesAnswer]) -> messages.PoliciesAnswer:
    """Return all policies, in the order of the first shard; what fails says in which shard."""
    by_name: dict[str, dict[int, messages.PolicyAnswer]] = {}
    failed = []
    for shard, part in parts.items():
        for one in part.policies:
            by_name.setdefault(one.name, {})[shard] = one
        failed += [
            messages.FailedPolicy(name=one.name, reason=f"shard {shard}: {one.reason}") for one in part.failed
        ]
    return messages.PoliciesAnswer(policies=[merged_policy(one) for one in by_name.values()], failed=failed)


def merged_clusters(parts: Mapping[int, messages.ClustersAnswer]) -> messages.ClustersAnswer:
    """Return all clusters, the largest first; a number is unique within a shard."""
    found = [
        msgspec.structs.replace(one, shard=shard) for shard, part in parts.items() for one in part.clusters
    ]
    return messages.ClustersAnswer(clusters=sorted(found, key=lambda one: -one.size))


def slices(totals: list[int], start: int, limit: int) -> dict[int, tuple[int, int]]:
    """Return start and limit in each shard of a part of the list of all users, shard after shard.

    >>> slices([3, 0, 5], start=2, limit=4)
    {0: (2, 1), 2: (0, 3)}
    """
    found: dict[int, tuple[int, int]] = {}
    first, end = 0, start + limit
    for shard, total in enumerate(totals):
        low, high = max(start - first, 0), min(end - first, total)
        if low < high:
            found[shard] = (low, high - low)
        first += total
    return found


def merged_metrics(texts: Mapping[int, str], shards: int) -> str:
    """Return the metrics of all shards, each with the label `shard`; `coterie_shard_up` is 0 for one away."""
    heads: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for shard, text in texts.items():
        family = ""
        for line in text.splitlines():
            if line.startswith("# "):
                family = line.split(" ", 3)[2]
                heads.setdefault(family, [])
                if line not in heads[family]:
                    heads[family].append(line)
            elif parts := SAMPLE.fullmatch(line):
                labels = f'shard="{shard}"' + (f",{parts[2]}" if parts[2] else "")
                samples.setdefault(family, []).append(f"{parts[1]}{{{labels}}} {parts[3]}")
    lines = [
        "# HELP coterie_shard_up 1 if the shard answers.",
        "# TYPE coterie_shard_up gauge",
        *(f'coterie_shard_up{{shard="{shard}"}} {int(shard in texts)}' for shard in range(shards)),
    ]
    for family, head in heads.items():
        lines += [*head, *samples.get(family, ())]
    return "\n".join([*lines, ""])


def decoded(answers: Mapping[int, PeerAnswer], kind: type[M]) -> dict[int, M]:
    """Return the messages of the answers that succeeded."""
    return {
        shard: msgspec.json.decode(one.content, type=kind) for shard, one in answers.items() if one.succeeded
    }
