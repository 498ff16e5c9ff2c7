from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie import AutoCLUB, Conflict, MissingData, Recommender, StoreError, UnknownName
from inspection import abandon, engine_of, pass_time, take_snapshot
from service.shops import ITEMS, same_state, shop


def test_a_product_of_one_process_needs_five_lines(tmp_path: Path) -> None:
    with Recommender(items=ITEMS, store=tmp_path / "shop.db") as recommender:
        decision = recommender.decide("alice", ["tea", "coffee"])
        recommender.reward(decision.id, 1.0)
        assert decision.chosen in ITEMS
        assert recommender.policy.rounds == 1


def test_the_vector_waits_for_its_reward_though_the_item_changes_or_goes() -> None:
    one = shop()
    decision = one.decide("alice", ["tea"])
    one.put_items({"tea": [0.0, 5.0]})
    one.remove_items(["tea"])
    one.reward(decision.id, 1.0)
    assert one.policy.estimates[0].tolist() == [0.5, 0.0]


def test_the_same_reward_twice_is_counted_once_and_another_is_a_conflict() -> None:
    one = shop()
    decision = one.decide("alice")
    assert one.reward(decision.id, 1.0).status == "counted"
    assert one.reward(decision.id, 1.0).status == "duplicate"
    with pytest.raises(Conflict, match=r"was settled with reward 1, got 0\.5"):
        one.reward(decision.id, 0.5)
    assert one.policy.rounds == 1


def test_a_repeated_decision_gets_the_first_answer_and_another_request_is_a_conflict() -> None:
    one = shop()
    first = one.decide("alice", decision_id="d1")
    for _ in range(3):
        one.reward(one.decide("alice", ["tea"]).id, 1.0)
    assert one.decide("alice", decision_id="d1") == first
    for other in ({"user": "bob"}, {"user": "alice", "items": ["tea"]}, {"user": "alice", "k": 2}):
        with pytest.raises(Conflict, match="decision_id 'd1' was used for another request"):
            one.decide(**other, decision_id="d1")


REQUESTS: dict[str, dict[str, Any]] = {
    "all": {},
    "list of all": {"k": 2},
    "named": {"items": ["tea", "coffee"]},
    "named in another order": {"items": ["coffee", "tea"]},
    "arms": {"arms": {"tea": [1.0, 0.0], "coffee": [0.0, 1.0]}},
    "arms with another id": {"arms": {"tea": [1.0, 0.0], "milk": [0.0, 1.0]}},
    "arms with another vector": {"arms": {"tea": [1.0, 0.0], "milk": [0.0, 1.1]}},
    "without one": {"exclude": ["tea"]},
    "without two": {"exclude": ["tea", "coffee"]},
    "with a tag": {"only": "hot"},
    "with another tag": {"only": ["cold", "hot"]},
    "matrix": {"arms": [[1.0, 0.0], [0.0, 1.0]]},
    "list of arms": {"arms": {"tea": [1.0, 0.0], "coffee": [0.0, 1.0]}, "k": 2},
}


@pytest.mark.parametrize("asked", REQUESTS)
def test_only_the_very_same_request_is_a_repeat_also_after_a_restart(asked: str, tmp_path: Path) -> None:
    one = shop(store=tmp_path / "a.db")
    one.put_items(ITEMS, tags={"tea": ["hot"], "cocoa": ["hot", "cold"]})
    first = one.decide("alice", **REQUESTS[asked], decision_id="d")
    abandon(one)
    for _ in range(2):  # from the log, then from a snapshot
        with shop(store=tmp_path / "a.db") as again:
            assert again.decide("alice", **REQUESTS[asked], decision_id="d") == first
            again.put_items({"tea": [0.5, 0.5]})
            for other, request in REQUESTS.items():
                if other != asked:
                    with pytest.raises(Conflict, match="'d' was used for another request"):
                        again.decide("alice", **request, decision_id="d")
            with pytest.raises(Conflict, match="'d' was used for another request"):
                again.decide("bob", **REQUESTS[asked], decision_id="d")


def test_a_decision_that_was_never_made_is_unknown() -> None:
    with pytest.raises(UnknownName, match="no decision 'd9': it was not made here, or was removed"):
        shop().reward("d9", 1.0)


