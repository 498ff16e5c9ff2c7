"""`coterie bench`: microseconds a round of every policy, beside a BLAS operation timed in the same minute."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from coterie.cli.options import Json, complete_policy, examples, import_from_here, whole_number
from coterie.cli.output import console, one_blas_thread, print_table, write_json

if TYPE_CHECKING:
    from coterie.experiments.specs import EnvironmentSpec

JOINT_SHARE = 20
"""Policies that take a graph update a (ud)×(ud) matrix: they play this many times fewer rounds."""

EPILOG = examples(
    ("every policy", "coterie bench"),
    ("two of them, quickly", "coterie bench CLUB SCLUB --rounds 5000"),
    ("for a program", "coterie bench --json"),
)


class PolicySpeed(NamedTuple):
    """The speed of a policy, and the BLAS operation that it is compared with."""

    policy: str
    microseconds: float
    yardstick: float
    yardstick_name: str
    rounds: int


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Policies; all by default.", metavar="POLICY", autocompletion=complete_policy),
    ] = None,
    rounds: Annotated[int, typer.Option(parser=whole_number, metavar="N", help="Number of rounds.")] = 20_000,
    repeats: Annotated[int, typer.Option(help="Repetitions, of which the fastest counts.", min=1)] = 3,
    as_json: Json = False,
) -> None:
    """Time a round of each policy against plain BLAS.

    The environment has 50 users in 10 clusters, 100 of 5,000 arms in each round, and 50 dimensions. The
    time of a round is compared with that of the product X·M⁻¹ (100×50 by 50×50), which gives the widths
    of all arms; policies that compute only some of them can be faster. Policies that take a graph play
    with 20 users and 20 arms, and are compared with a rank-one update of a 1,000 × 1,000 matrix.
    Everything runs on one thread, and drawing the rounds is not counted.
    """
    one_blas_thread()
    import_from_here()
    from coterie.experiments.specs import EnvironmentSpec
    from coterie.policies.factories import find_factory
    from coterie.policies.registry import REGISTRY

    makers = [find_factory(name) for name in names or REGISTRY]
    worlds = {False: EnvironmentSpec(), True: EnvironmentSpec(n_users=20, n_clusters=4, n_arms=20)}
    yardsticks = {False: ("X·M⁻¹", best(_product(), 300)), True: ("rank-one update", best(_rank_one(), 200))}
    speeds = []
    for maker in makers:
        joint = "graph" in maker.arguments
        played = max(256, rounds // JOINT_SHARE) if joint else rounds
        spent = microseconds_a_round(maker.name, worlds[joint], played, repeats)
        speeds.append(PolicySpeed(maker.name, spent, *yardsticks[joint][::-1], played))
    if as_json:
        write_json([{**p._asdict(), "ratio": p.microseconds / p.yardstick} for p in speeds])
    else:
        _show(speeds)


def best(work: Callable[[], object], repeats: int) -> float:
    """Microseconds of the fastest of several calls."""
    from time import perf_counter

    least = float("inf")
    for _ in range(repeats):
        began = perf_counter()
        work()
        least = min(least, perf_counter() - began)
    return 1e6 * least


def microseconds_a_round(policy: str, environment: EnvironmentSpec, rounds: int, repeats: int) -> float:
    """Microseconds a round of a policy with its usual parameters, the best of several."""
    from coterie.experiments.runner import DataFiles
    from coterie.experiments.tuning import usual_spec
    from coterie.simulation import simulate

    spec = usual_spec(policy, environment)
    world = environment.make(DataFiles().dataset(environment), 1)
    traces = (simulate(spec.make(world, 0), world, rounds, record=1) for _ in range(repeats))
    return min(1e6 * trace.seconds / rounds for trace in traces)


def _product() -> Callable[[], object]:
    import numpy as np

    arms, inverse, out = np.ones((100, 50)), np.eye(50), np.empty((100, 50))
    return lambda: np.dot(arms, inverse, out=out)


def _rank_one() -> Callable[[], object]:
    import numpy as np
    from scipy.linalg.blas import dger

    matrix, x = np.asfortranarray(np.eye(1000)), np.full(1000, 1e-3)
    return lambda: dger(-1e-6, x, x, a=matrix, overwrite_a=1)


def _show(speeds: list[PolicySpeed]) -> None:
    rows = [
        (
            p.policy,
            f"{p.microseconds:,.1f}",
            f"{p.yardstick:,.1f}",
            p.yardstick_name,
            f"{p.microseconds / p.yardstick:.2f}",
            f"{p.rounds:,}",
        )
        for p in speeds
    ]
    columns = ("policy", "µs a round", "BLAS µs", "operation", "ratio", "rounds")
    print_table(columns, rows, left=("operation",), optional=("rounds", "operation"))
    console().print("[dim]One thread; compare ratios between machines, not microseconds.[/dim]")
