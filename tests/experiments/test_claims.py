from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from coterie.experiments.claims import (
    AsLong,
    Below,
    Claim,
    Finds,
    Flat,
    Grows,
    Slower,
    Within,
    judge_claims,
    summary_sentence,
)
from coterie.experiments.results import Limit, Panel, PolicyResult, over_seeds
from coterie.experiments.specs import PolicySpec
from coterie.experiments.tables import cluster_table, summary_csv, summary_rows
from coterie.simulation import Trace


def result(policy: str, *finals: float, seconds: float = 1.0, ari: float = 1.0) -> PolicyResult:
    return PolicyResult(
        PolicySpec(policy), tuple(trace(policy, k, end, seconds, ari) for k, end in enumerate(finals))
    )


def trace(policy: str, seed: int, end: float, seconds: float, ari: float) -> Trace:
    line = np.array([end / 2, end])
    return Trace(
        policy, seed, np.array([5, 10]), line, line, line, np.array([1, 4]), np.array([0, ari]), line, seconds
    )


def panel(*entries: PolicyResult, value: float = 0.0, dataset: str = "synthetic") -> Panel:
    return Panel(dataset, f"K = {value:g}" if value else "", "K", value, 0.5, entries)


def answers(claim: Claim, *panels: Panel) -> list[str]:
    return [verdict.answer for verdict in claim.judge(panels)]


def test_the_error_is_the_deviation_over_the_root_of_the_seeds() -> None:
    band = over_seeds(np.array([[1.0], [2.0], [3.0]]))
    assert (band.mean[0], band.error[0]) == (2.0, pytest.approx(1 / np.sqrt(3)))
    assert over_seeds(np.array([[1.0]])).error[0] == 0.0


def test_clusters_that_nobody_knows_are_told_as_unknown() -> None:
    mine = result("mine:Greedy", 3, ari=float("nan"))
    mine = mine._replace(traces=tuple(replace(one, clusters=np.array([-1, -1])) for one in mine.traces))
    assert np.isnan([mine.final("clusters").mean, mine.final("ari").mean]).all()
    assert cluster_table([panel(mine)]).rows == (("mine:Greedy", "– (–)"),)
    assert next(summary_rows([panel(mine)])).record()["alpha"] is None
    assert ",nan," not in summary_csv(summary_rows([panel(mine)]))


def test_parameters_have_columns_of_their_own_in_a_summary() -> None:
    entries = [result("CLUB", 1)._replace(spec=PolicySpec("CLUB", {"beta": 0.1, "alpha": 2}))]
    entries.append(result("mine:Greedy", 2)._replace(spec=PolicySpec("mine:Greedy", {"size": "odd"})))
    heading, club, mine = (
        line.split(",") for line in summary_csv(summary_rows([panel(*entries)])).splitlines()
    )
    assert heading[-7:] == ["alpha", "beta", "explore", "phase", "growth", "ridge", "size"]
    assert (club[-7:], mine[-7:]) == (["2", "0.1", "", "", "", "", ""], ["", "", "", "", "", "", "odd"])


def test_a_policy_is_below_another_when_pairs_of_seeds_say_so() -> None:
    low, high = result("UniCLUB", 10, 20, 30), result("CLUB", 11, 21.1, 31)
    assert answers(Below("UniCLUB", "CLUB"), panel(low, high)) == ["holds"]
    assert answers(Below("CLUB", "UniCLUB"), panel(low, high)) == ["fails"]


def test_a_difference_within_two_errors_is_undecided() -> None:
    assert answers(Below("A", "B"), panel(result("A", 10, 20, 30), result("B", 12, 18, 31))) == ["undecided"]
    assert answers(Below("A", "B"), panel(result("A", 1, 1), result("B", 1, 1))) == ["undecided"]


def test_a_single_seed_decides_nothing() -> None:
    assert answers(Below("A", "B"), panel(result("A", 1), result("B", 100))) == ["undecided"]
    panels = (panel(result("A", 1), value=1), panel(result("A", 100), value=2))
    assert answers(Grows("A", "u"), *panels) == ["undecided"]
    told = summary_sentence(judge_claims([Below("A", "B")], [panel(result("A", 1), result("B", 100))]), ())
    assert told == "A's regret is 99.0 % below B's (undecided)."


def test_a_claim_about_an_absent_policy_says_nothing() -> None:
    assert answers(Below("A", "C"), panel(result("A", 1))) == []
    assert judge_claims([Below("A", "C")], [panel(result("A", 1))]) == ()


def test_growth_is_judged_from_end_to_end() -> None:
    panels = (
        panel(result("A", 10, 11), value=1),
        panel(result("A", 20, 21.5), value=3),
        panel(result("A", 1, 1), value=2),
    )
    assert answers(Grows("A", "u"), *panels) == ["holds"]
    assert answers(Flat("A", "K"), *panels) == ["fails"]
    assert answers(Flat("A", "K"), panels[0], panels[0]) == ["holds"]


def test_ten_times_slower_means_ten() -> None:
    panels = panel(
        result("GOBLin", 1, seconds=10.0), result("CLUB", 1, seconds=1.0), result("SCLUB", 1, seconds=1.1)
    )
    assert answers(Slower("GOBLin", "CLUB"), panels) == ["holds"]
    assert answers(Slower("GOBLin", "SCLUB"), panels) == ["fails"]