def test_answers_are_remembered_after_a_restart(tmp_path: Path) -> None:
    one = shop(store=tmp_path / "a.db")
    first = one.decide("alice", decision_id="d1")
    one.reward("d1", 1.0)
    abandon(one)
    with Recommender(store=tmp_path / "a.db") as again:
        assert again.decide("alice", decision_id="d1") == first
        assert again.reward("d1", 1.0).status == "duplicate"
        with pytest.raises(Conflict):
            again.reward("d1", 0.0)
        assert again.policy.rounds == 1


def test_an_expired_decision_counts_the_default_reward() -> None:
    one = shop(reward_wait=60, default_reward=-1.0)
    one.decide("alice", ["tea"])
    assert one.expire() == 0
    pass_time(one, 61)
    assert one.expire() == 1
    assert one.policy.estimates[0].tolist() == [-0.5, 0.0]
    assert one.summary.waiting == 0


def test_timers_survive_a_restart(tmp_path: Path) -> None:
    for crash in (False, True):
        path = tmp_path / f"{crash}.db"
        one = shop(store=path, reward_wait=60, default_reward=0.25)
        one.decide("alice", ["tea"])
        abandon(one) if crash else one.close()
        with Recommender(store=path) as again:
            assert again.expire() == 0
            pass_time(again, 61)
            assert again.expire() == 1
            assert again.policy.estimates[0].tolist() == [0.125, 0.0]


def test_without_a_default_nothing_is_counted() -> None:
    one = shop(reward_wait=0, default_reward=None)
    one.decide("alice")
    one.expire()
    assert one.policy.rounds == 0
    assert one.summary.waiting == 0


@pytest.mark.parametrize(
    ("late", "status", "rounds", "estimate"),
    [("accept", "late", 2, 1 / 3), ("correct", "late", 1, 0.5), ("ignore", "recorded", 1, 0.0)],
)
def test_a_late_reward_is_what_the_setting_says(
    late: str, status: str, rounds: int, estimate: float, tmp_path: Path
) -> None:
    one = shop(store=tmp_path / "a.db", reward_wait=0, late=late)
    decision = one.decide("alice", ["tea"])
    one.expire()
    assert one.reward(decision.id, 1.0).status == status
    assert one.reward(decision.id, 1.0).status == "duplicate"
    assert one.policy.rounds == rounds
    assert one.policy.estimates[0, 0] == pytest.approx(estimate)
    one.decide("bob", ["tea"])
    abandon(one)
    with Recommender(store=tmp_path / "a.db") as again:
        assert again.policy.rounds == rounds
        assert again.policy.estimates[0, 0] == pytest.approx(estimate)


def test_a_reward_in_time_comes_before_the_clock_is_looked_at() -> None:
    one = shop(reward_wait=60)
    decision = one.decide("alice")
    pass_time(one, 59)
    assert one.reward(decision.id, 1.0).status == "counted"
    decision = one.decide("alice")
    pass_time(one, 61)
    assert one.reward(decision.id, 1.0).status == "late"


def test_time_never_goes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = shop(store=tmp_path / "a.db", reward_wait=60)
    pass_time(one, 1e6)
    one.decide("alice")
    one.close()
    with Recommender(store=tmp_path / "a.db") as again:
        assert again.expire() == 0
        pass_time(again, 61)
        assert again.expire() == 1


def test_a_removed_user_leaves_the_policy_as_if_it_had_never_come(tmp_path: Path) -> None:
    one, other = (
        Recommender(policy="CLUB", params={"alpha": 0.3, "beta": 0.2}, items=ITEMS) for _ in range(2)
    )
    rng = np.random.default_rng(1)
    for round_ in range(60):
        user = f"u{rng.integers(4)}"
        reward = float(rng.normal())
        item = list(ITEMS)[round_ % 3]
        one.feedback(user, reward, item=item)
        if user != "u2":
            other.feedback(user, reward, item=item)
    one.remove_user("u2")
    assert same_state(one, other)
    assert "u2" not in one.users
    with pytest.raises(UnknownName, match="no user 'u2'"):
        one.history("u2")
    with pytest.raises(UnknownName, match="no user 'u2'"):
        one.remove_user("u2")


def test_nothing_of_a_removed_user_is_left_in_the_file(tmp_path: Path) -> None:
    one = shop(store=tmp_path / "a.db")
    decision = one.decide("alice-the-secret")
    take_snapshot(one)
    one.remove_user("alice-the-secret")
    with pytest.raises(UnknownName):
        one.reward(decision.id, 1.0)
    one.close()
    for file in tmp_path.iterdir():
        assert b"alice-the-secret" not in file.read_bytes()


