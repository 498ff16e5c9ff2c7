"""Table 1 of the paper with the numbers of each dataset's world filled in."""

from __future__ import annotations

from coterie.experiments.plan import Plan, Spot
from coterie.experiments.results import NAMES
from coterie.experiments.shelf import Shelf
from coterie.experiments.tables import Table
from coterie.theory import Row, Setup, table_1

HEADING = (
    "algorithms",
    "contexts",
    "assumption",
    "clustering regret",
    "in numbers",
    "constants",
    "full bound",
)


def tables(plan: Plan, shelf: Shelf) -> list[Table]:
    """A table for each dataset: γ and λ_x are those of the world of the first seed."""
    return [_table(spot, plan, shelf) for spot in plan.spots()]


def setup(spot: Spot, plan: Plan, shelf: Shelf) -> Setup:
    """The theorems' view of a world."""
    environment = spot.environment
    world = environment.make(shelf.dataset(environment), plan.seeds[0])
    return Setup(
        n_users=environment.n_users,
        dim=world.dim,
        n_clusters=environment.n_clusters,
        n_arms=environment.n_arms,
        horizon=spot.horizon,
        gamma=world.gamma,
        lambda_x=world.lambda_x,
        sigma=environment.sigma,
        truncation=environment.truncation,
    )


def _table(spot: Spot, plan: Plan, shelf: Shelf) -> Table:
    numbers, name = setup(spot, plan, shelf), spot.environment.dataset
    title = (
        f"{NAMES.get(name, name)}: u = {numbers.n_users}, d = {numbers.dim}, "
        f"m = {numbers.n_clusters}, K = {numbers.n_arms}, T = {numbers.horizon:,}, "
        f"γ = {numbers.gamma:.3g}, λ_x = {numbers.lambda_x:.3g}"
    )
    return Table(title, HEADING, tuple(_line(row) for row in table_1(numbers)))


def _line(row: Row) -> tuple[str, ...]:
    return (
        ", ".join(row.algorithms),
        row.contexts,
        row.assumption,
        f"Õ({row.formula})",
        f"{row.clustering:.2g}",
        row.constants,
        ", ".join(f"{bound.total:.2g}" for bound in row.bounds) or "–",
    )
