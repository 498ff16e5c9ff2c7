"""What has collapsed against its own past is noticed, shown everywhere, and nothing else is."""

from __future__ import annotations

import logging
from typing import Any

import httpx
import numpy as np
import pytest

from coterie.service.client import Client
from coterie.service.core.live_policy import LivePolicy
from coterie.service.core.outcomes import ChoiceCounts, Counts
from coterie.service.core.watching import PAST_DECISIONS, RECENT_DECISIONS, Watch, compare, effective_items
from coterie.service.settings import PolicySettings
from inspection import never_keep_house, pass_engine_time
from service.serving import Served, served

MANY = {f"item-{n}": [float(n == 0), 1.0] for n in range(8)}


def an_hour(
    rng: np.random.Generator, decisions: int, chance: float, items: int = 20, answered: float = 1.0
) -> Counts:
    """Counts of an hour of clicks on items of equal chances."""
    clicks = int(rng.binomial(decisions, chance))
    shown = np.bincount(rng.integers(items, size=decisions), minlength=items)
    policy = ChoiceCounts(decisions, decisions, int(clicks * answered), clicks, clicks)
    pairs = int((shown * (shown - 1) // 2).sum())
    return Counts(policy, ChoiceCounts(), named=decisions, pairs=pairs)


def names_of(hours: dict[int, Counts]) -> list[str]:
    """The alerts at the last hour."""
    return [one.name for one in compare(hours, max(hours)).alerts]


def test_weeks_in_which_nothing_happens_but_day_and_night_raise_no_alert() -> None:
    rng, raised = np.random.default_rng(1), 0
    for _ in range(20):
        hours = {}
        for hour in range(24 * 14):
            day = 0.5 + 0.5 * np.sin(hour / 24 * 2 * np.pi)
            hours[hour] = an_hour(rng, 20 + int(200 * day), 0.05 * (1 + 0.3 * day))
            raised += bool(hour % 5 == 0 and names_of(hours))
    assert raised == 0


@pytest.mark.parametrize(
    ("collapsed", "expected"),
    [
        ({"chance": 0.03}, ["reward"]),
        ({"chance": 0.0}, ["reward", "answers"]),
        ({"chance": 0.1, "answered": 0.0}, ["answers"]),
        ({"chance": 0.1, "items": 1}, ["variety"]),
        ({"chance": 0.1, "items": 5}, []),
        ({"chance": 0.2}, []),
    ],
)
def test_what_collapses_is_named(collapsed: dict[str, Any], expected: list[str]) -> None:
    rng = np.random.default_rng(2)
    hours = {hour: an_hour(rng, 500, 0.1) for hour in range(48)}
    assert names_of(hours) == []
    for hour in range(48, 51):
        hours[hour] = an_hour(rng, 700, **collapsed)
    found = compare(hours, 50)
    assert [one.name for one in found.alerts] == expected
    assert found.recent.decisions == 700


def test_there_is_no_judgement_of_few_decisions_or_of_no_past() -> None:
    rng = np.random.default_rng(3)
    before = an_hour(rng, PAST_DECISIONS, 0.5)
    assert names_of({0: before, 1: an_hour(rng, RECENT_DECISIONS, 0.0)}) == ["reward", "answers"]
    assert names_of({0: before, 1: an_hour(rng, RECENT_DECISIONS - 1, 0.0)}) == []
    assert names_of({0: an_hour(rng, PAST_DECISIONS - 1, 0.5), 1: an_hour(rng, 300, 0.0)}) == []
    assert compare({}, 0).alerts == ()
    assert compare({0: before, 1: an_hour(rng, 900, 0.0)}, 30).alerts == ()  # nothing has come for a day


def test_the_effective_number_of_items_has_no_bias_however_few_decisions_there_are() -> None:
    rng = np.random.default_rng(4)
    for decisions in (5, 50):
        hours = [an_hour(rng, decisions, 0.1, items=10) for _ in range(4_000)]
        pairs = sum(one.pairs for one in hours)
        assert decisions * (decisions - 1) / 2 * len(hours) / pairs == pytest.approx(10, rel=0.05)
    assert effective_items(an_hour(rng, 1, 0.1)) is None


def test_the_log_says_once_when_an_alert_begins_and_when_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    rng, watch = np.random.default_rng(5), Watch("shop")
    hours = {hour: an_hour(rng, 500, 0.2) for hour in range(20)}
    with caplog.at_level(logging.INFO):
        watch.look(hours, 19)
        hours[20] = an_hour(rng, 500, 0.05)
        watch.look(hours, 20)
        watch.look(hours, 20)
        hours[21] = an_hour(rng, 500, 0.2)
        watch.look(hours, 21)
    first, second = (one.getMessage() for one in caplog.records)
    assert first.startswith("policy 'shop': the reward of a decision has fallen from 0.195 to 0.054")
    assert second == "policy 'shop': the alert 'reward' has ended"


def visits(one: Served, live: LivePolicy, hours: int, count: int, reward: float, items: list[str]) -> None:
    """Hours with so many decisions each, all of which get a reward."""
    for _ in range(hours):
        for number in range(count):
            decision = live.decide(f"u{number % 7}", items=[items[number % len(items)]]).result
            live.reward(decision.id, reward)
        pass_engine_time(one.engine, 3_600)


def test_alerts_are_in_health_metrics_and_outcomes(monkeypatch: pytest.MonkeyPatch) -> None:
    never_keep_house(monkeypatch)
    with served(None, dim=2) as one, httpx.Client(base_url=one.url, trust_env=False) as http:
        live = one.engine.settle(one.engine.create("shop", PolicySettings(dim=2, policy="LinUCBInd")))
        live.change_items(MANY)
        visits(one, live, 5, 350, 0.8, list(MANY))
        live.watch_due()
        assert http.get("/health/ready").json()["warnings"] == []
        assert 'coterie_alert{policy="shop",alert="reward"} 0' in http.get("/metrics").text
        visits(one, live, 1, 350, 0.1, ["item-0"])
        pass_engine_time(one.engine, -3_600)
        live.watch.look(live.state.outcomes.hours, max(live.state.outcomes.hours))
        warnings = http.get("/health/ready").json()["warnings"]
        assert warnings == [
            "alert 'reward' of 1 policies; the page says which",
            "alert 'variety' of 1 policies; the page says which",
        ]
        lines = http.get("/metrics").text.splitlines()
        for line in (
            'coterie_alert{policy="shop",alert="reward"} 1',
            'coterie_alert{policy="shop",alert="answers"} 0',
            'coterie_alert{policy="shop",alert="variety"} 1',
            'coterie_choices_total{policy="shop",choice="policy"} 2100',
            'coterie_answered_total{policy="shop",choice="policy"} 2100',
            'coterie_counted_decisions{policy="shop",choice="policy"} 2100',
            'coterie_new_item_decisions_total{policy="shop"} 80',
            'coterie_propensities_total{policy="shop"} 2100',
            'coterie_summed_propensity{policy="shop"} 2100.0',
            'coterie_uniform_share{policy="shop"} 0.0',
            'coterie_exploring{policy="shop"} 0',
            'coterie_effective_items{policy="shop"} 1.0',
        ):
            assert line in lines
        (total,) = [
            float(line.split()[1])
            for line in lines
            if line.startswith('coterie_summed_reward{policy="shop",choice="policy"')
        ]
        assert total == pytest.approx(0.8 * 1_750 + 0.1 * 350)
        with Client(one.url, "shop") as client:
            found = client.outcomes()
        assert [hour.policy.decisions for hour in found.hours] == [350] * 6
        assert [round(hour.policy.reward_sum, 6) for hour in found.hours] == [280.0] * 5 + [35.0]
        assert [alert.name for alert in found.alerts] == ["reward", "variety"]
        assert found.most_shown_items[0].id == "item-0"
        assert found.newest_items[0].id == "item-7"
        assert found.best_items[-1].id == "item-0"
        assert {item.id for item in found.best_items} == set(MANY)


def test_the_table_of_items_has_their_effects_where_the_policy_learns_them() -> None:
    with served(None, dim=2) as one, Client(one.url) as client:
        live, rng = one.engine.find("default"), np.random.default_rng(0)
        live.change_items({f"item-{n}": [1.0, 1.0] for n in range(4)})
        for number in range(3_000):
            decision = live.decide(f"u{rng.integers(300)}", items=[f"item-{number % 4}"]).result
            live.reward(decision.id, float(rng.random() < (0.9 if number % 4 == 3 else 0.1)))
        found = client.outcomes().best_items
    assert found[0].id == "item-3"
    assert (found[0].effect or 0.0) > 0.1 > (found[-1].effect or 0.0)
    assert found[0].reward == pytest.approx(0.9, abs=0.1)


def test_weights_of_models_are_reported_and_counters_never_fall() -> None:
    with (
        served(None, dim=2) as one,
        Client(one.url) as client,
        httpx.Client(base_url=one.url, trust_env=False) as http,
    ):
        client.put_items(MANY)
        for user in ("alice", "bob"):
            for _ in range(5):
                client.reward(client.decide(user).decision_id, 1.0)
        before = http.get("/metrics").text.splitlines()
        assert (
            sum(float(line.split()[1]) for line in before if line.startswith("coterie_model_weight{")) == 1.0
        )
        client.remove_user("alice")
        client.decide("bob")
        after = http.get("/metrics").text.splitlines()
        assert 'coterie_users{policy="default"} 1' in after
        assert 'coterie_decisions_total{policy="default"} 10' in before
        assert 'coterie_decisions_total{policy="default"} 10' in after
        client.decide("bob")
        assert 'coterie_decisions_total{policy="default"} 11' in http.get("/metrics").text.splitlines()