def test_the_uniform_share_has_exact_propensities() -> None:
    one = shop(uniform_share=0.3)
    seen: dict[str, set[float]] = {}
    for n in range(400):
        decision = one.decide(f"u{n}")  # everybody is new: the policy's own choice is the same for all
        assert decision.propensity is not None
        seen.setdefault(decision.chosen, set()).add(round(decision.propensity, 12))
    assert seen == {"tea": {0.8}, "coffee": {0.1}, "cocoa": {0.1}}


def test_lists_have_the_propensity_of_the_whole_list() -> None:
    one = shop(uniform_share=0.6)
    own = None
    for n in range(60):
        decision = one.decide(f"u{n}", k=2)
        own = own or (decision.ranking if decision.propensity != pytest.approx(0.1) else None)
        expected = 0.1 + (0.4 if decision.ranking == own else 0.0)
        assert decision.propensity == pytest.approx(expected)
    assert own is not None


def test_uniform_rounds_of_a_policy_are_uniform_and_thompson_sampling_says_none() -> None:
    exploring = shop(policy="UniCLUB", params={"alpha": 1.0, "beta": 0.1, "explore": 9})
    assert exploring.decide("alice").propensity == pytest.approx(1 / 3)
    assert shop(policy="LinTSOne").decide("alice").propensity is None
    assert shop(policy="LinTSOne", uniform_share=1.0).decide("alice").propensity == pytest.approx(1 / 3)


def test_lists_learn_from_the_first_click() -> None:
    one, other = shop(), shop()
    decision = one.decide("alice", k=3)
    one.reward(decision.id, 1, item=decision.ranking[1])
    other.decide("alice")
    other.policy.update_list(0, np.array([ITEMS[item] for item in decision.ranking]), 1)
    assert one.policy.estimates.tolist() == other.policy.estimates.tolist()


def test_shadow_mode_learns_from_what_was_shown_instead() -> None:
    one = shop(mode="shadow", reward_wait=0)
    decision = one.decide("alice")
    assert decision.chosen == "tea"
    one.configure(reward_wait=60)
    decision = one.decide("alice")
    one.expire()
    assert one.policy.rounds == 0
    assert one.reward(decision.id, 1.0, item="coffee").status == "counted"
    assert one.policy.estimates.tolist() == [[0.0, 0.5]]


def test_frozen_policies_decide_and_do_not_change() -> None:
    one = shop(policy="CLUB", params={"alpha": 0.2, "beta": 0.1})
    for user, item in (("alice", "tea"), ("bob", "coffee")) * 20:
        one.feedback(user, 1.0, item=item)
        one.feedback(user, 0.0, item="cocoa")
    labels, rounds = one.policy.labels().tolist(), one.policy.rounds
    one.configure(mode="frozen")
    decision = one.decide("carol")
    assert decision.cluster is None
    assert one.reward(decision.id, 1.0).status == "recorded"
    assert one.feedback("dave", 1.0, item="tea").status == "recorded"
    assert (one.policy.labels().tolist(), one.policy.rounds, one.users) == (labels, rounds, ("alice", "bob"))
    one.configure(mode="online")
    assert one.reward(one.decide("carol").id, 1.0).status == "counted"
    assert one.users == ("alice", "bob", "carol")


def test_feedback_with_an_id_is_counted_once() -> None:
    one = shop()
    for _ in range(2):
        result = one.feedback("alice", 1.0, item="tea", feedback_id="f1")
    assert result.status == "duplicate"
    assert one.policy.rounds == 1
    with pytest.raises(Conflict, match="'f1' was used for another user"):
        one.feedback("bob", 1.0, item="tea", feedback_id="f1")


def test_saving_and_loading_go_on_with_the_same_decisions(tmp_path: Path) -> None:
    one = shop(policy="LinTSInd", uniform_share=0.2)
    waiting = one.decide("alice")
    for n in range(30):
        one.reward(one.decide(f"u{n % 3}").id, float(n % 2))
    one.save(tmp_path / "shop.coterie")
    again = Recommender.load(tmp_path / "shop.coterie")
    assert same_state(one, again)
    assert again.reward(waiting.id, 1.0).status == "counted"
    with pytest.raises(MissingData, match="there is no saved recommender at"):
        Recommender.load(tmp_path / "nothing")


