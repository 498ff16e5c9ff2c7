from __future__ import annotations

import numpy as np
import pytest

from coterie.experiments.claims import Below, Claim, Finds, Flat, Grows, Slower
from coterie.experiments.contenders import Contender
from coterie.experiments.findings import find_out, sentence
from coterie.experiments.results import Entry, Panel, over_seeds
from coterie.traces import Trace


def entry(policy: str, *finals: float, seconds: float = 1.0, ari: float = 1.0) -> Entry:
    return Entry(
        Contender(policy=policy), tuple(trace(policy, k, end, seconds, ari) for k, end in enumerate(finals))
    )


def trace(policy: str, seed: int, end: float, seconds: float, ari: float) -> Trace:
    line = np.array([end / 2, end])
    return Trace(
        policy, seed, np.array([5, 10]), line, line, np.array([1, 4]), np.array([0, ari]), line, seconds
    )


def panel(*entries: Entry, value: float = 0.0, dataset: str = "synthetic") -> Panel:
    return Panel(dataset, f"K = {value:g}" if value else "", "K", value, 0.5, entries)


def answers(claim: Claim, *panels: Panel) -> list[str]:
    return [verdict.answer for verdict in claim.judge(panels)]


def test_the_error_is_the_deviation_over_the_root_of_the_seeds() -> None:
    band = over_seeds(np.array([[1.0], [2.0], [3.0]]))
    assert (band.mean[0], band.error[0]) == (2.0, pytest.approx(1 / np.sqrt(3)))
    assert over_seeds(np.array([[1.0]])).error[0] == 0.0


def test_a_policy_is_below_another_when_pairs_of_seeds_say_so() -> None:
    low, high = entry("UniCLUB", 10, 20, 30), entry("CLUB", 11, 21.1, 31)
    assert answers(Below("UniCLUB", "CLUB"), panel(low, high)) == ["holds"]
    assert answers(Below("CLUB", "UniCLUB"), panel(low, high)) == ["fails"]


def test_a_difference_within_two_errors_is_undecided() -> None:
    assert answers(Below("A", "B"), panel(entry("A", 10, 20, 30), entry("B", 12, 18, 31))) == ["undecided"]
    assert answers(Below("A", "B"), panel(entry("A", 1, 1), entry("B", 1, 1))) == ["undecided"]


def test_a_claim_about_an_absent_policy_says_nothing() -> None:
    assert answers(Below("A", "C"), panel(entry("A", 1))) == []
    assert find_out([Below("A", "C")], [panel(entry("A", 1))]) == ()


def test_growth_is_judged_from_end_to_end() -> None:
    panels = (
        panel(entry("A", 10, 11), value=1),
        panel(entry("A", 20, 21.5), value=3),
        panel(entry("A", 1, 1), value=2),
    )
    assert answers(Grows("A", "u"), *panels) == ["holds"]
    assert answers(Flat("A", "K"), *panels) == ["fails"]
    assert answers(Flat("A", "K"), panels[0], panels[0]) == ["holds"]


def test_ten_times_slower_means_ten() -> None:
    panels = panel(
        entry("GOBLin", 1, seconds=10.0), entry("CLUB", 1, seconds=1.0), entry("SCLUB", 1, seconds=1.1)
    )
    assert answers(Slower("GOBLin", "CLUB"), panels) == ["holds"]
    assert answers(Slower("GOBLin", "SCLUB"), panels) == ["fails"]


def test_clusters_are_found_when_the_index_is_near_one() -> None:
    assert answers(Finds("CLUB"), panel(entry("CLUB", 1, ari=0.96))) == ["holds"]
    assert answers(Finds("CLUB"), panel(entry("CLUB", 1, ari=0.9))) == ["fails"]


def test_the_sentence_tells_how_far_below() -> None:
    panels = [panel(entry("UniCLUB", 97, 97), entry("CLUB", 100, 100))]
    told = sentence(find_out([Below("UniCLUB", "CLUB")], panels), panels)
    assert told == "UniCLUB's regret is 3.0 % below CLUB's; the least regret has UniCLUB."


def test_the_sentence_counts_where_a_claim_holds() -> None:
    panels = [
        panel(entry("UniCLUB", 90, 90), entry("CLUB", 100, 100)),
        panel(entry("UniCLUB", 110, 110), entry("CLUB", 100, 100), dataset="yelp"),
    ]
    told = sentence(find_out([Below("UniCLUB", "CLUB")], panels), panels)
    assert "holds in 1 of 2" in told
    assert "CLUB (1 of 2), UniCLUB (1 of 2)" in told
