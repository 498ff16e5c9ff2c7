"""Environments in which an item is shown to a user once, beside a naive loop in Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import coterie
from coterie.datasets import PayoffTable, payoff_table
from coterie.datasets.payoff_table import SparseTable
from coterie.environments import Block, Cascade, Payoffs, Stream
from coterie.environments.blocks import BLOCK
from coterie.simulation import simulate
from coterie.types import Floats, Ints

N_USERS, N_ITEMS, DIM, ROUNDS = 12, 30, 4, 700


def table(*, groups: bool = False, events: bool = False) -> PayoffTable:
    """Everyone knows 6 to 24 of the 30 items; with `events`, each known item is met once or twice."""
    rng = np.random.default_rng(5)
    items = rng.normal(size=(N_ITEMS, DIM))
    known = [rng.permutation(N_ITEMS)[: 6 + int(rng.integers(19))] for _ in range(N_USERS)]
    users = np.repeat(np.arange(N_USERS), [len(one) for one in known])
    payoffs = SparseTable(users, np.concatenate(known), rng.random(len(users)), (N_USERS, N_ITEMS))
    made = payoff_table(np.zeros((N_USERS, N_ITEMS)), items)._replace(payoffs=payoffs)
    if groups:
        made = made._replace(groups=np.arange(N_USERS) % 3)
    if events:
        met = np.column_stack([payoffs.rows, payoffs.columns])
        made = made._replace(events=rng.permutation(np.concatenate([met, met[::3]])))
    return made


class Round(NamedTuple):
    """What happened in a round; the item is -1 if the round was skipped."""

    user: int
    arms: tuple[int, ...]
    item: int


class Played(NamedTuple):
    rounds: list[Round]
    regret: Floats
    reward: Floats
    uniform: Floats


def naive(policy: Any, world: Payoffs | Stream, horizon: int) -> Played:
    """The rounds one by one: the first arms of each round that the user has not been shown."""
    shown: dict[int, set[int]] = defaultdict(set)
    rounds, sums = [], np.zeros((horizon, 3))
    for t in range(horizon):
        block, k = world.block(t // BLOCK), t % BLOCK
        if k == 0 and hasattr(policy, "add_users") and policy.n_users < world.present(t // BLOCK):
            policy.add_users(world.present(t // BLOCK) - policy.n_users)
        user, values = int(block.users[k]), dict(zip(block.picks[k].tolist(), block.means[k], strict=True))
        left = [item for item in block.picks[k].tolist() if item >= 0 and item not in shown[user]]
        arms = left[: world.n_arms]
        if not arms:
            rounds.append(Round(user, (), -1))
            continue
        item = arms[policy.recommend(user, block.items[arms])]
        policy.update(user, block.items[item], values[item])
        shown[user].add(item)
        best = max(values[arm] for arm in arms)
        first = [values[arm] for arm in block.picks[k].tolist() if arm >= 0][: world.n_arms]
        sums[t] = best - values[item], values[item], sum(first) / len(first)
        rounds.append(Round(user, tuple(arms), item))
    return Played(rounds, *np.cumsum(sums, axis=0).T)


class Own:
    """Somebody's policy, which prefers the largest first coordinate, and takes down what it is shown."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int, Floats]] = []
        self.told = 0

    def recommend(self, user: int, arms: Floats) -> int:
        chosen = int(arms[:, 0].argmax())
        self.seen.append((user, len(arms), arms[chosen]))
        return chosen

    def update(self, user: int, x: Floats, reward: float) -> None:
        self.told += 1


