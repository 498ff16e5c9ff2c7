"""Claims about regret and time, the verdicts of the data on them, and one sentence that sums them up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from coterie.experiments.results import Panel, PolicyResult, regret_ratios

Answer: TypeAlias = Literal["holds", "fails", "undecided"]

DECISIVE = 2.0
"""Standard errors that a difference must exceed to count."""

MOST_CLAUSES = 3
"""Claims in the summary sentence."""

SIMILAR = 1.5
"""The greatest factor between times that are about the same."""


class Verdict(NamedTuple):
    """The answer of the data to a claim, in one panel or dataset."""

    claim: str
    where: str
    answer: Answer
    evidence: str
    value: float


class Claim(ABC):
    """A statement that can be tested on panels."""

    @abstractmethod
    def describe(self, value: float) -> str:
        """The finding as a clause, for the mean of the verdicts' values."""

    @abstractmethod
    def judge(self, panels: Sequence[Panel]) -> Iterator[Verdict]:
        """A verdict for every panel or dataset that the claim can be tested in."""

    def summarise(self, verdicts: Sequence[Verdict]) -> str:
        """Several verdicts in a clause: their mean, and how often the claim holds."""
        said = self.describe(float(np.mean([verdict.value for verdict in verdicts])))
        holds = sum(verdict.answer == "holds" for verdict in verdicts)
        return f"{said} on average (claim holds in {holds} of {len(verdicts)})"


@dataclass(frozen=True, slots=True)
class Below(Claim):
    """The regret of `lower` is below that of `higher`, with the same environments and seeds."""

    lower: str
    higher: str

    def describe(self, value: float) -> str:
        """How far below, or above."""
        side = "below" if value < 0 else "above"
        return f"{self.lower}'s regret is {abs(value):.1f} % {side} {self.higher}'s"

    def judge(self, panels: Sequence[Panel]) -> Iterator[Verdict]:
        """One verdict a panel, from paired differences."""
        for panel in panels:
            lower, higher = panel.result(self.lower), panel.result(self.higher)
            if lower is not None and higher is not None:
                answer, change = compared(lower, higher)
                yield Verdict(
                    f"{self.lower} below {self.higher}", panel.title, answer, f"{change:+.1f} %", change
                )


@dataclass(frozen=True, slots=True)
class Flat(Claim):
    """The regret does not change with what varies: by less than a tenth from the first value to the last."""

    policy: str
    letter: str

    def describe(self, value: float) -> str:
        """The change from end to end."""
        return changed(self.policy, self.letter, value)

    def judge(self, panels: Sequence[Panel]) -> Iterator[Verdict]:
        """One verdict a dataset."""
        for dataset, first, last in ends(panels, self.policy):
            change = 100.0 * (last.finals.mean() / first.finals.mean() - 1.0)
            answer: Answer = "holds" if abs(change) < 10.0 else "fails"
            yield Verdict(
                f"{self.policy} hardly changes with {self.letter}",
                dataset,
                answer,
                f"{change:+.1f} %",
                change,
            )


@dataclass(frozen=True, slots=True)
class Grows(Claim):
    """The regret grows with what varies."""

    policy: str
    letter: str

    def describe(self, value: float) -> str:
        """The change from end to end."""
        return changed(self.policy, self.letter, value)

    def judge(self, panels: Sequence[Panel]) -> Iterator[Verdict]:
        """One verdict a dataset."""
        for dataset, first, last in ends(panels, self.policy):
            answer, change = compared(first, last)
            grown = 100.0 * (1.0 / (1.0 + change / 100.0) - 1.0)
            yield Verdict(
                f"{self.policy} grows with {self.letter}", dataset, answer, f"{grown:+.1f} %", grown
            )


