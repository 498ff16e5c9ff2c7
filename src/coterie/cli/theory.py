"""`coterie theory`: the paper's constants and regret bounds, in numbers."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.options import Json, examples, whole_number
from coterie.cli.output import print_line, print_table, write_json

if TYPE_CHECKING:
    from coterie.theory import Bound, Setup

PULLS = (10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
EPILOG = examples(
    ("the size of the paper's experiments", "coterie theory"),
    (
        "few users, a wide gap, a long horizon",
        "coterie theory --users 5 --dim 2 --gamma 1.5 --horizon 100000000",
    ),
    ("T0 alone, for a script", "coterie theory --gamma 0.3 --json | jq .t0"),
)


def theory(
    users: Annotated[int, typer.Option(parser=whole_number, metavar="N", help="Users u.")] = 50,
    dim: Annotated[int, typer.Option(parser=whole_number, metavar="N", help="Dimension d.")] = 50,
    clusters: Annotated[int, typer.Option(parser=whole_number, metavar="N", help="Clusters m.")] = 10,
    arms: Annotated[int, typer.Option(parser=whole_number, metavar="N", help="Arms K a round.")] = 100,
    horizon: Annotated[int, typer.Option(parser=whole_number, metavar="N", help="Rounds T.")] = 100_000,
    gamma: Annotated[float, typer.Option(help="Least gap γ between clusters.")] = 0.5,
    lambda_x: Annotated[
        float | None, typer.Option(help="Least eigenvalue λ_x of E[XXᵀ]; at most 1/d (0.85/d).")
    ] = None,
    ridge: Annotated[float, typer.Option(help="Ridge λ.")] = 1.0,
    sigma: Annotated[float, typer.Option(help="Smoothing noise σ (SACLUB, SASCLUB).")] = 0.316,
    truncation: Annotated[float, typer.Option(help="Its bound R in each coordinate.")] = 1.0,
    as_json: Json = False,
) -> None:
    """Compute the paper's constants and regret bounds.

    Lengths of exploration, the factor β, the radius f and the bounds of Theorems 1 to 4, with a sentence on
    whether such constants can be used in practice.
    """
    from coterie.errors import ArgumentError
    from coterie.theory import Setup

    if dim < 1:
        raise ArgumentError(f"dim must be at least 1, got {dim}")
    setup = Setup(
        n_users=users,
        dim=dim,
        n_clusters=clusters,
        n_arms=arms,
        horizon=horizon,
        gamma=gamma,
        lambda_x=0.85 / dim if lambda_x is None else lambda_x,
        ridge=ridge,
        sigma=sigma,
        truncation=truncation,
    )
    write_json(numbers(setup)) if as_json else _show(setup)


def numbers(setup: Setup) -> dict[str, Any]:
    """Everything the command shows, by name."""
    from coterie.theory import beta, t0, t_init, t_phase, table_1

    u, d, delta = setup.n_users, setup.dim, setup.delta
    shape = {"lambda_x": setup.lambda_x, "delta": delta}
    return {
        "setup": asdict(setup),
        "beta": beta(setup.horizon, d, ridge=setup.ridge, delta=delta, norm=setup.norm),
        "t0": t0(u, d, gamma=setup.gamma, norm=setup.norm, **shape),
        "t_init": t_init(u, d, norm=setup.norm, **shape),
        "t_phase": t_phase(0, n_users=u, dim=d, **shape),
        "radius": {str(pulls): setup.radius(pulls) for pulls in PULLS},
        "pulls_to_separate": setup.pulls_to_separate(),
        "bounds": [
            {**bound._asdict(), "total": bound.total, "vacuous": bound.vacuous(setup.horizon)}
            for bound in bounds(setup)
        ],
        "table_1": [{**row._asdict(), "bounds": [b.total for b in row.bounds]} for row in table_1(setup)],
        "why": why(setup),
    }


def bounds(setup: Setup) -> list[Bound]:
    """The explicit bounds of Theorems 1 to 4."""
    from coterie import theory as paper

    theorems = (paper.theorem_1, paper.theorem_2, paper.theorem_3, paper.theorem_4, paper.theorem_4_sets)
    return [theorem(setup) for theorem in theorems]


def why(setup: Setup) -> str:
    """One sentence on whether these constants can be used."""
    from coterie.theory import t0

    length = t0(
        setup.n_users,
        setup.dim,
        gamma=setup.gamma,
        lambda_x=setup.lambda_x,
        delta=setup.delta,
        norm=setup.norm,
    )
    share, each = length / setup.horizon, setup.horizon / setup.n_users
    pulls = setup.pulls_to_separate()
    if share < 1 and pulls < each:
        return (
            f"These constants can be used: UniCLUB explores for {share:.0%} of the horizon, and two clusters "
            f"can be separated after {pulls:,.0f} of the {each:,.0f} pulls of each user."
        )
    return (
        f"These constants cannot be used: UniCLUB would play uniformly for {length:.2g} rounds, "
        f"{share:,.2g} times the horizon, and two clusters are separated only after {pulls:,.2g} pulls of "
        f"each user, who gets {each:,.0f}; set the constants by hand, from α ≈ 15σ and β ≈ σ."
    )


def _show(setup: Setup) -> None:
    found = numbers(setup)
    print_line(
        f"u = {setup.n_users:,}, d = {setup.dim}, m = {setup.n_clusters}, K = {setup.n_arms}, "
        f"T = {setup.horizon:,}, γ = {setup.gamma:g}, λ_x = {setup.lambda_x:g}, λ = {setup.ridge:g}, δ = 1/T"
    )
    _show_lengths(setup, found)
    _show_radii(setup)
    _show_bounds(setup)
    _show_table_1(setup)
    print_line(f"[bold]{found['why']}[/bold]")


def _show_lengths(setup: Setup, found: dict[str, Any]) -> None:
    lengths = (
        ("T0", found["t0"], "uniform rounds of UniCLUB"),
        ("2·T0", 2 * found["t0"], "uniform rounds of UniSCLUB"),
        ("T_init", found["t_init"], "first uniform rounds of PhaseUniCLUB"),
        ("T⁽⁰⁾", found["t_phase"], "uniform rounds of its phase 0; each phase has twice as many"),
    )
    rows = [("β", f"{found['beta']:.3g}", "", "factor of the bonus; 0.1 to 2 is usual in practice")]
    rows += [
        (name, f"{value:.3g}", f"{value / setup.horizon:,.3g}", meaning) for name, value, meaning in lengths
    ]
    columns = ("constant", "value", "× horizon", "meaning")
    print_table(columns, rows, title="Constants of the theory", prose=("meaning",))


def _show_radii(setup: Setup) -> None:
    radii = [setup.radius(pulls) for pulls in PULLS]
    rows = [
        ("f", *(f"{f:.3g}" for f in radii)),
        ("2f < γ: clusters can be separated", *("yes" if 2 * f < setup.gamma else "no" for f in radii)),
    ]
    columns = ("pulls of a user", *(f"{pulls:,}" for pulls in PULLS))
    print_table(columns, rows, title="Radius f of a user's estimate")


def _show_bounds(setup: Setup) -> None:
    rows = [
        (
            bound.algorithm,
            *(
                f"{part:.2g}"
                for part in (bound.exploration, bound.misclustering, bound.learning, bound.total)
            ),
            "no" if bound.vacuous(setup.horizon) else "yes",
        )
        for bound in bounds(setup)
    ]
    columns = ("policy", "exploration", "misclustering", "learning", "total", "says more than 2T?")
    print_table(columns, rows, title="Regret bounds of Theorems 1 to 4")


def _show_table_1(setup: Setup) -> None:
    from coterie.theory import table_1

    rows = [
        (
            ", ".join(row.algorithms),
            row.contexts,
            f"Õ({row.formula})",
            f"{row.clustering:.2g}",
            row.constants,
        )
        for row in table_1(setup)
    ]
    columns = ("policies", "contexts", "clustering regret", "in numbers", "constants")
    left = ("contexts", "clustering regret", "constants")
    print_table(columns, rows, title="Table 1 of the paper", left=left, prose=("policies", "contexts"))
