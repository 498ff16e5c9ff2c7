from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.colors
import matplotlib.image
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from coterie.experiments.plotting import FORMATS, VIEWS, draw
from coterie.experiments.results import Limit, Panel
from coterie.policies import REGISTRY
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


def test_the_gap_is_drawn_against_its_true_value_and_the_noise_against_sigma() -> None:
    one = panel(result("CLUB", 6, 6), value=0.5)._replace(quantity="gap γ", gamma=0.3)
    two = panel(result("CLUB", 9, 9), value=0.2)._replace(quantity="noise σ", gamma=0.3)
    gap, noise = drawn("gap", [one, two]).axes
    assert points_of(gap)["CLUB"].tolist() == [[0.3, 6.0]]
    assert points_of(noise)["CLUB"].tolist() == [[0.2, 9.0]]
    assert (gap.get_xlabel(), noise.get_xlabel()) == ("gap γ", "noise σ")


def test_bars_are_standard_errors() -> None:
    *_, against = drawn("sweep", [panel(result("CLUB", 2, 6), value=1.0)]).axes
    series: Any = against.containers[0]
    (low, high), *_ = series.lines[2][0].get_segments()
    assert (float(low[1]), float(high[1])) == pytest.approx((2.0, 6.0))  # 4 ± 2


def test_the_legend_names_each_policy_once() -> None:
    canvas = drawn("curves", [*PANELS, PANELS[0]._replace(dataset="yelp")])
    (legend,) = canvas.legends
    assert [text.get_text() for text in legend.get_texts()] == ["CLUB", "SCLUB"]


def test_the_picture_shows_the_curves_in_their_colours(tmp_path: Path) -> None:
    png, *_ = draw("curves", "Regret", PANELS, tmp_path, "fig")
    pixels = matplotlib.image.imread(png)[..., :3]
    for name in ("CLUB", "SCLUB"):
        colour = np.array(matplotlib.colors.to_rgb(REGISTRY[name].style.colour))
        assert (np.abs(pixels - colour).max(axis=2) < 0.02).sum() > 1000


def test_the_limit_is_marked_beside_the_ratio() -> None:
    world = panel(result("AutoCLUB", 30, 30), result("CLUB", 60, 60))._replace(limit=Limit(0.8))
    (axes,) = drawn("ratios", [world]).axes
    (mark,) = (line for line in axes.get_lines() if line.get_label() == "AutoCLUB's limit")
    assert np.asarray(mark.get_xdata(), np.float64).tolist() == [0.8]


def test_ratios_are_multiples_of_the_best_other() -> None:
    world = panel(result("AutoCLUB", 30, 30), result("CLUB", 60, 60), result("LinUCBOracle", 15, 15))
    (axes,) = drawn("ratios", [world]).axes
    dots = {label: float(points[0][0]) for label, points in points_of(axes).items()}
    assert dots == {"LinUCB, true clusters": 0.25, "AutoCLUB": 0.5}
