"""Orders of sushi, read beside a naive reading of the same file, and duels with their answers."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import coterie
from coterie.datasets import load, load_payoffs
from coterie.environments import PayoffDuel, Payoffs
from coterie.simulation import simulate
from coterie.types import Floats
from datasets import generated

ORDERS = generated.sushi_orders()
PEOPLE = [order for count, order in ORDERS for _ in range(count)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return generated.write(tmp_path / "sushi" / "00014-00000001.soc", generated.soc(ORDERS))


def test_the_payoff_is_the_place_in_the_order(path: Path) -> None:
    table = load_payoffs("sushi", path.parent.parent, dim=4)
    assert table.n_users == len(PEOPLE) - len(PEOPLE) // 2
    assert table.item_ids.tolist() == [1, 2, 3, 4, 5, 6]
    for row, person in enumerate(table.user_ids.tolist()):
        expected = [1 - PEOPLE[person].index(item) / 5 for item in range(1, 7)]
        np.testing.assert_allclose(table.payoffs.dense()[row], expected)
    data = load("sushi", path, dim=3, n_users=len(PEOPLE))
    assert data.provenance.rows == 6 * len(PEOPLE)
    assert data.provenance.density == 0.5


class Asking:
    """A policy that asks about pairs in turn, and takes down the answers."""

    def __init__(self, items: Floats) -> None:
        self.items, self.answers, self.asked = items, set[tuple[int, int, int]](), 0

    def recommend_pair(self, user: int, arms: Floats) -> tuple[int, int]:
        self.asked += 1
        return self.asked % len(arms), (self.asked // 3) % len(arms)

    def update_pair(self, user: int, winner: Floats, loser: Floats) -> None:
        one, two = (int(np.flatnonzero((self.items == x).all(axis=1))[0]) for x in (winner, loser))
        self.answers.add((user, one, two))


def test_every_duel_has_the_answer_of_the_order(path: Path) -> None:
    table = load_payoffs("sushi", path, dim=4)
    world = PayoffDuel(Payoffs(table, n_arms=4, seed=2))
    policy = Asking(table.items)
    trace = simulate(policy, world, 1500)
    decided = {(user, one, two) for user, one, two in policy.answers if one != two}
    assert len(decided) > 200
    for user, one, two in decided:
        order = PEOPLE[int(table.user_ids[world.members[user]])]
        assert order.index(int(table.item_ids[one])) < order.index(int(table.item_ids[two]))
    assert all(a <= b for a, b in pairwise(trace.regret.tolist()))


def test_policies_of_pairs_learn_from_true_answers(path: Path) -> None:
    world = PayoffDuel(Payoffs(load_payoffs("sushi", path, dim=4), n_arms=4, seed=2))
    policy = coterie.LinUCBInd(world.n_users, world.dim, beta=0.3)
    assert simulate(policy, world, 3000).relative[-1] > 1.2


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("2: 1,2,{3,4},5,6", "line 2 of 00014-00000001.soc: expected a strict order such as"),
        ("1,2,3", "line 2 of 00014-00000001.soc: expected a strict order such as"),
        ("1: 2,2,3", "line 2 of 00014-00000001.soc: an order must have two different items or more"),
    ],
)
def test_broken_orders_get_a_sentence(tmp_path: Path, line: str, says: str) -> None:
    path = generated.write(tmp_path / "00014-00000001.soc", f"# DATA TYPE: soc\n{line}\n")
    with pytest.raises(coterie.DataError, match=says):
        load_payoffs("sushi", path)


def test_what_has_no_answers_is_refused(path: Path) -> None:
    table = load_payoffs("sushi", path, dim=4)
    with pytest.raises(coterie.ArgumentError, match="base must be Payoffs that may show items again"):
        PayoffDuel(Payoffs(table, n_arms=4, once=True))
    empty = path.parent / "empty"
    empty.mkdir()
    with pytest.raises(coterie.MissingData, match="no sushi file in"):
        load_payoffs("sushi", empty)
