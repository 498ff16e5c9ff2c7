"""Figures fit to print: PNG, SVG and PDF, the same bytes for the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import groupby, zip_longest
from math import ceil
from pathlib import Path
from textwrap import fill
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from coterie.atomic_files import atomic_write
from coterie.evaluation.estimates import LOGGED, UNIFORM
from coterie.experiments.results import (
    ORACLE,
    Panel,
    PolicyResult,
    RegretRatio,
    labels_of,
    multiples,
    regret_ratios,
)
from coterie.experiments.specs import PolicySpec
from coterie.extras import need
from coterie.policies.declarations import Style
from coterie.policies.factories import is_own
from coterie.policies.registry import find

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from coterie.evaluation import Evaluation

FORMATS = ("png", "svg", "pdf")
DPI = 300
WIDTH, HEIGHT = 2.6, 2.25  # inches a panel: four fill a page on its side
MIN_WIDTH = 5.2
"""Inches that a figure has across at least."""

LEGEND_LINE, LEGEND_LETTER, TITLE_LETTERS, NOTE_LETTERS = 0.65, 0.085, 11.5, 13.0
"""Inches of a line and of a letter in a legend, and letters of a title and of a note in an inch."""

CROP_FACTOR = 2.5
"""A policy with more than this many times the regret of the next is cropped, and its value written."""

MARKERS = 6
"""Markers on a curve."""

OWN_COLOURS = ("#8c564b", "#17a2a2", "#7a9a01", "#c2527d", "#3f51b5", "#a0522d")
"""Colours of policies that are not registered, in order of appearance."""

LINE_STYLES = ("-", "--", "-.", ":")
"""Lines of policies that share a name, and so a colour."""

RC_PARAMS: Mapping[str, Any] = MappingProxyType(
    {
        "font.size": 8.5,
        "axes.titlesize": 9.5,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#e6e6e6",
        "grid.linewidth": 0.6,
        "axes.axisbelow": True,
        "lines.linewidth": 1.3,
        "lines.markersize": 3.6,
        "legend.frameon": False,
        "svg.hashsalt": "coterie",
        "svg.fonttype": "none",
        "pdf.fonttype": 42,
        "figure.constrained_layout.use": True,
    }
)


def styles_of(specs: Sequence[PolicySpec]) -> list[Style]:
    """Styles of these policies in one drawing, with distinct labels.

    >>> specs = [PolicySpec("CLUB", {"beta": 1.0}), PolicySpec("CLUB", {"beta": 2.0})]
    >>> [(style.label, style.line) for style in styles_of(specs)]
    [('CLUB (beta 1)', '-'), ('CLUB (beta 2)', '--')]
    """
    names = [spec.name for spec in specs]
    own = [name for name in dict.fromkeys(names) if is_own(name)]
    styles = []
    for k, (name, label) in enumerate(zip(names, labels_of(specs), strict=True)):
        if is_own(name):
            style = Style(label, OWN_COLOURS[own.index(name) % len(OWN_COLOURS)], "h", "-")
        else:
            style = find(name).style
        if names.count(name) > 1:
            style = style._replace(label=label, line=LINE_STYLES[names[:k].count(name) % len(LINE_STYLES)])
        styles.append(style)
    return styles


def draw(view: str, title: str, panels: Sequence[Panel], folder: Path, name: str) -> list[Path]:
    """Draw a figure into `folder` in every format; nothing for a view that is a table only."""
    if view not in VIEWS or not panels:
        return []
    need("matplotlib", "drawing a figure")
    from matplotlib.style import context as style_context

    with style_context(dict(RC_PARAMS)):
        return save_figure(VIEWS[view](panels), title, folder, name)


def save_figure(canvas: Canvas, title: str, folder: Path, name: str) -> list[Path]:
    """Write a canvas with its title in every format; `RC_PARAMS` must be in effect."""
    kept = title.replace(" = ", "\u00a0=\u00a0")
    canvas.suptitle(fill(kept, int(canvas.get_figwidth() * TITLE_LETTERS)), fontsize=11)
    return list(_save(canvas, folder, name))


def _save(canvas: Canvas, folder: Path, name: str) -> Iterator[Path]:
    """Each picture whole or not at all."""
    # Matplotlib writes the date and its version by default; without them equal numbers give equal bytes.
    undated: Mapping[str, dict[str, Any]] = {
        "png": {"Software": None},
        "svg": {"Date": None},
        "pdf": {"CreationDate": None},
    }
    for kind in FORMATS:
        path, file = folder / f"{name}.{kind}", BytesIO()
        canvas.savefig(file, format=kind, dpi=DPI, metadata=undated[kind])
        atomic_write(path, file.getvalue())
        yield path


@contextmanager
def _grid(n: int, rows: int = 1, *, width: float = WIDTH) -> Iterator[tuple[Canvas, list[list[Axes]]]]:
    """A canvas of rows × n axes with room for a legend below."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(max(width * n, MIN_WIDTH), HEIGHT * rows + (0.8 if n > 1 else 1.3)))
    axes = canvas.subplots(rows, n, squeeze=False)
    yield canvas, [list(row) for row in axes]
    _legend(canvas)


