"""Segments of users beside the opinion groups that Polis found, and the time that a million users take.

    python -m benchmarks.segments --data DIR

DIR is the folder of Polis's open data. Comments have as vectors their mean vote and the first four
coordinates of a singular value decomposition of the votes about it, of all participants. HierUCB learns
every last vote once, in random order; its segments are compared with the groups by the Rand index, adjusted
for chance, of the participants that Polis put into a group.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import process_time

import numpy as np

import coterie
from benchmarks.timing import Table, at_least, at_most
from coterie.datasets import load_payoffs
from coterie.datasets.payoff_table import SparseTable
from coterie.policies.segments import divide
from coterie.policies.user_map import Known
from coterie.seeding import stream
from coterie.simulation.rand_index import adjusted_rand
from coterie.types import Floats

CONVERSATIONS = (
    "vtaiwan.uberx",
    "scoop-hivemind.biodiversity",
    "scoop-hivemind.taxes",
    "canadian-electoral-reform",
    "ssis.land-bank-farmland.2rumnecbeh.2021-08-01",
)
DIRECTIONS, PSEUDO_VOTES, USERS, DIM = 4, 5, 1_000_000, 20


def vectors_of(votes: SparseTable) -> Floats:
    """The mean vote of each comment and its coordinates among the main directions of votes about it."""
    given = np.bincount(votes.columns, minlength=votes.shape[1])
    mean = np.bincount(votes.columns, votes.values, minlength=votes.shape[1]) / (given + PSEUDO_VOTES)
    about = np.zeros(votes.shape)
    about[votes.rows, votes.columns] = votes.values - mean[votes.columns]
    _, sizes, directions = np.linalg.svd(about, full_matrices=False)
    kept = directions[:DIRECTIONS] * sizes[:DIRECTIONS, None] / votes.shape[0] ** 0.5
    return np.column_stack([mean, kept.T])


def agreement(folder: Path) -> tuple[int, float, float, int]:
    """Participants, the index with two segments and with as many as are chosen, and how many these are."""
    table = load_payoffs("polis", folder, setting="rated", vectors="text", dim=DIRECTIONS)
    votes, groups = table.payoffs, table.groups
    if groups is None:
        raise SystemExit(f"{folder.name} has no groups")
    vectors = vectors_of(votes)
    order = stream(0, "votes").permutation(len(votes))
    policy = coterie.HierUCB(table.n_users, vectors.shape[1])
    policy.update_many(votes.rows[order], vectors[votes.columns[order]], votes.values[order])
    two, chosen, known = policy.segments(2), policy.segments(), groups >= 0
    first, second = (adjusted_rand(found.labels[known], groups[known]) for found in (two, chosen))
    return table.n_users, first, second, len(chosen.sizes)


def seconds_of_a_million() -> float:
    """Processor time of the division of a million users in six groups."""
    rng = stream(0, "million")
    labels = rng.integers(6, size=USERS)
    estimates = rng.normal(size=(6, DIM + 1))[labels] + 0.5 * rng.normal(size=(USERS, DIM + 1))
    began = process_time()
    divide(Known(estimates, np.eye(DIM + 1), rng.poisson(3.0, USERS)), None, None)
    return process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.segments",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of Polis's open data")
    place = parser.parse_args().data
    found = {name: agreement(place / name) for name in CONVERSATIONS}
    Table(
        "Segments beside the groups of Polis: Rand index adjusted for chance",
        ("conversation", "participants", "k = 2", "k chosen", "k"),
        [
            (name, f"{n:,}", f"{two:.2f}", f"{chosen:.2f}", str(k))
            for name, (n, two, chosen, k) in found.items()
        ],
    ).show()
    two, chosen = np.mean([row[1] for row in found.values()]), np.mean([row[2] for row in found.values()])
    Table(
        "Wanted",
        ("", "found", "wanted", ""),
        [
            ("mean, k = 2", *at_least(float(two), 0.6)),
            ("mean, k chosen", *at_least(float(chosen), 0.5)),
            ("a million users, seconds", *at_most(seconds_of_a_million(), 10.0)),
        ],
    ).show()


if __name__ == "__main__":
    main()