@dataclass(frozen=True, slots=True)
class Slower(Claim):
    """`slow` takes at least ten times as long as `fast`."""

    slow: str
    fast: str

    def describe(self, value: float) -> str:
        """How many times slower."""
        return f"{self.slow} takes {value:.1f} times as long as {self.fast}"

    def judge(self, panels: Sequence[Panel]) -> Iterator[Verdict]:
        """One verdict a panel."""
        for panel in panels:
            slow, fast = panel.result(self.slow), panel.result(self.fast)
            if slow is not None and fast is not None:
                factor = slow.seconds().mean / fast.seconds().mean
                answer: Answer = "holds" if factor >= 10.0 else "fails"
                claim = f"{self.slow} ten times slower than {self.fast}"
                yield Verdict(claim, panel.title, answer, f"{factor:.1f} ×", factor)


@dataclass(frozen=True, slots=True)
class AsLong(Claim):
    """A policy takes about as long as another: neither more than one and a half times as long."""

    policy: str
    other: str

    def describe(self, value: float) -> str:
        """The ratio of the times."""
        return f"{self.policy} takes {value:.2f} times as long as {self.other}"

    def judge(self, panels: Sequence[Panel]) -> Iterator[Verdict]:
        """One verdict a panel."""
        for panel in panels:
            policy, other = panel.result(self.policy), panel.result(self.other)
            if policy is not None and other is not None:
                factor = policy.seconds().mean / other.seconds().mean
                answer: Answer = "holds" if 1 / SIMILAR <= factor <= SIMILAR else "fails"
                claim = f"{self.policy} about as long as {self.other}"
                yield Verdict(claim, panel.title, answer, f"{factor:.2f} ×", factor)


@dataclass(frozen=True, slots=True)
class Finds(Claim):
    """The policy ends with the true clusters: an adjusted Rand index of at least 0.95."""

    policy: str

    def describe(self, value: float) -> str:
        """The adjusted Rand index at the end."""
        return f"{self.policy} ends with an adjusted Rand index of {value:.2f}"

    def judge(self, panels: Sequence[Panel]) -> Iterator[Verdict]:
        """One verdict a panel."""
        for panel in panels:
            result = panel.result(self.policy)
            if result is not None:
                ari, clusters = result.final("ari").mean, result.final("clusters").mean
                answer: Answer = "holds" if ari >= 0.95 else "fails"
                evidence = f"ARI {ari:.2f}, {clusters:.1f} clusters"
                yield Verdict(f"{self.policy} finds the clusters", panel.title, answer, evidence, ari)


@dataclass(frozen=True, slots=True)
class Within(Claim):
    """The regret of a policy is at most what the panel's limit allows, whichever panel it is."""

    policy: str

    def describe(self, value: float) -> str:
        """The regret as a multiple of the rival's."""
        return f"{self.policy}'s regret is {value:.2f} times its rival's"

    def summarise(self, verdicts: Sequence[Verdict]) -> str:
        """The number of panels within the limit, and those beyond it; limits differ, so no mean is taken."""
        beyond = [f"{v.where} ({v.evidence})" for v in verdicts if v.answer == "fails"]
        within = f"{len(verdicts) - len(beyond)} of {len(verdicts)} environments"
        said = f"{self.policy} keeps its limit in {within}"
        return f"{said}, but not in {', '.join(beyond)}" if beyond else said

    def judge(self, panels: Sequence[Panel]) -> Iterator[Verdict]:
        """One verdict for every panel that has a limit, from mean regrets."""
        for found in regret_ratios(panels, self.policy):
            if found.limit is not None:
                rival = found.limit.of or "the best other"
                claim = f"{self.policy} at most {found.limit.factor:.2f} × {rival}"
                answer: Answer = "holds" if found.within_limit else "fails"
                evidence = f"{found.value:.2f} × {found.rival.policy}"
                yield Verdict(claim, found.panel.title, answer, evidence, found.value)


@dataclass(frozen=True, slots=True)
class Headlines(Claim):
    """The claims of papers about each panel, by paired differences: see `Panel.headlines`."""

    def describe(self, value: float) -> str:
        """How far below, or above."""
        return f"the regret that a paper claims to be lower is {value:+.1f} % off the other's"

    def summarise(self, verdicts: Sequence[Verdict]) -> str:
        """The numbers that hold, fail and are undecided; policies differ, so no mean is taken."""
        answers = [verdict.answer for verdict in verdicts]
        holds, fails, undecided = (answers.count(one) for one in get_args(Answer))
        return f"of {len(answers)} headline claims {holds} hold, {fails} fail and {undecided} are undecided"

    def judge(self, panels: Sequence[Panel]) -> Iterator[Verdict]:
        """One verdict for every headline of every panel."""
        for panel in panels:
            for lower, higher, paper in panel.headlines:
                for verdict in Below(lower, higher).judge([panel]):
                    yield verdict._replace(claim=f"{verdict.claim} ({paper})")


