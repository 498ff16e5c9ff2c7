"""One page that shows everything: figures, tables, constants, the command, the machine, what was left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, get_args

from coterie.experiments.claims import Answer
from coterie.experiments.inline import inlined
from coterie.experiments.machine import Fact, machine, versions
from coterie.experiments.markdown import verdicts
from coterie.experiments.specs import EnvironmentSpec
from coterie.experiments.tables import Table
from coterie.experiments.tuning import BUDGET, FIRST_SEED
from coterie.storage import atomic_write

if TYPE_CHECKING:
    from coterie.experiments.reproduce import Outcome, Outcomes

ANSWERS = get_args(Answer)
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; max-width: 76rem; margin: 2rem auto; }
body { padding: 0 1rem; } h1, h2 { line-height: 1.2; }
h2 { margin-top: 3rem; border-top: 1px solid #ddd; padding-top: 1.5rem; }
figure { margin: 1rem 0; } figure svg { width: 100%; height: auto; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .875rem; margin: 1rem 0; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; white-space: nowrap; }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid #e5e5e5; }
th:first-child, td:first-child { text-align: left; }
.found { font-size: 1.1rem; } code { background: #f4f4f4; padding: .1rem .3rem; border-radius: 3px; }
.holds { color: #00664a; } .fails { color: #a33a00; } .undecided { color: #555; }
@media print { h2 { break-before: page; } }
"""


def write(found: Outcomes) -> None:
    """Write the report to its place, whole or not at all."""
    atomic_write(found.report, "\n".join(_page(found)).encode())


def _page(found: Outcomes) -> Iterator[str]:
    yield "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
    yield "<meta name='viewport' content='width=device-width, initial-scale=1'>"
    yield f"<title>Coterie: reproduction report</title><style>{STYLE}</style></head><body>"
    yield "<h1>Online clustering of bandits, reproduced</h1>"
    yield f"<p>Made by <code>{escape(found.request.command)}</code></p>"
    yield from _skipped(found.skipped)
    for outcome in found.figures:
        yield from _section(outcome)
    yield from _method(found)
    yield "</body></html>"


def _skipped(lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield "<h2>Left out</h2><ul>"
        yield from (f"<li>{escape(line)}</li>" for line in lines)
        yield "</ul>"


def _section(outcome: Outcome) -> Iterator[str]:
    figure, plan = outcome.plan.figure, outcome.plan
    yield f"<h2 id='{figure.name}'>{figure.name}: {escape(figure.title)}</h2>"
    if outcome.sentence:
        yield f"<p class='found'>{escape(outcome.sentence)}</p>"
    pictures = [path for path in outcome.files if path.suffix == ".svg"]
    for path in pictures:
        yield f"<figure>{inlined(path, figure.name)}</figure>"
    if figure.policies:
        seeds = f"seeds {plan.seeds[0]} to {plan.seeds[-1]}"
        rounds = _listed(spot.horizon for spot in plan.spots())
        yield f"<p>T = {rounds}; {seeds}; all numbers are means, bands and bars ± one standard error.</p>"
    judged = verdicts(outcome.findings)
    for table in (*outcome.tables, *((judged,) if judged.rows else ())):
        yield from _table(table)
    if figure.policies:
        yield from _worlds(outcome)


def _table(table: Table) -> Iterator[str]:
    yield f"<div class='wide'><table><caption>{escape(table.title)}</caption><thead><tr>"
    yield from (f"<th>{escape(cell)}</th>" for cell in table.heading)
    yield "</tr></thead><tbody>"
    for row in table.rows:
        yield f"<tr>{''.join(map(_cell, row))}</tr>"
    yield "</tbody></table></div>"


def _cell(text: str) -> str:
    """A cell; answers to claims get a colour."""
    return f"<td class='{text}'>{text}</td>" if text in ANSWERS else f"<td>{escape(text)}</td>"


def _worlds(outcome: Outcome) -> Iterator[str]:
    """The parameters of the environments: those that all share, and those that vary."""
    worlds = [spot.environment for spot in outcome.plan.spots()]
    names = EnvironmentSpec.names()
    shared = [name for name in names if len({getattr(world, name) for world in worlds}) == 1]
    varied = [name for name in names if name not in shared]
    yield "<details><summary>Parameters of the worlds</summary>"
    yield from _facts(Fact(name, str(getattr(worlds[0], name))) for name in shared)
    rows = tuple(tuple(str(getattr(world, name)) for name in varied) for world in worlds)
    if varied:
        yield from _table(Table("what varies", tuple(varied), rows))
    tried = _listed(choice.tried for choice in outcome.choices)
    rounds = _listed(choice.study.rounds for choice in outcome.choices)
    yield f"<p>Constants: {tried} points tried for each policy, {rounds} rounds each.</p>"
    yield "</details>"


def _listed(numbers: Iterable[int]) -> str:
    """Each number once, least first."""
    return " or ".join(f"{n:,}" for n in sorted(set(numbers)))


def _method(found: Outcomes) -> Iterator[str]:
    protocol = found.request.protocol
    yield "<h2>How constants were chosen</h2>"
    seeds = ", ".join(str(seed) for seed in protocol.seeds)
    yield (
        f"<p>One protocol for every policy: {BUDGET} points of a grid, each played on the seeds {seeds} for "
        f"as many rounds as are reported, {protocol.horizon:,} at most; the point of least mean regret is "
        f"used. Reported seeds are below {FIRST_SEED} and were never used for tuning. α and β are tried in "
        "units of the noise σ, lengths of exploration in rounds per user.</p>"
    )
    yield "<h2>Machine and versions</h2>"
    yield from _facts([*machine(), *versions()])
    yield "<p>Results: <code>runs/</code> beside this page, one Parquet file a run.</p>"


def _facts(facts: Iterable[Fact]) -> Iterator[str]:
    yield "<table><tbody>"
    yield from (f"<tr><td>{escape(fact.name)}</td><td>{escape(fact.value)}</td></tr>" for fact in facts)
    yield "</tbody></table>"