@pytest.mark.parametrize(
    ("seconds", "answer"), [(1.0, "holds"), (1.5, "holds"), (1.6, "fails"), (0.67, "holds"), (0.6, "fails")]
)
def test_about_as_long_means_within_a_half_more(seconds: float, answer: str) -> None:
    times = panel(result("UniCLUB", 1, seconds=seconds), result("CLUB", 1, seconds=1.0))
    assert answers(AsLong("UniCLUB", "CLUB"), times) == [answer]
    assert answers(AsLong("UniCLUB", "SCLUB"), times) == []


def test_clusters_are_found_when_the_index_is_near_one() -> None:
    assert answers(Finds("CLUB"), panel(result("CLUB", 1, ari=0.96))) == ["holds"]
    assert answers(Finds("CLUB"), panel(result("CLUB", 1, ari=0.9))) == ["fails"]


def test_the_sentence_tells_how_far_below() -> None:
    panels = [panel(result("UniCLUB", 97, 97), result("CLUB", 100, 100))]
    told = summary_sentence(judge_claims([Below("UniCLUB", "CLUB")], panels), panels)
    assert (
        told
        == "UniCLUB has the least regret, 3 % below the next (CLUB); UniCLUB's regret is 3.0 % below CLUB's."
    )


def test_the_sentence_counts_where_a_claim_holds() -> None:
    panels = [
        panel(result("UniCLUB", 90, 90), result("CLUB", 100, 100)),
        panel(result("UniCLUB", 110, 110), result("CLUB", 100, 100), dataset="yelp"),
    ]
    told = summary_sentence(judge_claims([Below("UniCLUB", "CLUB")], panels), panels)
    assert "holds in 1 of 2" in told
    assert "UniCLUB has the least regret in 1 of 2 environments, 10 % below the next" in told
    assert "; CLUB has the least regret in 1 of 2 environments, 9 % below the next" in f"; {told}"


def limited(limit: Limit | None, *entries: PolicyResult, label: str = "") -> Panel:
    return panel(*entries)._replace(limit=limit, label=label)


def test_a_limit_is_a_multiple_of_the_best_other_and_the_oracle_is_no_other() -> None:
    entries = (result("AutoCLUB", 60, 70), result("CLUB", 120, 120), result("LinUCBOracle", 1, 1))
    best = result("SCLUB", 90, 110)
    assert answers(Within("AutoCLUB"), limited(Limit(0.65), *entries, best)) == ["holds"]
    assert answers(Within("AutoCLUB"), limited(Limit(0.64), *entries, best)) == ["fails"]
    assert answers(Within("AutoCLUB"), limited(Limit(0.64), *entries)) == ["holds"]


def test_a_limit_may_name_the_policy_that_it_is_a_multiple_of() -> None:
    entries = (result("AutoCLUB", 110), result("LinUCBInd", 100), result("LinUCBOne", 50))
    (verdict,) = Within("AutoCLUB").judge([limited(Limit(1.1, of="LinUCBInd"), *entries)])
    assert (verdict.claim, verdict.answer) == ("AutoCLUB at most 1.10 × LinUCBInd", "holds")
    assert verdict.value == pytest.approx(1.1)
    assert verdict.evidence == "1.10 × LinUCBInd"
    assert answers(Within("AutoCLUB"), limited(Limit(1.1), *entries)) == ["fails"]


def test_without_a_limit_or_a_rival_nothing_is_judged() -> None:
    own, other = result("AutoCLUB", 1), result("CLUB", 2)
    assert answers(Within("AutoCLUB"), limited(None, own, other)) == []
    assert answers(Within("AutoCLUB"), limited(Limit(1.0), own, result("LinUCBOracle", 1))) == []
    assert answers(Within("AutoCLUB"), limited(Limit(1.0), other)) == []


def test_the_sentence_names_the_worlds_where_a_limit_is_not_kept() -> None:
    own, other = result("AutoCLUB", 60), result("CLUB", 100)
    panels = [
        limited(Limit(0.65), own, other, label="clusters"),
        limited(Limit(0.5), own, other, label="smoothed"),
    ]
    told = summary_sentence(judge_claims([Within("AutoCLUB")], panels), panels)
    assert told == (
        "AutoCLUB has the least regret in 2 of 2 environments, 40 to 40 % below the next; "
        "AutoCLUB keeps its limit in 1 of 2 environments, but not in Synthetic, smoothed (0.60 × CLUB)."
    )
    assert summary_sentence(judge_claims([Within("AutoCLUB")], panels[:1]), ()) == (
        "AutoCLUB's regret is 0.60 times its rival's."
    )


def test_the_oracle_is_not_named_as_the_best() -> None:
    panels = [panel(result("LinUCBOracle", 1), result("CLUB", 2), result("SCLUB", 4))]
    assert summary_sentence((), panels) == "CLUB has the least regret, 50 % below the next (SCLUB)."
    assert summary_sentence((), [panel(result("LinUCBOracle", 1), result("CLUB", 2))]) == ""