def _legend(canvas: Canvas) -> None:
    """One legend for all axes, each policy once."""
    found = {
        label: handle
        for axes in canvas.axes
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    longest = max(len(label) for label in found)
    most = max(1, int(canvas.get_figwidth() / (LEGEND_LINE + LEGEND_LETTER * longest)))
    across = ceil(len(found) / max(1, ceil(len(found) / most)))  # rows of equal length
    canvas.legend(found.values(), found.keys(), loc="outside lower center", ncols=across, handlelength=3.2)


def _curve(axes: Axes, result: PolicyResult, style: Style, column: str, offset: float) -> None:
    """Mean over seeds with a band of ± one standard error; the offset keeps markers of curves apart."""
    band, rounds = result.band(column), result.traces[0].rounds
    # Markers of several curves at the same rounds would hide each other: `offset` shifts them.
    every = max(1, len(rounds) // MARKERS)
    axes.plot(
        rounds,
        band.mean,
        color=style.colour,
        linestyle=style.line,
        marker=style.marker,
        markevery=(int(every * offset), every),
        label=style.label,
    )
    axes.fill_between(
        rounds, band.mean - band.error, band.mean + band.error, color=style.colour, alpha=0.2, linewidth=0
    )


def _over_rounds(
    axes: Axes, panel: Panel, column: str, label: str, styles: Sequence[Style] | None = None
) -> None:
    from matplotlib.ticker import EngFormatter

    styles = styles or styles_of([result.spec for result in panel.results])
    for k, (result, style) in enumerate(zip(panel.results, styles, strict=True)):
        _curve(axes, result, style, column, (k + 1) / (len(panel.results) + 1))
    axes.set_xlim(0, int(panel.results[0].traces[0].rounds[-1]))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("round t")
    axes.set_ylabel(label)


class CurveOptions(NamedTuple):
    """How a figure of one panel looks: title, a sentence below, labels by number of a policy, and inches."""

    title: str
    note: str
    labels: Mapping[int, str]
    width: float | None = None


def draw_curves(panel: Panel, options: CurveOptions, folder: Path, name: str) -> list[Path]:
    """Draw regret over rounds of a single panel in every format."""
    need("matplotlib", "drawing a figure")
    from matplotlib.figure import Figure
    from matplotlib.style import context as style_context

    styles = [
        style._replace(label=options.labels.get(k, style.label))
        for k, style in enumerate(styles_of([result.spec for result in panel.results]))
    ]
    width = options.width or MIN_WIDTH
    with style_context(dict(RC_PARAMS)):
        canvas = Figure(figsize=(width, HEIGHT + 1.0))
        axes = canvas.subplots()
        _over_rounds(axes, panel, "regret", "cumulative regret", styles)
        _crop(axes, panel, styles)
        if options.title:
            axes.set_title(fill(options.title, int(width * TITLE_LETTERS)))
        axes.set_xlabel(f"round t\n{fill(options.note, int(width * NOTE_LETTERS))}")
        _legend(canvas)
        return list(_save(canvas, folder, name))


def relative(panels: Sequence[Panel]) -> Canvas:
    """Reward as a multiple of that of uniform play over rounds; regret where uniform play earns nothing."""
    across = min(4, len(panels))
    with _grid(across, ceil(len(panels) / across), width=3.0) as (canvas, axes):
        every = [one for row in axes for one in row]
        for one, panel in zip_longest(every, panels):
            if panel is None:
                one.set_axis_off()
                continue
            earns = bool(np.isfinite(panel.results[0].band("relative").mean[-1]))
            column, label = (
                ("relative", "reward / uniform play") if earns else ("regret", "cumulative regret")
            )
            _over_rounds(one, panel, column, label)
            if earns:
                _fit(one, panel, column)
            one.set_title(fill(panel.title, 30))
    return canvas


def _fit(axes: Axes, panel: Panel, column: str) -> None:
    """Fit the axis to the values after the first tenth of the rounds, which are noisy, and to 1."""
    means = [result.band(column).mean for result in panel.results]
    later = np.concatenate([mean[len(mean) // 10 :] for mean in means])
    low, high = min(1.0, float(np.nanmin(later))), float(np.nanmax(later))
    axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low) + 1e-9)


def curves(panels: Sequence[Panel]) -> Canvas:
    """Regret over rounds: a column for each dataset, a row for each label; one row for a single dataset."""
    labels = list(dict.fromkeys(panel.label for panel in panels))
    rows = [[panel for panel in panels if panel.label == label] for label in labels]
    if all(len(row) == 1 for row in rows):
        rows = [list(panels)]
    with _grid(max(map(len, rows)), len(rows)) as (canvas, axes):
        for row, group in zip(axes, rows, strict=True):
            for one, panel in zip_longest(row, group):
                if panel is None:
                    one.set_axis_off()
                    continue
                _over_rounds(one, panel, "regret", "cumulative regret" if one is row[0] else "")
                _crop(one, panel)
                one.set_title(panel.title)
    return canvas


def _crop(axes: Axes, panel: Panel, styles: Sequence[Style] | None = None) -> None:
    """End the axis below a policy that would flatten all others, and write its value there."""
    styles = styles or styles_of([result.spec for result in panel.results])
    finals = sorted((r.mean_regret, style.label) for r, style in zip(panel.results, styles, strict=True))
    # With two curves nothing is left to compare once one is cropped.
    if len(finals) < 3 or finals[-1][0] <= CROP_FACTOR * finals[-2][0]:
        return
    axes.set_ylim(0, 1.4 * finals[-2][0])
    axes.annotate(
        f"{finals[-1][1]}: {finals[-1][0]:,.0f} ↑",
        (0.98, 0.97),
        xycoords="axes fraction",
        ha="right",
        va="top",
        fontsize=7.5,
        color="#555555",
    )


def sweep(panels: Sequence[Panel]) -> Canvas:
    """Regret over rounds for each value of what varies, and at the end against it; a row a dataset."""
    groups = _by_dataset(panels)
    most = max(len(group) for group in groups)
    with _grid(most + 1, len(groups), width=2.25) as (canvas, axes):
        for row, group in zip(axes, groups, strict=True):
            top = 0.0
            for one, panel in zip(row, group, strict=False):
                _over_rounds(one, panel, "regret", "cumulative regret" if one is row[0] else "")
                _crop(one, panel)
                one.set_title(panel.title)
                top = max(top, one.get_ylim()[1])
            _against(row[-1], group, [panel.value for panel in group])
            for one in (*row[: len(group)], row[-1]):
                one.set_ylim(0, top)
            row[-1].set_title("at the horizon")
    return canvas


def gap(panels: Sequence[Panel]) -> Canvas:
    """Regret at the horizon against the true gap and against the noise; a row a dataset."""
    groups = _by_dataset(panels)
    quantities = list(dict.fromkeys(panel.quantity for panel in panels))
    with _grid(len(quantities), len(groups), width=3.4) as (canvas, axes):
        for row, group in zip(axes, groups, strict=True):
            for one, quantity in zip(row, quantities, strict=True):
                chosen = [panel for panel in group if panel.quantity == quantity]
                values = [panel.gamma if "γ" in quantity else panel.value for panel in chosen]
                one.set_xscale("log", base=2)
                one.minorticks_off()
                _against(one, chosen, values)
                one.set_title(chosen[0].title.split(",")[0])
                one.set_ylabel("regret at the horizon")
    return canvas


def clusters(panels: Sequence[Panel]) -> Canvas:
    """Regret, the adjusted Rand index and the number of clusters over rounds; a column a panel."""
    with _grid(len(panels), 3) as (canvas, axes):
        for k, panel in enumerate(panels):
            for row, (column, label) in zip(axes, CLUSTER_ROWS, strict=True):
                _over_rounds(row[k], panel, column, label if k == 0 else "")
                row[k].set_xlabel("round t" if row is axes[-1] else "")
            axes[0][k].set_title(panel.title)
            axes[1][k].set_ylim(0, 1.03)
    return canvas


CLUSTER_ROWS = (("regret", "cumulative regret"), ("ari", "adjusted Rand index"), ("clusters", "clusters"))


def _against(axes: Axes, panels: Sequence[Panel], values: Sequence[float]) -> None:
    """Regret at the horizon with ± one standard error, against a value a panel."""
    order = np.argsort(values)
    xs = np.asarray(values)[order]
    styles = styles_of([result.spec for result in panels[0].results])
    for k, style in enumerate(styles):
        ends = [panels[i].results[k].final("regret") for i in order]
        axes.errorbar(
            xs,
            [end.mean for end in ends],
            yerr=np.nan_to_num([end.error for end in ends]),
            color=style.colour,
            linestyle=style.line,
            marker=style.marker,
            capsize=2,
            label=style.label,
        )
    axes.set_xticks(xs, [f"{x:.2g}" if x < 10 else f"{x:g}" for x in xs])
    axes.set_ylim(bottom=0)
    axes.set_xlabel(panels[0].quantity)


def _by_dataset(panels: Sequence[Panel]) -> list[list[Panel]]:
    names = dict.fromkeys(panel.dataset for panel in panels)
    return [[panel for panel in panels if panel.dataset == name] for name in names]


RATIO_WIDTH, RATIO_LINE, RATIO_MARGINS = 7.2, 0.19, 1.5
"""Inches: the width, a line, and all that is above and below the lines."""

LABEL_LINES = 1.2
"""Lines that the name of an environment takes."""

RATIO_TICKS = (0.03, 0.06, 0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0)
LIMIT_COLOUR = "#555555"
LABEL_TEXT: Mapping[str, Any] = MappingProxyType({"weight": "bold", "va": "center", "ha": "left"})


def ratios(panels: Sequence[Panel]) -> Canvas:
    """Datasets down, grouped by world, ratios across on a logarithmic scale."""
    from matplotlib.figure import Figure

    found = regret_ratios(panels)
    groups = [list(group) for _, group in groupby(found, key=lambda ratio: ratio.panel.label)]
    height = sum(len(group) + LABEL_LINES for group in groups)
    canvas = Figure(figsize=(RATIO_WIDTH, RATIO_LINE * height + RATIO_MARGINS))
    axes = canvas.subplots()
    top = 0.0
    for group in groups:
        axes.text(0.0, top, group[0].panel.label, transform=axes.get_yaxis_transform(), **LABEL_TEXT)
        for k, ratio in enumerate(group):
            _ratio_line(axes, top + k + 1, ratio)
        top += len(group) + LABEL_LINES
    axes.set_ylim(top - 0.5, -0.8)
    _ratio_axis(axes)
    _ratio_legend(canvas, axes)
    return canvas


def _ratio_line(axes: Axes, y: float, found: RegretRatio) -> None:
    """A dataset: its name on the left, the policy of ratio 1 on the right, and the dots."""
    across = axes.get_yaxis_transform()
    axes.axhline(y, color="#e6e6e6", linewidth=0.6, zorder=0)
    axes.text(-0.01, y, found.panel.dataset_name, transform=across, va="center", ha="right")
    axes.text(1.01, y, find(found.rival.policy).style.label, transform=across, va="center", ha="left")
    if found.limit is not None:
        axes.plot(found.limit.factor, y, "|", color=LIMIT_COLOUR, markersize=9, label="AutoCLUB's limit")
    if found.oracle is not None:
        _ratio_dot(axes, y, found.oracle, found.rival, 6.5)
    _ratio_dot(axes, y, found.own, found.rival, 5.5)


def _ratio_dot(axes: Axes, y: float, result: PolicyResult, rival: PolicyResult, size: float) -> None:
    """A regret ± its standard error, in units of the rival's mean."""
    style, regret, unit = find(result.policy).style, result.final("regret"), rival.mean_regret
    axes.errorbar(
        regret.mean / unit,
        y,
        xerr=np.nan_to_num(regret.error / unit),
        color=style.colour,
        marker=style.marker,
        markersize=size,
        linestyle="none",
        label=style.label,
    )


def _ratio_axis(axes: Axes) -> None:
    """Ratios on a logarithmic scale, with a line at 1."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.axvline(1.0, color="#000000", linewidth=0.8, zorder=1)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(RATIO_TICKS))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("regret as a multiple of that of the policy on the right")


def _ratio_legend(canvas: Canvas, axes: Axes) -> None:
    found = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    canvas.legend(found.values(), found.keys(), loc="outside lower center", ncols=len(found))


CELL_WIDTH, CELL_HEIGHT, HEATMAP_MARGINS = 0.82, 0.23, (1.6, 1.9)
"""Inches: a cell, and what is beside and above the cells."""

HEADING_LETTERS = 13
"""Letters in a line of an environment's name."""

DARKEST = 4.0
"""Multiples from here on have the same colour."""


def winners(panels: Sequence[Panel]) -> Canvas:
    """Policies down, the best on average first, environments across; the least of each in bold."""
    from matplotlib.figure import Figure

    found = multiples(panels)
    width, height = (
        CELL_WIDTH * len(panels) + HEATMAP_MARGINS[0],
        CELL_HEIGHT * len(found) + HEATMAP_MARGINS[1],
    )
    canvas = Figure(figsize=(width, height))
    axes = canvas.subplots()
    values = np.array(list(found.values()))
    axes.pcolormesh(
        np.clip(np.log(values), 0.0, np.log(DARKEST)), cmap="YlOrRd", vmin=0.0, vmax=np.log(DARKEST)
    )
    for row, (policy, line) in enumerate(found.items()):
        for column, value in enumerate(line):
            _heatmap_cell(axes, row, column, value, is_least=value == 1.0 and policy != ORACLE)
    axes.set_yticks(np.arange(len(found)) + 0.5, [find(name).style.label for name in found])
    axes.set_xticks(np.arange(len(panels)) + 0.5, [fill(panel.title, HEADING_LETTERS) for panel in panels])
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)
    return canvas


def _heatmap_cell(axes: Axes, row: int, column: int, value: float, *, is_least: bool) -> None:
    """A multiple in its cell; nothing for a policy that did not take part."""
    if np.isfinite(value):
        colour = "#ffffff" if value > 0.75 * DARKEST else "#1a1a1a"
        weight = "bold" if is_least else "normal"
        axes.text(
            column + 0.5, row + 0.5, f"{value:.2f}", ha="center", va="center", color=colour, weight=weight
        )


ESTIMATE_WIDTH = 2.5
"""Inches of a panel of estimates."""

ESTIMATED = {
    "replay": "its first rounds",
    "ips": "after all earlier events",
    "snips": "after all earlier events",
    "dr": "after all earlier events",
    "model": "predicted, not measured",
}
"""The rounds that each estimator is about, as its panel's second line says."""

BASELINES = {LOGGED: "--", UNIFORM: ":"}
"""The line of each baseline; a log without propensities has no uniform play."""


def draw_estimates(
    found: Evaluation, specs: Sequence[PolicySpec], title: str, folder: Path, name: str
) -> list[Path]:
    """Draw a panel for each estimator, policies below each other, in every format."""
    from matplotlib.figure import Figure
    from matplotlib.style import context as style_context

    estimators = list(dict.fromkeys(one.estimator for one in found.estimates))
    with style_context(dict(RC_PARAMS)):
        size = (max(ESTIMATE_WIDTH * len(estimators) + 0.8, 5.2), 1.7 + 0.3 * len(specs))
        canvas = Figure(figsize=size)
        panels = canvas.subplots(1, len(estimators), squeeze=False, sharey=True, sharex=True)[0]
        for axes, estimator in zip(panels, estimators, strict=True):
            _estimate_panel(axes, found, specs, estimator)
        dotted = ", dotted: uniform play" if len(found.baselines) > 1 else ""
        canvas.supxlabel(f"mean reward a round; dashed: as logged{dotted}", fontsize=8.5)
        return save_figure(canvas, title, folder, name)


def _estimate_panel(axes: Axes, found: Evaluation, specs: Sequence[PolicySpec], estimator: str) -> None:
    by_policy = {one.policy: one for one in found.estimates if one.estimator == estimator}
    labels, styles = labels_of(specs), styles_of(specs)
    for row, (label, style) in enumerate(zip(labels, styles, strict=True)):
        one = by_policy[label]
        axes.hlines(row, one.low, one.high, color=style.colour, linewidth=1.6)
        axes.plot([one.reward], [row], marker=style.marker, color=style.colour, markersize=5)
    for baseline in found.baselines:
        line = BASELINES[baseline.policy]
        axes.axvline(baseline.reward, color="#777777", linestyle=line, linewidth=0.9)
    axes.set_yticks(range(len(styles)), [style.label for style in styles])
    axes.set_ylim(len(styles) - 0.4, -0.6)
    axes.set_title(f"{estimator}\n{ESTIMATED[estimator]}", fontsize=8.5)


VIEWS: Mapping[str, Callable[[Sequence[Panel]], Canvas]] = MappingProxyType(
    {
        "curves": curves,
        "sweep": sweep,
        "gap": gap,
        "clusters": clusters,
        "ratios": ratios,
        "relative": relative,
        "winners": winners,
    }
)
"""Functions that draw a figure, by the name of its view; other views are tables only."""
