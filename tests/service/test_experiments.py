"""Experiments: who is assigned to what, what is counted, what others learn, and what is proposed."""

from __future__ import annotations

import json
import multiprocessing
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from coterie import ArgumentError, Conflict, StoreError, UnknownName
from coterie.cli.commands import app
from coterie.service.client import Client
from coterie.service.core.engine import PolicyEngine
from coterie.service.core.experiments import Experiment
from coterie.service.settings import PolicySettings
from coterie.service.storage.location import open_store
from inspection import never_keep_house, pass_engine_time
from service.crash_child import CrashPoint, arm
from service.serving import served
from service.shops import ITEMS


def opened(where: Any = None, **options: Any) -> PolicyEngine:
    """An engine with two policies, unless the store has them."""
    engine = PolicyEngine(open_store(where))
    for name in ("now", "new"):
        if name not in engine.policies:
            chosen = PolicySettings(dim=2, policy="LinUCBInd", **{"reward_wait": 60, **options.get(name, {})})
            live = engine.settle(engine.create(name, chosen))
            engine.settle(live.change_items(ITEMS))
    return engine


@contextmanager
def begun(where: Any = None, *, learn: Any = "own", **options: Any) -> Iterator[PolicyEngine]:
    """An engine with an experiment."""
    engine = opened(where, **options)
    engine.experiments.create(Experiment(name="spring", shares={"now": 1.0, "new": 1.0}, learn=learn))
    yield engine
    engine.close()


def visit(engine: PolicyEngine, user: str, reward: float | None, **given: Any) -> str:
    """Decide for a user in the experiment, and give the reward; the policy that decided."""
    live, pending = engine.experiments.decide("spring", user)
    decision = engine.settle(pending)
    if reward is not None:
        found = engine.experiments.policy_that_made("spring", decision.id)
        assert found is live
        engine.settle(found.reward(decision.id, reward, **given))
    return live.name


def test_users_are_shared_by_a_hash_of_their_ids_for_good() -> None:
    one = Experiment(name="spring", shares={"now": 3, "new": 1})
    found = [one.policy_of(f"u{n}") for n in range(4_000)]
    assert 2_880 < Counter(found)["now"] < 3_120
    assert found == [one.policy_of(f"u{n}") for n in range(4_000)]
    other = [Experiment(name="autumn", shares=one.shares).policy_of(f"u{n}") for n in range(4_000)]
    both = Counter(zip(found, other, strict=True))
    assert 550 < both["now", "new"] < 950  # independent of the other experiment


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"name": "a b"}, "an experiment's name must be 1 to 64 letters"),
        ({"shares": {"now": 1.0}}, "needs 2 to 10 policies, got 1"),
        ({"shares": {"now": 1.0, "new": 0.0}}, "the share of 'new' must be above 0, got 0.0"),
        ({"learn": "some"}, "learn must be one of own, all, got 'some'"),
        ({"alpha": 0.6}, "alpha must be above 0 and at most 0.5, got 0.6"),
        ({"least_effect": 0.0}, "least_effect must be above 0, got 0.0"),
    ],
)
def test_an_experiment_that_makes_no_sense_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Experiment(**{"name": "spring", "shares": {"now": 1.0, "new": 1.0}, **wrong})


def test_names_policies_and_ends_that_contradict_are_refused() -> None:
    with begun() as engine:
        experiments = engine.experiments
        with pytest.raises(Conflict, match="there is, or was, an experiment 'spring'"):
            experiments.create(Experiment(name="spring", shares={"now": 1, "new": 1}))
        with pytest.raises(Conflict, match="policy 'now' takes part in experiment 'spring'"):
            experiments.create(Experiment(name="other", shares={"now": 1, "new": 1}))
        with pytest.raises(UnknownName, match="no policy 'newer'"):
            experiments.create(Experiment(name="other", shares={"now": 1, "newer": 1}))
        with pytest.raises(Conflict, match="takes part in experiment 'spring': stop that first"):
            engine.retire("now")
        with pytest.raises(ArgumentError, match=r"keep must be a policy of the experiment \(now, new\)"):
            experiments.stop("spring", "other")
        experiments.stop("spring", "new")
        assert experiments.stop("spring", "new").kept == "new"
        with pytest.raises(Conflict, match="has ended, and 'new' was kept"):
            experiments.stop("spring", "now")


