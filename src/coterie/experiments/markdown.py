"""Tables and verdicts of a figure as Markdown, to be pasted into a page, a README or an issue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coterie.experiments.findings import Finding
from coterie.experiments.results import NAMES
from coterie.experiments.tables import Table


def page(told: str, tables: Sequence[Table], findings: Sequence[Finding]) -> str:
    """What was found, in a sentence, in tables and claim by claim."""
    shown = [table for table in (*tables, verdicts(findings)) if table.rows]
    parts = [told, *("\n".join(lines(table)) for table in shown)]
    return "\n\n".join(part for part in parts if part) + "\n"


def lines(table: Table) -> Iterator[str]:
    """A table, its title above.

    >>> list(lines(Table("Ages", ("who", "years"), (("a|b", "7"),))))
    ['Ages:', '', '| who | years |', '|---|---|', '| a\\\\|b | 7 |']
    """
    yield f"{table.title}:"
    yield ""
    yield _line(table.heading)
    yield f"|{'---|' * len(table.heading)}"
    yield from (_line(row) for row in table.rows)


def verdicts(findings: Sequence[Finding]) -> Table:
    """Every claim in every place, with the evidence."""
    return Table(
        "Claims (undecided: within two standard errors, or a single seed)",
        ("claim", "where", "answer", "evidence"),
        tuple(
            (verdict.claim, NAMES.get(verdict.where, verdict.where), verdict.answer, verdict.evidence)
            for finding in findings
            for verdict in finding.verdicts
        ),
    )


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
