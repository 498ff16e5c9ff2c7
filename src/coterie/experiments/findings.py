"""What a figure shows, in one sentence made from its data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from coterie.experiments.claims import Claim, Verdict
from coterie.experiments.results import Panel
from coterie.experiments.standings import ORACLE

MOST = 3
"""Clauses of a sentence."""


class Finding(NamedTuple):
    """A claim, all its verdicts, and the clause that sums them up."""

    claim: Claim
    verdicts: tuple[Verdict, ...]

    @property
    def clause(self) -> str:
        """What the one verdict says, or what all of them say together."""
        if len(self.verdicts) > 1:
            return self.claim.counted(self.verdicts)
        (verdict,) = self.verdicts
        said = self.claim.told(verdict.value)
        return f"{said} (undecided)" if verdict.answer == "undecided" else said


def find_out(claims: Sequence[Claim], panels: Sequence[Panel]) -> tuple[Finding, ...]:
    """Every claim that can be tried on these panels, with its verdicts."""
    findings = (Finding(claim, tuple(claim.judge(panels))) for claim in claims)
    return tuple(finding for finding in findings if finding.verdicts)


def sentence(findings: Sequence[Finding], panels: Sequence[Panel]) -> str:
    """What was found, to be read at the end of a long wait."""
    clauses = [finding.clause for finding in findings[:MOST]]
    best = least(panels)
    if best is not None:
        clauses.append(f"the least regret has {best}")
    return f"{'; '.join(clauses)}." if clauses else ""


def least(panels: Sequence[Panel]) -> str | None:
    """The policies of least mean regret, with how many panels each is best in; the oracle does not count."""
    fields = [[entry for entry in panel.entries if entry.policy != ORACLE] for panel in panels]
    best = [min(field, key=lambda entry: float(entry.finals.mean())).policy for field in fields if field]
    if not best:
        return None
    counts = sorted(set(best), key=lambda policy: (-best.count(policy), policy))
    if len(best) == 1:
        return counts[0]
    return ", ".join(f"{policy} ({best.count(policy)} of {len(best)})" for policy in counts)