def test_each_policy_learns_from_its_own_users_and_results_are_by_policy() -> None:
    with begun() as engine:
        seen = Counter[str]()
        for number in range(40):
            seen[visit(engine, f"u{number % 20}", 1.0 if number % 2 else 0.0)] += 1
        assert {name: live.state.policy.rounds for name, live in engine.policies.items()} == seen
        found = engine.experiments.result("spring")
        assert [one.decisions for one in found.arms] == [seen["now"], seen["new"]]
        assert sum(one.users for one in found.arms) == 20
        assert sum(one.decisions * (one.reward or 0) for one in found.arms) == pytest.approx(20)
        (day,) = found.days
        assert day.decisions == [seen["now"], seen["new"]]
        assert found.proposal == "go on: too little data for an interval"


def test_policies_may_learn_from_all_rewards_but_count_their_own() -> None:
    with begun(learn="all") as engine:
        seen = Counter(visit(engine, f"u{number % 10}", 1.0) for number in range(30))
        assert [live.state.policy.rounds for live in engine.policies.values()] == [30, 30]
        assert [one.decisions for one in engine.experiments.result("spring").arms] == [
            seen["now"],
            seen["new"],
        ]
        one, other = (live.state.policy for live in engine.policies.values())
        assert set(engine.policies["now"].state.users.ids) == set(engine.policies["new"].state.users.ids)
        assert one.estimates.sum() == pytest.approx(other.estimates.sum())
        with pytest.raises(ArgumentError, match="show one item at a time: k must be 1"):
            engine.experiments.decide("spring", "u1", k=2)


def test_the_product_of_today_is_a_policy_in_shadow_mode() -> None:
    with begun(now={"mode": "shadow"}, learn="all") as engine:
        shown = Counter[str]()
        for number in range(20):
            live, pending = engine.experiments.decide("spring", f"u{number}")
            decision = engine.settle(pending)
            given: Any = {"item": "cocoa"} if live.name == "now" else {}
            engine.settle(live.reward(decision.id, 1.0, **given))
            shown[live.name] += 1
        assert [live.state.policy.rounds for live in engine.policies.values()] == [20, 20]
        assert [one.mode for one in engine.experiments.result("spring").arms] == ["shadow", "online"]
        assert [one.decisions for one in engine.experiments.result("spring").arms] == [
            shown["now"],
            shown["new"],
        ]


def test_defaults_parts_and_late_rewards_count_as_the_export_has_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    never_keep_house(monkeypatch)
    with begun(now={"default_reward": 0.25}, new={"default_reward": 0.25}) as engine:
        made = []
        for number in range(4):
            live, pending = engine.experiments.decide("spring", f"u{number}")
            made.append((live, engine.settle(pending).id))
        for part, value in (("click", 0.1), ("purchase", 1.0)):
            engine.settle(made[0][0].reward(made[0][1], value, part=part))
        pass_engine_time(engine, 61)
        for live in engine.policies.values():
            engine.settle(live.expire())
        engine.settle(made[1][0].reward(made[1][1], 0.5))  # late
        engine.settle(made[0][0].reward(made[0][1], 0.4, part="again"))  # late, too
        arms = engine.experiments.result("spring").arms
        assert sum(one.decisions for one in arms) == 4
        assert sum(one.decisions * (one.reward or 0) for one in arms) == pytest.approx(1.5 + 0.5 + 0.25 * 2)


def test_after_the_end_one_policy_decides_and_repeats_get_their_first_answer() -> None:
    with begun() as engine:
        experiments = engine.experiments
        user = next(f"u{n}" for n in range(99) if experiments.find("spring").policy_of(f"u{n}") == "now")
        live, pending = experiments.decide("spring", user, decision_id="before")
        first = engine.settle(pending)
        experiments.stop("spring", "new")
        again, (second, _) = experiments.decide("spring", user, decision_id="before")
        assert (again, second) == (live, first)
        assert experiments.decide("spring", user, decision_id="after")[0].name == "new"
        found = experiments.result("spring")
        assert sum(one.users for one in found.arms) == 1  # what came after is not counted
        assert found.proposal == "ended: new decides for all users"


