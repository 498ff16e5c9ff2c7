"""A comparison as files for a paper: a table with booktabs, captions, and what to cite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import NamedTuple

import numpy as np

from coterie.atomic_files import atomic_write
from coterie.experiments.citations import WORKS, Work, bibliography
from coterie.experiments.results import PolicyResult
from coterie.experiments.specs import Value, format_value
from coterie.types import Floats

LEVEL = 0.95
"""Confidence of the intervals in tables."""

GREEK = ("alpha", "beta", "gamma", "sigma")
"""Parameters that a table writes as letters."""

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
    """What captions say: the environment and its seeds, how constants were chosen, microseconds a round."""

    title: str
    tuning: str
    microseconds: Mapping[str, float]
    scale: str
    """Option of `\\includegraphics`: as wide as the text, unless a width was chosen."""


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
        "figure.tex": latex_figure(results, labels, facts),
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
        r"  \small",
        r"  \setlength{\belowcaptionskip}{6pt}",
        f"  \\caption{{{_table_caption(results, facts)} {_origins(results, labels)}}}",
        r"  \label{tab:regret}",
        f"  \\begin{{tabular}}{{@{{}}l{'r' * (len(heading) - 2)}l@{{}}}}",
        r"    \toprule",
        f"    {' & '.join(heading)} \\\\",
        r"    \midrule",
        *(f"    {' & '.join(row)} \\\\" for row in rows),
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def latex_figure(results: Sequence[PolicyResult], labels: Sequence[str], facts: PaperFacts) -> str:
    """The figure `regret.pdf` with its caption, for a document with `\\usepackage{graphicx}`."""
    bands = escaped(band_note(len(results[0].traces)))
    caption = f"Cumulative regret over rounds ({bands}). {_circumstances(facts)} {_origins(results, labels)}"
    lines = [
        r"\begin{figure}",
        r"  \centering",
        f"  \\includegraphics{facts.scale}{{regret.pdf}}",
        f"  \\caption{{{caption}}}",
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


def named_seeds(seeds: Sequence[int]) -> str:
    """The seeds in words.

    >>> named_seeds([0, 1, 2]), named_seeds([3, 7]), named_seeds([5])
    ('seeds 0 to 2', 'seeds 3, 7', 'seed 5')
    """
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    is_range = list(seeds) == list(range(seeds[0], seeds[-1] + 1))
    return f"seeds {seeds[0]} to {seeds[-1]}" if is_range else f"seeds {', '.join(map(str, seeds))}"


def _table_caption(results: Sequence[PolicyResult], facts: PaperFacts) -> str:
    """What the columns are."""
    n_seeds = len(results[0].traces)
    interval = rf" (mean $\pm$ half of the {100 * LEVEL:.0f}\% Student interval over {n_seeds} seeds)"
    shown = f"Cumulative regret at the horizon{interval if n_seeds > 1 else ''}"
    return f"{shown} and time of a round, measured one run at a time. {_circumstances(facts)}"


def _circumstances(facts: PaperFacts) -> str:
    """The environment with its seeds, and how constants were chosen."""
    return escaped(f"{facts.title[:1].upper()}{facts.title[1:]}. {facts.tuning}".strip())


def _origins(results: Sequence[PolicyResult], labels: Sequence[str]) -> str:
    """Whose policies these are; policies of one work are named together, those of your own are left out."""
    named: dict[Work, dict[str, None]] = {}
    for result, label in zip(results, labels, strict=True):
        if (work := WORKS.get(result.spec.name)) is not None:
            # Once, where labels tell the constants of one policy apart.
            name = result.spec.name if label.startswith(f"{result.spec.name} (") else label
            named.setdefault(work, {})[escaped(name)] = None
    origins = [f"{', '.join(names)}~\\cite{{{work.key}}}" for work, names in named.items()]
    return f"{'; '.join(origins)}." if origins else ""


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
    return [*cells, _constants(result.spec.params)]


def _constants(params: Mapping[str, Value]) -> str:
    r"""Parameters with their values, Greek letters as such.

    >>> _constants({"alpha": 0.5, "explore": 20})
    '$\\alpha$ 0.5, explore 20'
    """
    names = {name: f"$\\{name}$" if name in GREEK else escaped(name) for name in params}
    return ", ".join(f"{names[name]} {escaped(format_value(value))}" for name, value in params.items())


def _number(value: float, form: str) -> str:
    return "--" if isnan(value) else format(value, form)