def changed(policy: str, letter: str, value: float) -> str:
    """The change of regret from end to end, in words."""
    return f"{policy}'s regret changes by {value:+.1f} % from the least {letter} to the greatest"


def compared(lower: PolicyResult, higher: PolicyResult) -> tuple[Answer, float]:
    """Whether the first is below the second, and their difference in per cent of the second.

    A single seed decides nothing.
    """
    # Seeds are shared, so differences are paired and the noise of environments cancels.
    gaps = lower.finals - higher.finals
    mean = float(gaps.mean())
    error = float(gaps.std(ddof=1) / np.sqrt(len(gaps))) if len(gaps) > 1 else np.inf
    change = 100.0 * mean / float(higher.finals.mean())
    # With a single seed the error is infinite, and nothing is decided.
    if abs(mean) <= DECISIVE * error or mean == 0.0:
        return "undecided", change
    return ("holds" if mean < 0 else "fails"), change


def ends(panels: Sequence[Panel], policy: str) -> Iterator[tuple[str, PolicyResult, PolicyResult]]:
    """A policy at the least and at the greatest value of what varies, for each dataset."""
    for dataset in dict.fromkeys(panel.dataset for panel in panels):
        group = sorted((p for p in panels if p.dataset == dataset), key=lambda panel: panel.value)
        first, last = group[0].result(policy), group[-1].result(policy)
        if len(group) > 1 and first is not None and last is not None:
            yield dataset, first, last


class Finding(NamedTuple):
    """A claim and all its verdicts."""

    claim: Claim
    verdicts: tuple[Verdict, ...]

    @property
    def clause(self) -> str:
        """The one verdict in words, or all of them together."""
        if len(self.verdicts) > 1:
            return self.claim.summarise(self.verdicts)
        (verdict,) = self.verdicts
        said = self.claim.describe(verdict.value)
        return f"{said} (undecided)" if verdict.answer == "undecided" else said


def judge_claims(claims: Sequence[Claim], panels: Sequence[Panel]) -> tuple[Finding, ...]:
    """Every claim that can be tested on these panels, with its verdicts."""
    findings = (Finding(claim, tuple(claim.judge(panels))) for claim in claims)
    return tuple(finding for finding in findings if finding.verdicts)


def summary_sentence(findings: Sequence[Finding], panels: Sequence[Panel]) -> str:
    """The figure in one sentence: who has the least regret, then the first claims."""
    clauses = [*least_regret(panels), *(finding.clause for finding in findings[:MOST_CLAUSES])]
    return f"{'; '.join(clauses)}." if clauses else ""


def least_regret(panels: Sequence[Panel]) -> Iterator[str]:
    """A clause for each policy that has the least regret somewhere: where, and how far below the next."""
    rankings = [ranking for panel in panels if len(ranking := panel.ranking()) > 1]
    best = [ranking[0].policy for ranking in rankings]
    for policy in sorted(set(best), key=lambda policy: (-best.count(policy), policy)):
        won = [ranking for ranking in rankings if ranking[0].policy == policy]
        below = sorted(100.0 * (1.0 - first.mean_regret / second.mean_regret) for first, second, *_ in won)
        if len(rankings) == 1:
            yield f"{policy} has the least regret, {below[0]:.0f} % below the next ({won[0][1].policy})"
        else:
            span = f"{below[0]:.0f}" if len(won) == 1 else f"{below[0]:.0f} to {below[-1]:.0f}"
            where = f"{len(won)} of {len(rankings)} environments"
            yield f"{policy} has the least regret in {where}, {span} % below the next"