class Uniform(Own):
    """Decides at random."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.rng = np.random.default_rng(seed)

    def recommend(self, user: int, arms: Floats) -> int:
        return int(self.rng.integers(len(arms)))


WORLDS: dict[str, Callable[[], Payoffs | Stream]] = {
    "known": lambda: Payoffs(table(), n_arms=5, seed=1, offers="known", once=True),
    "all": lambda: Payoffs(table(), n_arms=7, seed=2, offers="all", once=True),
    "window": lambda: Payoffs(table(), n_arms=6, seed=3, offers="window", window=600, once=True),
    "stream": lambda: Stream(table(events=True), n_arms=4, seed=4, once=True),
}
POLICIES: dict[str, Callable[[int], Any]] = {
    "LinUCBInd": lambda n: coterie.LinUCBInd(n, DIM, beta=0.3),
    "LinUCBOne": lambda n: coterie.LinUCBOne(n, DIM, beta=0.3),
    "LinTSOne": lambda n: coterie.LinTSOne(n, DIM, seed=3),
    "CLUB": lambda n: coterie.CLUB(n, DIM, alpha=1.5, beta=0.1, seed=3),
    "UniSCLUB": lambda n: coterie.UniSCLUB(n, DIM, alpha=1.5, beta=0.1, explore=50, seed=3),
    "HierUCB": lambda n: coterie.HierUCB(n, DIM),
    "AutoCLUB": lambda n: coterie.AutoCLUB(n, DIM, seed=3),
    "own": lambda n: Own(),
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", WORLDS)
def test_every_round_is_that_of_the_naive_loop(kind: str, policy: str) -> None:
    world = WORLDS[kind]()
    horizon = min(ROUNDS, getattr(world, "n_rounds", None) or ROUNDS)
    trace = simulate(POLICIES[policy](world.present(0)), world, horizon, record=horizon)
    expected = naive(POLICIES[policy](world.present(0)), WORLDS[kind](), horizon)
    np.testing.assert_allclose(trace.regret, expected.regret, atol=1e-9)
    np.testing.assert_allclose(trace.reward, expected.reward, atol=1e-9)
    np.testing.assert_allclose(trace.uniform, expected.uniform, atol=1e-9)


@pytest.mark.parametrize("kind", ["known", "all"])
def test_nothing_is_shown_twice_and_arms_lack_only_when_items_do(kind: str) -> None:
    world = WORLDS[kind]()
    played = naive(Own(), world, ROUNDS)
    known = world.table.payoffs.counts[world.members] if kind == "known" else np.full(N_USERS, N_ITEMS)
    visits: dict[int, int] = defaultdict(int)
    skipped = 0
    for one in played.rounds:
        left = max(0, int(known[one.user]) - visits[one.user])
        assert len(one.arms) == min(world.n_arms, left)  # the same for every policy
        visits[one.user] += 1
        skipped += not one.arms
    pairs = [(one.user, one.item) for one in played.rounds if one.arms]
    assert len(set(pairs)) == len(pairs)
    assert skipped > 20


def test_uniform_play_earns_what_the_trace_says() -> None:
    """The expected reward of uniform play is estimated without knowing what was shown, without a bias."""
    earned, said = [], []
    for seed in range(40):
        world = Payoffs(table(), n_arms=5, seed=seed, offers="known", once=True)
        trace = simulate(Uniform(seed), world, 120)
        earned.append(trace.reward[-1])
        said.append(trace.uniform[-1])
        greedy = simulate(coterie.LinUCBOne(N_USERS, DIM, beta=0.1), world, 120)
        assert greedy.uniform[-1] == trace.uniform[-1]  # the same whoever plays
    assert abs(np.mean(earned) - np.mean(said)) < 3 * np.std(np.subtract(earned, said)) / np.sqrt(40)


def test_a_round_with_nothing_left_is_skipped() -> None:
    world = Payoffs(table(), n_arms=5, seed=1, offers="known", once=True)
    policy, total = Own(), len(world.table.payoffs)
    trace = simulate(policy, world, 3000, record=3000)
    assert policy.told == len(policy.seen) == total  # everybody has been shown everything they know
    assert trace.reward[-1] == pytest.approx(world.table.payoffs.values.sum())
    assert trace.rounds[-1] == 3000
    assert trace.regret[-1] == trace.regret[-200]
    assert {(user, tuple(x)) for user, _, x in policy.seen} == {
        (user, tuple(world.table.items[item]))
        for user, row in enumerate(world.members)
        for item in world.table.payoffs.columns[world.table.payoffs.rows == row]
    }


def test_rounds_do_not_depend_on_the_order_in_which_blocks_are_asked_for() -> None:
    one, two = WORLDS["known"](), WORLDS["known"]()
    later = one.block(4)
    for number in range(5):
        mine, same = one.block(number), two.block(number)
        np.testing.assert_array_equal(mine.picks, same.picks)
        np.testing.assert_array_equal(mine.means, same.means)
    np.testing.assert_array_equal(later.picks, two.block(4).picks)
    assert later.unseen == 5
    repeated = Payoffs(table(), n_arms=5, seed=1, offers="known")
    np.testing.assert_array_equal(repeated.block(4).users, later.users)
    assert repeated.block(4).unseen == 0


def test_a_stream_offers_the_item_of_the_event_and_others_that_were_not_shown() -> None:
    world = WORLDS["stream"]()
    assert isinstance(world, Stream)
    pairs = list(zip(world.users.tolist(), world.events.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)  # the second event of a pair is no round
    touched: dict[int, set[int]] = defaultdict(set)
    for user, item in pairs:
        touched[user].add(item)
    played = naive(Own(), world, len(pairs))
    visits: dict[int, int] = defaultdict(int)
    for (user, item), one in zip(pairs, played.rounds, strict=True):
        others = N_ITEMS - len(touched[user])
        assert item in one.arms
        assert not set(one.arms) & (touched[user] - {item})
        assert len(one.arms) >= min(world.n_arms, others + 1 - visits[user])
        visits[user] += 1
    assert np.all(played.uniform > 0)


class Late(Payoffs):
    """Rewards arrive two rounds later."""

    longest_delay = 2

    def block(self, number: int) -> Block:
        block = super().block(number)
        return block._replace(delays=np.full(len(block.users), 2))


def test_late_rewards_arrive_in_skipped_rounds_too() -> None:
    policy, world = Own(), Late(table(), n_arms=5, seed=1, offers="known", once=True)
    simulate(policy, world, 3000)
    assert policy.told == len(world.table.payoffs)


def test_groups_of_the_table_are_the_true_clusters() -> None:
    world = Payoffs(table(groups=True), n_arms=5, seed=1, offers="known", n_users=9, once=True)
    assert world.labels is not None
    assert world.labels.tolist() == (world.members % 3).tolist()

    class Told(Own):
        def labels(self) -> Ints:
            assert world.labels is not None
            return world.labels

    assert simulate(Told(), world, 100).ari[-1] == 1.0
    assert Payoffs(table(), n_arms=5).labels is None


def test_what_cannot_be_shown_once_is_refused() -> None:
    with pytest.raises(coterie.ArgumentError, match="once is for offers of 'all', 'known' or 'window'"):
        Payoffs(table(), n_arms=5, offers="one-positive", once=True)
    clicks = payoff_table(np.eye(4), np.eye(4))
    lists = Cascade(Payoffs(clicks, n_arms=3, once=True), length=2)
    with pytest.raises(coterie.ArgumentError, match="only if they are lasting and shown one at a time"):
        simulate(coterie.CascadeLinUCB(4, 4), lists, 10)

    class Changing(Payoffs):
        def block(self, number: int) -> Block:
            return super().block(number)._replace(lasting=False)

    with pytest.raises(coterie.ArgumentError, match="only if they are lasting"):
        simulate(Own(), Changing(table(), n_arms=5, once=True), 10)