def test_an_id_means_one_decision_of_an_experiment() -> None:
    with begun() as engine:
        experiments = engine.experiments
        one, other = (
            next(f"u{n}" for n in range(99) if experiments.find("spring").policy_of(f"u{n}") == policy)
            for policy in ("now", "new")
        )
        first = engine.settle(experiments.decide("spring", one, decision_id="d")[1])
        assert experiments.decide("spring", one, decision_id="d")[1].result == first
        with pytest.raises(Conflict, match="decision_id 'd' was used for another request"):
            experiments.decide("spring", other, decision_id="d")
        assert [users.users for users in experiments.result("spring").arms] == [1, 0]


def test_results_stay_when_a_policy_is_retired_or_out_of_service(tmp_path: Path) -> None:
    with begun(str(tmp_path / "a.db")) as engine:
        for number in range(20):
            visit(engine, f"u{number}", 1.0)
        before = engine.experiments.result("spring")
        broken = engine.policies.pop("now")
        engine.quarantined["now"] = StoreError("its log cannot be read")
        shown = engine.experiments.result("spring")
        assert [one.mode for one in shown.arms] == ["out of service", "online"]
        assert shown.proposal == "go on when now can be used again: it is out of service"
        engine.policies["now"] = broken
        del engine.quarantined["now"]
        engine.experiments.stop("spring", "new")
        engine.settle(engine.retire("now"))
        visit(engine, "u1", None)
        found = engine.experiments.result("spring")
        assert [one.mode for one in found.arms] == ["retired", "online"]
        assert [one._replace(mode="") for one in found.arms] == [one._replace(mode="") for one in before.arms]
        assert found.days == before.days
        engine.close()
        again = PolicyEngine(open_store(str(tmp_path / "a.db")))
        assert again.experiments.result("spring") == found
        again.close()


def test_a_decision_counts_with_the_default_until_its_reward_comes() -> None:
    with begun() as engine:
        seen = Counter(visit(engine, f"u{number}", 1.0 if number < 5 else None) for number in range(20))
        arms = engine.experiments.result("spring").arms
        assert {one.policy: one.decisions for one in arms} == seen
        assert sum(one.decisions * (one.reward or 0) for one in arms) == pytest.approx(5)
    with begun(now={"default_reward": None}, new={"default_reward": None}) as engine:
        for number in range(20):
            visit(engine, f"u{number}", 3.0 if number < 5 else None)
        arms = engine.experiments.result("spring").arms
        assert sum(one.decisions for one in arms) == 5
        assert {one.reward for one in arms} == {3.0}


def test_a_policy_that_is_worse_does_not_keep_an_end_from_being_proposed() -> None:
    rng = np.random.default_rng(7)
    engine = opened()
    engine.settle(engine.create("bad", PolicySettings(dim=2, policy="LinUCBInd")))
    engine.settle(engine.find("bad").change_items(ITEMS))
    shares = {"now": 1.0, "new": 1.0, "bad": 1.0}
    engine.experiments.create(Experiment(name="spring", shares=shares, least_effect=0.2))
    for _ in range(2_000):
        user = f"u{rng.integers(600)}"
        bad = engine.experiments.find("spring").policy_of(user) == "bad"
        visit(engine, user, float(rng.random() < (0.1 if bad else 0.6)))
    found = engine.experiments.result("spring")
    engine.close()
    assert found.proposal == "stop and keep now: no other is better by 0.2 or more"


def simulated(rewards: dict[str, float], visits: int = 3_000, **fields: Any) -> Any:
    """The result of an experiment in which the policies' users click with these probabilities."""
    rng = np.random.default_rng(5)
    engine = opened()
    engine.experiments.create(Experiment(name="spring", shares={"now": 1.0, "new": 1.0}, **fields))
    for _ in range(visits):
        user = f"u{rng.integers(600)}"
        chance = rewards[engine.experiments.find("spring").policy_of(user)]
        visit(engine, user, float(rng.random() < chance))
    found = engine.experiments.result("spring")
    engine.close()
    return found


@pytest.mark.parametrize(
    ("rewards", "fields", "proposal"),
    [
        ({"now": 0.2, "new": 0.5}, {}, "stop and keep new: it is better than now"),
        ({"now": 0.5, "new": 0.2}, {}, "stop and keep now: it is better than all others"),
        ({"now": 0.3, "new": 0.3}, {}, "go on: no challenger is known to be better"),
        (
            {"now": 0.3, "new": 0.3},
            {"least_effect": 0.2},
            "stop and keep now: no other is better by 0.2 or more",
        ),
    ],
)
def test_an_end_is_proposed_and_never_made(
    rewards: dict[str, float], fields: dict[str, Any], proposal: str
) -> None:
    found = simulated(rewards, visits=1_500, **fields)
    assert found.proposal == proposal
    assert found.experiment.stopped is None
    assert found.ratio_ok