def test_threads_share_one_recommender_and_its_commits(tmp_path: Path) -> None:
    one = shop(store=tmp_path / "a.db")

    def serve(user: str) -> None:
        for _ in range(20):
            one.reward(one.decide(user).id, 1.0)

    threads = [threading.Thread(target=serve, args=(f"u{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert one.policy.rounds == 160
    assert engine_of(one).journal.commits < 320
    one.close()


def test_a_second_process_is_refused(where: str) -> None:
    with shop(store=where), pytest.raises(StoreError, match="in use by another"):
        Recommender(store=where)


def test_explaining_tells_who_one_learns_from_and_how_items_score() -> None:
    one = shop(policy="LinUCBOne")
    for user in ("alice", "bob", "carol"):
        one.reward(one.decide(user).id, 1.0)
    explained = one.explain("bob")
    assert explained.learns_from == ["alice", "carol"]
    assert explained.belongs is None  # which only AutoCLUB has
    assert (explained.rewards, explained.cluster, explained.cluster_size) == (1, 0, 3)
    assert [score.id for score in explained.scores] == sorted(
        ITEMS, key=lambda item: -one.policy.scores(1, [ITEMS[item]]).ucb[0]
    )
    assert [event.kind for event in one.history("bob")] == ["decision", "reward"]
    assert one.summary.clusters == 1
    other = shop(policy="AutoCLUB")
    other.reward(other.decide("bob").id, 1.0)
    explained = other.explain("bob")
    assert (explained.belongs, explained.counts_for, explained.known) == (1.0, 1.0, 0.0)
    assert isinstance(other.policy, AutoCLUB)
    assert explained.degrees == other.policy.explain(0).hierarchy


def test_a_repeated_request_gets_its_first_answer_whatever_became_of_the_catalogue() -> None:
    one = shop()
    everything = one.decide("alice", decision_id="all")
    named = one.decide("alice", ["tea", "coffee"], k=2, decision_id="named")
    one.put_items({"water": [0.1, 0.1]})
    one.remove_items(["coffee"])
    assert one.decide("alice", decision_id="all") == everything
    assert one.decide("alice", ["tea", "coffee"], k=2, decision_id="named") == named
    for items in (["tea"], ["coffee", "tea"], None):
        with pytest.raises(Conflict, match="'named' was used for another request"):
            one.decide("alice", items, k=2, decision_id="named")
    with pytest.raises(Conflict, match="'all' was used for another request"):
        one.decide("alice", list(ITEMS), decision_id="all")


def test_the_same_id_with_another_vector_is_a_conflict() -> None:
    one = shop(mode="shadow")
    decision = one.decide("alice").id
    one.reward(decision, 1.0, x=[1.0, 0.0])
    assert one.reward(decision, 1.0, x=[1.0, 0.0]).status == "duplicate"
    one.feedback("alice", 1.0, x=[1.0, 0.0], feedback_id="f")
    assert one.feedback("alice", 1.0, x=[1.0, 0.0], feedback_id="f").status == "duplicate"
    with pytest.raises(Conflict, match="was settled for another vector x"):
        one.reward(decision, 1.0, x=[0.0, 1.0])
    with pytest.raises(Conflict, match="'f' was settled for another vector x"):
        one.feedback("alice", 1.0, x=[0.0, 1.0], feedback_id="f")
    with pytest.raises(Conflict, match="'f' was settled for None, got 'tea'"):
        one.feedback("alice", 1.0, item="tea", feedback_id="f")
    assert one.policy.rounds == 2


@pytest.mark.parametrize("policy", ["AutoCLUB", "CLUB", "SCLUB", "CAB"])
def test_a_cluster_is_named_by_its_first_member_while_clusters_change(policy: str) -> None:
    params = {"AutoCLUB": {}, "CAB": {"alpha": 0.5}}.get(policy, {"alpha": 0.3, "beta": 0.2})
    one, rng, names = shop(policy=policy, params=params), np.random.default_rng(0), set()
    for turn in range(300):
        user = int(rng.integers(6))
        decision = one.decide(f"user-{user}")
        labels = one.policy.labels()
        assert decision.cluster == int((labels == labels[one.users.index(f"user-{user}")]).argmax())
        names.add(decision.cluster)
        if turn % 2:
            one.reward(decision.id, float((decision.chosen == "tea") == (user % 2 == 0)))
    assert len(names) > 1 or policy == "CAB"
