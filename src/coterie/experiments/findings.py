"""What a figure shows, in one sentence made from its data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from coterie.experiments.claims import Claim, Verdict, Within
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
        """The mean over all places, and in how many of them the claim holds."""
        said = self.claim.told(float(np.mean([verdict.value for verdict in self.verdicts])))
        if len(self.verdicts) == 1:
            return said if self.verdicts[0].answer != "undecided" else f"{said} (within the error)"
        if isinstance(self.claim, Within):  # every world has a limit of its own: a mean would say nothing
            return self.claim.counted(self.verdicts)
        holds = sum(verdict.answer == "holds" for verdict in self.verdicts)
        return f"{said} on average (claim holds in {holds} of {len(self.verdicts)})"


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
