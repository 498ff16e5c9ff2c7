"""Tables that fit the terminal, and the chart."""

from __future__ import annotations

import numpy as np
import pytest

from coterie.cli.output import Curve, braille_chart, print_table

X = np.linspace(10, 100, 10)


def drawn(*curves: Curve, width: int = 20, height: int = 6) -> list[str]:
    return [line.plain for line in braille_chart(curves, width=width, height=height)]


def test_a_straight_line_goes_from_corner_to_corner() -> None:
    lines = drawn(Curve("line", X, 2 * X))
    assert lines[0].startswith("200 │")
    assert lines[0].endswith(" line")
    body = [line[5 : 5 + 20] for line in lines[:6]]
    assert body[0].strip()
    assert body[0].index(body[0].strip()[0]) > 14
    assert body[-1][0] != " "


def test_the_axis_names_the_last_round() -> None:
    assert drawn(Curve("line", X, X))[-1].endswith("100 rounds")


def test_names_stand_in_the_order_of_the_ends_and_on_rows_of_their_own() -> None:
    curves = [
        Curve(name, X, X * slope) for name, slope in (("c", 0.99), ("a", 1.0), ("b", 0.995), ("z", 0.1))
    ]
    names = [line.split()[-1] for line in drawn(*curves) if line.split()[-1] in "abcz"]
    assert names == ["a", "b", "c", "z"]


def test_a_curve_of_zeros_lies_on_the_floor() -> None:
    lines = drawn(Curve("nothing", X, 0 * X))
    assert lines[5].startswith("0 │") or lines[5].strip().startswith("0 │")
    assert all(not line.split("│")[1].strip() for line in lines[:5])


def test_steep_curves_have_no_gaps() -> None:
    step = Curve("step", X, np.where(X < 50, 0.0, 1.0))
    body = [line.split("│")[1][:20] for line in drawn(step)[:6]]
    assert all(row.strip() for row in body)


ROWS = [
    ("AutoCLUB", "405.5", "0.3", "a remark of several words"),
    ("LinUCBOne", "12,166.0", "36.2", "another"),
]
COLUMNS = ("policy", "regret", "error", "remark")


def shown(width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    print_table(COLUMNS, ROWS, prose=("remark",), optional=("remark",))
    return capsys.readouterr().out


def test_a_table_that_fits_has_every_column(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "a remark of several words" in shown(80, capsys, monkeypatch)


def test_a_narrow_terminal_does_without_what_is_optional(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = shown(40, capsys, monkeypatch)
    assert "remark" not in page
    assert "12,166.0    36.2" in page


@pytest.mark.parametrize("width", [24, 30, 40, 60, 80])
def test_no_number_is_broken_and_no_line_too_long(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = shown(width, capsys, monkeypatch)
    for number in ("405.5", "0.3", "12,166.0", "36.2"):
        assert number in page
    assert max(map(len, page.splitlines())) <= width
