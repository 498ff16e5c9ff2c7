"""Clicks on Last.fm: AutoCLUB and hierarchical models, with nothing to tune, beside the best tuned policy.

    python -m benchmarks.clicks --data DIR

The protocol of Gentile et al. (2014) with vectors of length 1: of 25 artists the user has listened to one,
30,000 rounds. Of each policy with constants 24 points are tried on seeds 1000 and 1001, and the best plays
seeds 0 to 5.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import numpy as np

import coterie
from benchmarks.timing import Table, at_least
from coterie.environments import Payoffs
from coterie.experiments.specs import EnvironmentSpec, PolicySpec
from coterie.experiments.tuning import candidates
from coterie.progress import progress_bar

UNTUNED = ("AutoCLUB", "HierUCB", "HierTS")
TUNED = ("ItemUCB", "ItemTS", "LinUCBOne", "LinUCBInd", "CLUB", "SCLUB")
SPEC = EnvironmentSpec(setting="lastfm-2014", n_users=2000, n_arms=25, dim=25, noise=0.2)
ROUNDS, SEEDS, TRIALS = 30_000, range(6), (1000, 1001)


def clicks(table: coterie.datasets.PayoffTable, spec: PolicySpec, seed: int) -> float:
    """The clicks of one run."""
    world = Payoffs(table, n_arms=SPEC.n_arms, seed=seed)
    return float(coterie.simulate(spec.make(world, seed), world, ROUNDS, record=2).reward[-1])


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.clicks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder or archive of Last.fm's data")
    played = partial(
        clicks,
        coterie.datasets.load_payoffs(
            "lastfm", parser.parse_args().data, setting="lastfm-2014", dim=SPEC.dim, unit=True
        ),
    )
    grids = {name: candidates(name, SPEC) for name in TUNED}
    found: dict[str, list[float]] = {}
    with progress_bar(sum(map(len, grids.values())) + len(UNTUNED) + len(TUNED), "settings") as advance:
        for name in (*UNTUNED, *TUNED):
            tried = grids.get(name, [PolicySpec(name)])
            scores = [0.0] * len(tried)
            for k, spec in enumerate(tried if len(tried) > 1 else ()):
                scores[k] = sum(played(spec, seed) for seed in TRIALS)
                advance(1)
            found[name] = [played(tried[int(np.argmax(scores))], seed) for seed in SEEDS]
            advance(1)
    best = max(TUNED, key=lambda name: np.mean(found[name]))
    Table(
        f"Clicks on Last.fm, {ROUNDS:,} rounds, seeds {SEEDS[0]} to {SEEDS[-1]}",
        ("policy", "clicks", "error"),
        [
            (name, f"{np.mean(runs):,.0f}", f"{np.std(runs, ddof=1) / len(runs) ** 0.5:,.0f}")
            for name, runs in found.items()
        ],
    ).show()
    ratio = float(np.mean(found["AutoCLUB"]) / np.mean(found[best]))
    Table(
        "Beside the best tuned policy", ("", "found", "wanted", ""), [(best, *at_least(ratio, 1.35))]
    ).show()


if __name__ == "__main__":
    main()
