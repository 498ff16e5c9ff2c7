from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from coterie.experiments.plotting import FORMATS, VIEWS, draw
from coterie.experiments.results import Panel
from experiments.test_claims import panel, result

PANELS = [panel(result("CLUB", 1, 2), result("SCLUB", 2, 3))]


def test_a_picture_that_is_interrupted_leaves_the_old_one_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = {path: path.read_bytes() for path in draw("curves", "Regret", PANELS, tmp_path, "fig")}
    assert [path.name for path in old] == [f"fig.{kind}" for kind in FORMATS]

    def interrupted(canvas: Figure, file: Any, **settings: Any) -> None:
        with file.open("wb") if isinstance(file, Path) else file as half:
            half.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(Figure, "savefig", interrupted)
    with pytest.raises(KeyboardInterrupt):
        draw("curves", "Regret", PANELS, tmp_path, "fig")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == old


def drawn(view: str, panels: list[Panel]) -> Figure:
    return VIEWS[view](panels)


def lines_of(axes: Axes) -> dict[str, list[float]]:
    """The y values of each labelled line."""
    return {
        str(line.get_label()): np.asarray(line.get_ydata(), np.float64).tolist() for line in axes.get_lines()
    }


def points_of(axes: Axes) -> dict[str, Any]:
    """The points of each series that has error bars."""
    series: list[Any] = list(axes.containers)
    return {str(one.get_label()): one.lines[0].get_xydata() for one in series}


def test_curves_are_the_means_over_seeds_and_bands_the_errors() -> None:
    (axes,) = drawn("curves", PANELS).axes
    assert lines_of(axes) == {"CLUB": [0.75, 1.5], "SCLUB": [1.25, 2.5]}
    club = np.asarray(axes.collections[0].get_paths()[0].vertices)
    assert club[:, 1].min() == pytest.approx(0.5)
    assert club[:, 1].max() == pytest.approx(2.0)
    assert axes.get_xlim()[1] == 10


def test_panels_of_one_label_share_a_row() -> None:
    one = panel(result("CLUB", 1, 2))
    panels = [one, one._replace(dataset="yelp"), one._replace(label="theory's β")]
    shown = [axes.get_title() for axes in drawn("curves", panels).axes]
    assert shown == ["Synthetic", "Yelp", "Synthetic, theory's β", ""]


def test_a_policy_that_would_flatten_the_others_leaves_the_picture_and_is_named() -> None:
    far = panel(result("CLUB", 10, 10), result("SCLUB", 12, 12), result("LinUCBOne", 100, 100))
    (axes,) = drawn("curves", [far]).axes
    assert axes.get_ylim()[1] == pytest.approx(1.4 * 12)
    assert [text.get_text() for text in axes.texts] == ["LinUCB-One: 100 ↑"]


def test_a_sweep_ends_with_regret_against_what_varies() -> None:
    panels = [panel(result("CLUB", 4 * k, 4 * k), value=k) for k in (2.0, 1.0)]
    *over, against = drawn("sweep", panels).axes
    assert len(over) == 2
    assert [list(map(float, xy)) for xy in points_of(against)["CLUB"]] == [[1.0, 4.0], [2.0, 8.0]]


def test_clusters_show_regret_index_and_number() -> None:
    top, index, number = drawn("clusters", [panel(result("CLUB", 2, 2))]).axes
    assert lines_of(top)["CLUB"] == [1.0, 2.0]
    assert lines_of(index)["CLUB"] == [0.0, 1.0]
    assert lines_of(number)["CLUB"] == [1.0, 4.0]


def test_ratios_are_multiples_of_the_best_other() -> None:
    world = panel(result("AutoCLUB", 30, 30), result("CLUB", 60, 60), result("LinUCBOracle", 15, 15))
    (axes,) = drawn("ratios", [world]).axes
    dots = {label: float(points[0][0]) for label, points in points_of(axes).items()}
    assert dots == {"LinUCB, true clusters": 0.25, "AutoCLUB": 0.5}