def state_of(engine: PolicyEngine) -> list[Any]:
    """All that an experiment rests on."""
    return [
        (live.state.outcomes.as_json(), live.state.policy.estimates.tolist(), live.state.users.ids)
        for live in engine.policies.values()
    ]


@pytest.mark.parametrize("learn", ["own", "all"])
def test_a_crash_changes_nothing_of_an_experiment(learn: Any, tmp_path: Path) -> None:
    with begun(str(tmp_path / "a.db"), learn=learn) as engine:
        for number in range(30):
            visit(engine, f"u{number % 7}", None if number % 5 == 0 else number / 30)
        engine.snapshot("now")
        for number in range(10):
            visit(engine, f"u{number}", 1.0)
        expected, found = state_of(engine), engine.experiments.result("spring")
        engine.close(snapshot=False)
        again = opened(str(tmp_path / "a.db"))
        assert state_of(again) == expected
        assert again.experiments.result("spring") == found
        again.close()


def _share(where: str, point: CrashPoint) -> None:
    engine = opened(where)
    arm(engine.store, point)
    engine.settle(engine.experiments.policy_that_made("spring", "d").reward("d", 1.0))


@pytest.mark.parametrize(("when", "done"), [("before", False), ("after", True)])
def test_a_shared_reward_is_learnt_by_all_or_by_none(when: str, done: bool, where: str) -> None:
    with begun(where, learn="all") as engine:
        engine.settle(engine.experiments.decide("spring", "alice", decision_id="d")[1])
    point = CrashPoint(when, "COMMIT", 1)
    process = multiprocessing.get_context("forkserver").Process(target=_share, args=(where, point))
    process.start()
    process.join()
    assert process.exitcode == -9
    again = opened(where)
    assert [live.state.policy.rounds for live in again.policies.values()] == [int(done)] * 2
    again.close()


def test_over_http_and_on_the_command_line(tmp_path: Path) -> None:
    with served(str(tmp_path / "a.db"), dim=2) as service:
        for name in ("now", "new"):
            with Client(service.url, name) as client:
                client.create_policy(2, "LinUCBInd", mode="shadow" if name == "now" else "online")
                client.put_items(ITEMS)
        first = command(service.url, "create", "spring", "now=1", "new=3", "--json")
        assert [one["share"] for one in json.loads(first)[0]["policies"]] == [0.25, 0.75]
        with Client(service.url, experiment="spring") as client:
            seen = Counter[str]()
            for number in range(30):
                answer = client.decide(f"u{number}")
                assert answer.shadow is (answer.policy == "now")
                seen[str(answer.policy)] += 1
                given = "tea" if answer.shadow else None
                assert client.reward(answer.decision_id, 1.0, item=given).status == "counted"
            with pytest.raises(UnknownName, match="no decision 'd9' in experiment 'spring'"):
                client.reward("d9", 1.0)
            with pytest.raises(ArgumentError, match="a reward of an experiment names its decision"):
                client.reward_many([{"user": "u1", "item": "tea", "reward": 1.0}])
            found = client.describe_experiment("spring")
            assert {one.policy: one.decisions for one in found.policies} == seen
        shown = command(service.url, "status")
        assert "now (shadow)" in shown
        assert "proposal: go on: too little data for an interval" in shown
        assert "proposal: ended: new decides for all users" in command(
            service.url, "stop", "spring", "--keep", "new"
        )


def command(url: str, *words: str) -> str:
    """What `coterie experiment` prints."""
    done = CliRunner().invoke(app, ["experiment", *words, "--url", url], prog_name="coterie")
    assert done.exit_code == 0, done.output
    return done.output


def test_a_policy_that_is_named_twice_is_refused() -> None:
    done = CliRunner().invoke(app, ["experiment", "create", "spring", "now=1", "new", "now=2"])
    assert done.exit_code == 2
    assert "name each policy once, got now=1 new now=2" in done.output
