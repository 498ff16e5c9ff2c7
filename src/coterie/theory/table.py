"""Table 1 of the paper, evaluated for a given setup."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from coterie.theory.bounds import Bound, theorem_1, theorem_2, theorem_3, theorem_4, theorem_4_sets
from coterie.theory.setup import Setup

_HEADING = "| Algorithms | Contexts | Assumption | Clustering regret | in numbers | Constants | Full bound |"


class BoundRow(NamedTuple):
    """One row of Table 1.

    Parameters
    ----------
    algorithms : tuple of str
        Names of the algorithms.
    contexts : str
        "i.i.d." or "adversarial".
    assumption : str
        Assumptions on contexts and gap.
    formula : str
        Regret of clustering, inside its Õ(·).
    clustering : float
        Value of the formula, without constants and logarithms; inf if it exceeds the range of a float.
    constants : str
        Order of the eigenvalue that the formula divides by.
    eigenvalue : float
        Value used for it: λ_x or λ̃_x of the setup, or its order with constant 1.
    bounds : tuple of Bound
        Explicit bounds, one per algorithm; empty if the paper has none.

    Examples
    --------
    >>> setup = Setup(n_users=50, dim=5, n_clusters=10, n_arms=20, horizon=10**9, gamma=0.5, lambda_x=0.1)
    >>> table_1(setup)[2].formula
    'ud/(γ²λ_x)'
    """

    algorithms: tuple[str, ...]
    contexts: str
    assumption: str
    formula: str
    clustering: float
    constants: str
    eigenvalue: float
    bounds: tuple[Bound, ...]


def table_1(setup: Setup) -> tuple[BoundRow, ...]:
    """Compute Table 1 for a setup: assumptions and the regret of clustering   (Sec. 1).

    Parameters
    ----------
    setup : Setup
        The problem.

    Returns
    -------
    tuple of BoundRow
        One row per group of algorithms.

    Examples
    --------
    >>> setup = Setup(n_users=50, dim=5, n_clusters=10, n_arms=20, horizon=10**9, gamma=0.5, lambda_x=0.1)
    >>> for row in table_1(setup):
    ...     print(f"{row.algorithms[0]:12} {row.clustering:.2g}")
    CLUB         1.5e+04
    RCLUMB       1e+59
    UniCLUB      1e+04
    PhaseUniCLUB 8e+05
    SACLUB       3e+04
    """
    return _sub_gaussian(setup), _no_variance(setup), _gap_known(setup), _gap_unknown(setup), _smoothed(setup)


def markdown(rows: Iterable[BoundRow]) -> str:
    """Format rows as a Markdown table.

    Parameters
    ----------
    rows : iterable of BoundRow
        Rows, such as `table_1` returns.

    Returns
    -------
    str
        The table: two heading lines, then one line per row.

    Examples
    --------
    >>> markdown([]).splitlines()[1]
    '|---|---|---|---|---|---|---|'
    """
    return "\n".join([_HEADING, "|---" * 7 + "|", *(_line(row) for row in rows)])


def _line(row: BoundRow) -> str:
    """Format one row."""
    cells = (
        ", ".join(row.algorithms),
        row.contexts,
        row.assumption,
        f"Õ({row.formula})",
        f"{row.clustering:.2g}",
        row.constants,
        ", ".join(f"{bound.total:.2g}" for bound in row.bounds) or "–",
    )
    return f"| {' | '.join(cells)} |"


def _sub_gaussian(setup: Setup) -> BoundRow:
    """CLUB and similar algorithms, with the assumption on the variance."""
    return BoundRow(
        algorithms=("CLUB", "CLUB-cascade", "SCLUB", "FCLUB"),
        contexts="i.i.d.",
        assumption="λ_min(E[XXᵀ]) = λ_x; (zᵀX)² is σ²-sub-Gaussian; σ² ≤ λ_x²/(8 log(4K))",
        formula="u(d/(γ²λ_x) + 1/λ_x²)",
        clustering=_two_terms(setup, setup.lambda_x),
        constants="λ_x = O(1/d)",
        eigenvalue=setup.lambda_x,
        bounds=(),
    )


def _no_variance(setup: Setup) -> BoundRow:
    """Algorithms without the assumption on the variance."""
    eigenvalue = 1 / setup.dim ** (
        2 * setup.n_arms + 1
    )  # the divisor is an exact integer, so only the quotient can round to 0
    return BoundRow(
        algorithms=("RCLUMB", "RSCLUMB", "RCLUB-WCU", "FedC³UCB-H"),
        contexts="i.i.d.",
        assumption="λ_min(E[XXᵀ]) = λ_x; (zᵀX)² is σ²-sub-Gaussian",
        formula="u(d/(γ²λ̃_x) + 1/λ̃_x²)",
        clustering=_two_terms(setup, eigenvalue),
        constants="λ̃_x = O(1/d^(2K+1))",
        eigenvalue=eigenvalue,
        bounds=(),
    )


def _gap_known(setup: Setup) -> BoundRow:
    """UniCLUB and UniSCLUB."""
    return BoundRow(
        algorithms=("UniCLUB", "UniSCLUB"),
        contexts="i.i.d.",
        assumption="λ_min(E[XXᵀ]) = λ_x; γ, the least gap between clusters, is known",
        formula="ud/(γ²λ_x)",
        clustering=setup.n_users * setup.dim / (setup.gamma**2 * setup.lambda_x),
        constants="λ_x = O(1/d)",
        eigenvalue=setup.lambda_x,
        bounds=(theorem_1(setup), theorem_2(setup)),
    )


def _gap_unknown(setup: Setup) -> BoundRow:
    """PhaseUniCLUB."""
    return BoundRow(
        algorithms=("PhaseUniCLUB",),
        contexts="i.i.d.",
        assumption="λ_min(E[XXᵀ]) = λ_x",
        formula="ud/(γ⁵λ_x²)",
        clustering=setup.n_users * setup.dim / (setup.gamma**5 * setup.lambda_x**2),
        constants="λ_x = O(1/d)",
        eigenvalue=setup.lambda_x,
        bounds=(theorem_3(setup),),
    )


def _smoothed(setup: Setup) -> BoundRow:
    """SACLUB and SASCLUB."""
    eigenvalue = setup.smoothed().lambda_x
    return BoundRow(
        algorithms=("SACLUB", "SASCLUB"),
        contexts="adversarial",
        assumption="Gaussian noise perturbation",
        formula="ud/(γ²λ̃_x)",
        clustering=setup.n_users * setup.dim / (setup.gamma**2 * eigenvalue),
        constants="λ̃_x = O(1/log K)",
        eigenvalue=eigenvalue,
        bounds=(theorem_4(setup), theorem_4_sets(setup)),
    )


def _two_terms(setup: Setup, eigenvalue: float) -> float:
    """u(d/(γ²λ) + 1/λ²), or inf if λ² is below the smallest float."""
    if eigenvalue**2 == 0:
        return math.inf
    return setup.n_users * (setup.dim / (setup.gamma**2 * eigenvalue) + 1 / eigenvalue**2)
