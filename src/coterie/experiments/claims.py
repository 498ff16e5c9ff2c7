"""Claims about regret that the data can bear out or not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from coterie.experiments.results import Entry, Panel
from coterie.experiments.standings import standings

Answer: TypeAlias = Literal["holds", "fails", "undecided"]

SURE = 2.0
"""Standard errors that a difference must exceed to count."""

ALIKE = 1.5
"""The greatest factor between times that are about the same."""


class Verdict(NamedTuple):
    """What the data say to a claim, in one place."""

    claim: str
    where: str
    answer: Answer
    evidence: str
    value: float


class Claim(ABC):
    """Something that the paper says, or that one would like to know."""

    @abstractmethod
    def told(self, value: float) -> str:
        """What was found, as a clause, for the mean of the verdicts' values."""

    @abstractmethod
    def judge(self, panels: Sequence[Panel]) -> Iterator[Verdict]:
        """A verdict for every place that the claim can be tried in."""

    def counted(self, verdicts: Sequence[Verdict]) -> str:
        """What several verdicts say together: their mean, and in how many places the claim holds."""
        said = self.told(float(np.mean([verdict.value for verdict in verdicts])))
        holds = sum(verdict.answer == "holds" for verdict in verdicts)
        return f"{said} on average (claim holds in {holds} of {len(verdicts)})"


@dataclass(frozen=True, slots=True)
class Below(Claim):
    """The regret of `lower` is below that of `higher`, seed by seed in the same worlds."""

    lower: str
    higher: str

    def told(self, value: float) -> str:
        """How far below, or above."""
        side = "below" if value < 0 else "above"
        return f"{self.lower}'s regret is {abs(value):.1f} % {side} {self.higher}'s"

    def judge(self, panels: Sequence[Panel]) -> Iterator[Verdict]:
        """One verdict a panel, from paired differences."""
        for panel in panels:
            lower, higher = panel.entry(self.lower), panel.entry(self.higher)
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

    def told(self, value: float) -> str:
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

    def told(self, value: float) -> str:
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

    def told(self, value: float) -> str:
        """How many times slower."""
        return f"{self.slow} takes {value:.1f} times as long as {self.fast}"

    def judge(self, panels: Sequence[Panel]) -> Iterator[Verdict]:
        """One verdict a panel."""
        for panel in panels:
            slow, fast = panel.entry(self.slow), panel.entry(self.fast)
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

    def told(self, value: float) -> str:
        """The ratio of the times."""
        return f"{self.policy} takes {value:.2f} times as long as {self.other}"

    def judge(self, panels: Sequence[Panel]) -> Iterator[Verdict]:
        """One verdict a panel."""
        for panel in panels:
            policy, other = panel.entry(self.policy), panel.entry(self.other)
            if policy is not None and other is not None:
                factor = policy.seconds().mean / other.seconds().mean
                answer: Answer = "holds" if 1 / ALIKE <= factor <= ALIKE else "fails"
                claim = f"{self.policy} about as long as {self.other}"
                yield Verdict(claim, panel.title, answer, f"{factor:.2f} ×", factor)


@dataclass(frozen=True, slots=True)
class Finds(Claim):
    """The policy ends with the true clusters: an adjusted Rand index of at least 0.95."""

    policy: str

    def told(self, value: float) -> str:
        """The adjusted Rand index at the end."""
        return f"{self.policy} ends with an adjusted Rand index of {value:.2f}"

    def judge(self, panels: Sequence[Panel]) -> Iterator[Verdict]:
        """One verdict a panel."""
        for panel in panels:
            entry = panel.entry(self.policy)
            if entry is not None:
                ari, clusters = entry.final("ari").mean, entry.final("clusters").mean
                answer: Answer = "holds" if ari >= 0.95 else "fails"
                evidence = f"ARI {ari:.2f}, {clusters:.1f} clusters"
                yield Verdict(f"{self.policy} finds the clusters", panel.title, answer, evidence, ari)


@dataclass(frozen=True, slots=True)
class Within(Claim):
    """The regret of a policy is at most what the panel's limit allows, whichever panel it is."""

    policy: str

    def told(self, value: float) -> str:
        """The regret as a multiple of the rival's."""
        return f"{self.policy}'s regret is {value:.2f} times its rival's"

    def counted(self, verdicts: Sequence[Verdict]) -> str:
        """In how many worlds the limit is kept, and in which it is not; each has its own, so no mean."""
        beyond = [f"{v.where} ({v.evidence})" for v in verdicts if v.answer == "fails"]
        said = f"{self.policy} keeps its limit in {len(verdicts) - len(beyond)} of {len(verdicts)} worlds"
        return f"{said}, but not in {', '.join(beyond)}" if beyond else said

    def judge(self, panels: Sequence[Panel]) -> Iterator[Verdict]:
        """One verdict for every panel that has a limit, from mean regrets."""
        for found in standings(panels, self.policy):
            if found.limit is not None:
                rival = found.limit.of or "the best other"
                claim = f"{self.policy} at most {found.limit.factor:.2f} × {rival}"
                answer: Answer = "holds" if found.kept else "fails"
                evidence = f"{found.ratio:.2f} × {found.rival.policy}"
                yield Verdict(claim, found.panel.title, answer, evidence, found.ratio)


def changed(policy: str, letter: str, value: float) -> str:
    """How regret changes from end to end, in words."""
    return f"{policy}'s regret changes by {value:+.1f} % from the least {letter} to the greatest"


def compared(lower: Entry, higher: Entry) -> tuple[Answer, float]:
    """Is the first below the second, and by how many per cent of the second is it off?

    A single seed decides nothing.
    """
    gaps = lower.finals - higher.finals
    mean = float(gaps.mean())
    error = float(gaps.std(ddof=1) / np.sqrt(len(gaps))) if len(gaps) > 1 else np.inf
    change = 100.0 * mean / float(higher.finals.mean())
    if abs(mean) <= SURE * error or mean == 0.0:
        return "undecided", change
    return ("holds" if mean < 0 else "fails"), change


def ends(panels: Sequence[Panel], policy: str) -> Iterator[tuple[str, Entry, Entry]]:
    """A policy at the least and at the greatest value of what varies, for each dataset."""
    for dataset in dict.fromkeys(panel.dataset for panel in panels):
        group = sorted((p for p in panels if p.dataset == dataset), key=lambda panel: panel.value)
        first, last = group[0].entry(policy), group[-1].entry(policy)
        if len(group) > 1 and first is not None and last is not None:
            yield dataset, first, last
