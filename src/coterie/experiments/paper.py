"""A comparison as files for a paper: a table with booktabs, captions, and what to cite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import NamedTuple

import numpy as np

from coterie.atomic_files import atomic_write
from coterie.experiments.citations import WORKS, bibliography
from coterie.experiments.results import PolicyResult
from coterie.types import Floats

LEVEL = 0.95
"""Confidence of the intervals in tables."""

ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "σ": r"$\sigma$",
    "×": r"$\times$",
    "±": r"$\pm$",
    "µ": r"$\mu$",
    **{one: f"\\{one}" for one in "&%$#_{}"},
}
"""Characters that LaTeX would not print as they are."""


class PaperFacts(NamedTuple):
    """What captions say: the environment in words, how constants were chosen, and microseconds a round."""

    title: str
    tuning: str
    microseconds: Mapping[str, float]


def escaped(text: str) -> str:
    r"""Text as LaTeX prints it.

    >>> escaped("50 % of a_b")
    '50 \\% of a\\_b'
    """
    return "".join(ESCAPES.get(one, one) for one in text)


def half_width(values: Floats, level: float = LEVEL) -> float:
    """Half the width of Student's interval of a mean; NaN for a single value.

    >>> round(half_width(np.array([1.0, 2.0, 3.0])), 2)
    2.48
    """
    from scipy.stats import t

    n = len(values)
    return (
        float(t.ppf(0.5 + level / 2, n - 1)) * float(values.std(ddof=1)) / n**0.5 if n > 1 else float("nan")
    )


def write_paper(
    folder: Path, results: Sequence[PolicyResult], labels: Sequence[str], facts: PaperFacts
) -> list[Path]:
    """Write `table.tex`, `figure.tex` and `references.bib` beside the picture `regret.pdf`."""
    files = {
        "table.tex": latex_table(results, labels, facts),
        "figure.tex": latex_figure(results, facts),
        "references.bib": bibliography([result.spec for result in results]),
    }
    for name, text in files.items():
        atomic_write(folder / name, text.encode())
    return [folder / name for name in files]


def latex_table(results: Sequence[PolicyResult], labels: Sequence[str], facts: PaperFacts) -> str:
    """A table, least regret first, for a document with `\\usepackage{booktabs}`."""
    ranked = sorted(zip(results, labels, strict=True), key=lambda pair: pair[0].mean_regret)
    has_groups = any(not isnan(result.final("ari").mean) for result in results)
    heading = [
        "Policy",
        "Regret",
        "Clusters",
        *(["ARI"] if has_groups else []),
        r"$\mu$s a round",
        "Constants",
    ]
    rows = [_row(result, label, facts, has_groups, bold=k == 0) for k, (result, label) in enumerate(ranked)]
    lines = [
        r"\begin{table}",
        r"  \centering",
        f"  \\caption{{{_caption(results, facts)} Time is that of one run alone on one processor.}}",
        r"  \label{tab:regret}",
        f"  \\begin{{tabular}}{{l{'r' * (len(heading) - 2)}l}}",
        r"    \toprule",
        f"    {' & '.join(heading)} \\\\",
        r"    \midrule",
        *(f"    {' & '.join(row)} \\\\" for row in rows),
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def latex_figure(results: Sequence[PolicyResult], facts: PaperFacts) -> str:
    """The figure `regret.pdf` with its caption, for a document with `\\usepackage{graphicx}`."""
    lines = [
        r"\begin{figure}",
        r"  \centering",
        r"  \includegraphics{regret.pdf}",
        f"  \\caption{{{_caption(results, facts, what=f'Regret over rounds; {_bands(results)}')}}}",
        r"  \label{fig:regret}",
        r"\end{figure}",
    ]
    return "\n".join(lines) + "\n"


def band_note(n_seeds: int) -> str:
    """What the band of a curve is, in a sentence for below a figure.

    >>> band_note(1)
    'one seed'
    """
    return "one seed" if n_seeds == 1 else f"mean over {n_seeds} seeds, bands: ± one standard error"


def _bands(results: Sequence[PolicyResult]) -> str:
    return escaped(band_note(len(results[0].traces)))


def _caption(results: Sequence[PolicyResult], facts: PaperFacts, what: str = "") -> str:
    """What is shown, where, over which seeds, with which constants, and whose policies they are."""
    seeds = [trace.seed for trace in results[0].traces]
    named = (
        f"seeds {seeds[0]} to {seeds[-1]}"
        if seeds == list(range(seeds[0], seeds[-1] + 1))
        else (f"seeds {', '.join(map(str, seeds))}")
    )
    interval = f"mean $\\pm$ half the width of the {LEVEL:.0%} Student interval over {len(seeds)} seeds"
    shown = what or f"Cumulative regret at the horizon, {interval.replace('%', chr(92) + '%')}"
    keys = dict.fromkeys(WORKS[r.spec.name].key for r in results if r.spec.name in WORKS)
    cited = f" Policies are those of \\cite{{{','.join(keys)}}}." if keys else ""
    if len(seeds) == 1:
        shown, named = what or "Cumulative regret at the horizon of one seed", f"seed {seeds[0]}"
    world = escaped(facts.title[:1].upper() + facts.title[1:])
    return f"{shown} ({named}). {world}. {escaped(facts.tuning)}{cited}"


def _row(result: PolicyResult, label: str, facts: PaperFacts, has_groups: bool, *, bold: bool) -> list[str]:
    reach = half_width(np.asarray(result.finals))
    regret = f"{result.mean_regret:,.1f}" + ("" if isnan(reach) else f" $\\pm$ {reach:,.1f}")
    ari = [_number(result.final("ari").mean, ".2f")] if has_groups else []
    time = facts.microseconds.get(str(result.spec), float("nan"))
    cells = [
        escaped(label),
        regret,
        _number(result.final("clusters").mean, ".1f"),
        *ari,
        _number(time, ",.1f"),
    ]
    if bold:
        cells[0] = f"\\textbf{{{cells[0]}}}"
    return [*cells, escaped(str(result.spec.params))]


def _number(value: float, form: str) -> str:
    return "--" if isnan(value) else format(value, form)
