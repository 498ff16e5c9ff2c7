"""A recommender on a file, through restarts and crashes, against a naive model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from coterie import CoterieError, Recommender
from inspection import abandon, engine_of, live_of, never_keep_house, pass_time, take_snapshot
from service.model import NaiveRecommender, Refused
from service.shops import ITEMS, shop

USERS = st.sampled_from(["alice", "bob", "<script>", "𝕏"])
DECISIONS = st.sampled_from([f"d{n}" for n in range(4)])
REWARDS = st.sampled_from([0.0, 1.0, -0.5])
SOME = st.lists(st.sampled_from([*ITEMS, "milk"]), min_size=1, max_size=3, unique=True)


class Serving(RuleBasedStateMachine):
    """Whatever the requests and their order, both give the same answers and know the same."""

    @initialize(late=st.sampled_from(["accept", "correct", "ignore"]))
    def start(self, late: str) -> None:
        self.folder = TemporaryDirectory()
        self.patch = pytest.MonkeyPatch()  # time passes and expires when the rules say so, and only then
        never_keep_house(self.patch)
        self.path = Path(self.folder.name, "store.db")
        self.model = NaiveRecommender(ITEMS, wait=1000.0, default=0.25, late=late)
        self.real = shop(store=self.path, reward_wait=1000.0, default_reward=0.25, late=late)

    def both(self, real: Callable[[], Any], model: Callable[[], Any]) -> None:
        """The same answer, or the same kind of refusal."""
        try:
            expected = model()
        except Refused as refused:
            expected = str(refused)
        try:
            found = real()
        except CoterieError as error:
            found = type(error).__name__
        assert found == expected

    @rule(user=USERS, items=SOME, decision=DECISIONS)
    def decide(self, user: str, items: list[str], decision: str) -> None:
        self.both(
            lambda: self.real.decide(user, items, decision_id=decision).chosen,
            lambda: self.model.decide(user, items, decision),
        )

    @rule(user=USERS, rewarded=st.booleans(), reward=REWARDS, seconds=st.sampled_from([0.0, 1500.0]))
    def visit(self, user: str, rewarded: bool, reward: float, seconds: float) -> None:
        """A decision of its own, perhaps its reward, perhaps late."""
        self.visits = getattr(self, "visits", 0) + 1
        self.decide(user, list(ITEMS), f"v{self.visits}")
        self.time_passes(seconds, False)
        if rewarded:
            self.reward(f"v{self.visits}", reward)

    @rule(decision=DECISIONS, reward=REWARDS)
    def reward(self, decision: str, reward: float) -> None:
        self.both(
            lambda: self.real.reward(decision, reward).status, lambda: self.model.reward(decision, reward)
        )

    @rule(user=USERS)
    def remove(self, user: str) -> None:
        self.both(lambda: self.real.remove_user(user), lambda: self.model.remove(user))

    @rule(seconds=st.sampled_from([10.0, 600.0, 1500.0]), all_of_them=st.booleans())
    def time_passes(self, seconds: float, all_of_them: bool) -> None:
        pass_time(self.real, seconds)
        self.model.time += seconds
        if all_of_them:
            self.real.expire()
            self.model.expire()

    @rule(item=st.sampled_from(list(ITEMS)), x=st.sampled_from([[0.0, 0.0], [0.3, -0.4]]))
    def item_changes(self, item: str, x: list[float]) -> None:
        self.real.put_items({item: x})
        self.model.items[item] = x

    @rule(crash=st.booleans(), snapshot=st.booleans())
    def restart(self, crash: bool, snapshot: bool) -> None:
        if snapshot:
            take_snapshot(self.real)
        now = engine_of(self.real).journal.now()
        abandon(self.real) if crash else self.real.close()
        self.real = Recommender(store=self.path)
        pass_time(self.real, now - engine_of(self.real).journal.now())

    @invariant()
    def both_know_the_same(self) -> None:
        if not hasattr(self, "real"):
            return
        policy, users = self.model.taught()
        assert self.real.users == tuple(users)
        assert set(live_of(self.real).state.waiting) == set(self.model.waiting)
        assert self.real.policy.estimates.tolist() == policy.estimates.tolist()
        assert self.real.policy.pulls.tolist() == policy.pulls.tolist()

    def teardown(self) -> None:
        if hasattr(self, "real"):
            self.real.close()
            self.patch.undo()
            self.folder.cleanup()


TestServing = Serving.TestCase
TestServing.settings = settings(max_examples=50, stateful_step_count=30, deadline=None, print_blob=True)
