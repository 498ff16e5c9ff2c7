from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from coterie.errors import ArgumentError, MissingData
from coterie.experiments.figures import Figure, find_figure
from coterie.experiments.reproduction import (
    ReproduceOptions,
    Reproduction,
    play_figures,
    reproduce,
    write_files,
)
from coterie.experiments.run_store import Run, Store
from coterie.experiments.runner import Callback, DataFiles, LocalEngine, NoCallback, PlayedRun
from coterie.experiments.specs import EnvironmentSpec
from coterie.experiments.tables import verdict_table
from coterie.experiments.tuning import TuningProtocol

pytestmark = pytest.mark.slow


class Never:
    """An engine for when everything is finished."""

    def play(self, runs: Sequence[Run], data: DataFiles, callback: Callback) -> Iterator[PlayedRun]:
        assert not runs
        return iter(())


def shrunk(name: str) -> Figure:
    """A figure on synthetic data in worlds of eight users, with few policies and variations."""
    figure = find_figure(name)
    few = figure.variations[:: max(1, len(figure.variations) // 2)]
    figure = replace(figure, policies=figure.policies[-2:], variations=few)
    small = EnvironmentSpec(dim=4, pool_users=12, pool_items=40)
    shapes = [
        replace(small, setting=v.environment.setting, spread=v.environment.spread) for v in figure.variations
    ]
    variations = tuple(
        replace(v, environment=replace(shape, n_users=8, n_clusters=2, n_arms=4 + k))
        for k, (v, shape) in enumerate(zip(figure.variations, shapes, strict=True))
    )
    once = replace(small, n_users=8, n_clusters=2, n_arms=4)  # grids are played in one world for all figures
    return replace(figure, datasets=("synthetic",), variations=variations, tuned_in=once)


def request(out: Path, *figures: Figure) -> ReproduceOptions:
    return ReproduceOptions(
        figures=figures,
        out=out,
        horizon=120,
        seeds=2,
        protocol=TuningProtocol(n_seeds=1),
        command="coterie reproduce <all>",
    )


ALL = ("fig-1", "fig-2", "fig-3", "fig-5", "table-1", "table-2", "clusters", "gap")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    figures = [shrunk(name) for name in ALL]
    return reproduce(request(tmp_path_factory.mktemp("all"), *figures), LocalEngine(2), NoCallback())


def test_every_figure_comes_in_three_formats(found: Reproduction) -> None:
    for name in ("fig-1", "fig-2", "fig-3", "fig-5", "clusters", "gap"):
        for kind, magic in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
            assert (found.options.out / name / f"{name}.{kind}").read_bytes().startswith(magic)


def test_pictures_are_fine_enough_for_print(found: Reproduction) -> None:
    from PIL import Image

    with Image.open(found.options.out / "fig-1" / "fig-1.png") as picture:
        assert min(picture.info["dpi"]) > 200


def test_every_figure_has_a_summary(found: Reproduction) -> None:
    for outcome in found.figures:
        name = "summary.csv" if outcome.panels else "bounds.csv"
        lines = (found.options.out / outcome.figure.name / name).read_text().splitlines()
        assert len(lines) > 1
    fig_1 = (found.options.out / "fig-1" / "summary.csv").read_text()
    assert fig_1.startswith("dataset,variation,policy,seeds,horizon,gamma,regret,regret_error")
    assert "PhaseUniCLUB,2,120" in fig_1


def test_every_figure_has_its_tables_as_markdown(found: Reproduction) -> None:
    for outcome in found.figures:
        text = (found.options.out / outcome.figure.name / "results.md").read_text()
        assert text.startswith(outcome.sentence)
        for table in (table for table in outcome.tables if table.rows):
            assert f"{table.title}:\n\n| {' | '.join(table.heading)} |\n|---|" in text
        verdicts = [verdict for finding in outcome.findings for verdict in finding.verdicts]
        assert all(f"| {verdict.answer} | {verdict.evidence} |" in text for verdict in verdicts)


def test_the_report_is_one_file_that_needs_no_other(found: Reproduction) -> None:
    page = found.report.read_text()
    assert "<script" not in page
    assert not re.findall(r"""(?:src|href)=["'](?!#)""", page)
    assert not re.findall(r"@import|url\((?!#)", page)
    assert page.count("<svg") == 6


def test_the_report_tells_how_it_was_made(found: Reproduction) -> None:
    page = found.report.read_text()
    for wanted in (
        "coterie reproduce &lt;all&gt;",
        "scipy",
        "processor",
        "n_clusters",
        "Constants, as tuned",
        "1000",
    ):
        assert wanted in page
    for name in ALL:
        assert f'id="{name}"' in page


def test_the_report_has_the_verdicts_of_the_markdown_and_colours_them(found: Reproduction) -> None:
    page = found.report.read_text()
    assert page.count("<caption>Claims (") == sum(bool(outcome.findings) for outcome in found.figures)
    answers = [
        v.answer for outcome in found.figures for finding in outcome.findings for v in finding.verdicts
    ]
    for answer in set(answers):
        assert page.count(f'<td class="{answer}">{answer}</td>') == answers.count(answer)


def test_only_constants_and_verdicts_are_left_out_on_the_terminal(found: Reproduction) -> None:
    detail = {table.title for outcome in found.figures for table in outcome.tables if table.detail}
    assert detail == {"Constants, as tuned", verdict_table([]).title}


def test_ids_of_drawings_on_one_page_differ(found: Reproduction) -> None:
    ids = re.findall(r'\bid="([^"]+)"', found.report.read_text())
    assert len(ids) == len(set(ids))


def test_running_times_are_measured_for_table_2_only(found: Reproduction) -> None:
    two = next(outcome for outcome in found.figures if outcome.figure.name == "table-2")
    assert all(entry.seconds().mean > 0 for panel in two.panels for entry in panel.results)
    assert len(list((found.options.out / "times").iterdir())) == 2 * len(two.figure.policies)


def test_what_is_finished_is_not_repeated(found: Reproduction, tmp_path: Path) -> None:
    again = play_figures(found.options, Never(), NoCallback())
    one = again._replace(options=replace(found.options, out=tmp_path), figures=again.figures[:1])
    (written,) = write_files(one).figures
    assert len(written.files) == 5
    for path in written.files:
        assert path.read_bytes() == (found.options.out / path.relative_to(tmp_path)).read_bytes()


def test_constants_of_a_summary_are_used_again_without_tuning(found: Reproduction, tmp_path: Path) -> None:
    for result in found.figures:
        if not result.panels:
            continue
        summary = found.options.out / result.figure.name / "summary.csv"
        options = replace(found.options, figures=(result.figure,), constants=summary)
        (again,) = play_figures(options, Never(), NoCallback()).figures
        for one, other in zip(again.panels, result.panels, strict=True):
            assert [each.spec for each in one.results] == [each.spec for each in other.results]
    played = reproduce(replace(options, out=tmp_path), LocalEngine(2), NoCallback())
    assert not any(one.run.seed >= 1000 for one in Store(tmp_path))
    assert "only others were tuned" in played.report.read_text()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda text: text.replace(",AutoCLUB,", ",-,").replace(",PhaseUniCLUB,", ",AutoCLUB,"),
            "none of the grid of AutoCLUB",
        ),
        (lambda text: text.replace("dataset", "place"), "must be the summary.csv of a figure"),
        (lambda text: text.rstrip() + "many", "must hold numbers"),
        (lambda text: "", "must be the summary.csv of a figure"),
    ],
)
def test_constants_that_do_not_fit_are_refused(
    found: Reproduction, tmp_path: Path, change: Callable[[str], str], sentence: str
) -> None:
    figure = next(one.figure for one in found.figures if one.figure.name == "fig-1")
    path = tmp_path / "summary.csv"
    path.write_text(change((found.options.out / "fig-1" / "summary.csv").read_text()))
    options = replace(found.options, figures=(figure,), constants=path)
    with pytest.raises(ArgumentError, match=sentence):
        play_figures(options, Never(), NoCallback())
    with pytest.raises(ArgumentError, match="cannot be read"):
        play_figures(replace(options, constants=tmp_path / "none.csv"), Never(), NoCallback())


def test_what_a_summary_lacks_is_tuned(found: Reproduction, tmp_path: Path) -> None:
    result = next(one for one in found.figures if one.figure.name == "fig-1")
    path = tmp_path / "summary.csv"
    lines = (found.options.out / "fig-1" / "summary.csv").read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if ",PhaseUniCLUB," not in line))
    options = replace(found.options, figures=(result.figure,), constants=path, out=tmp_path)
    (again,) = play_figures(options, LocalEngine(2), NoCallback()).figures
    assert {one.run.policy.name for one in Store(tmp_path) if one.run.seed >= 1000} == {"PhaseUniCLUB"}
    assert [[each.spec for each in panel.results] for panel in again.panels] == [
        [each.spec for each in panel.results] for panel in result.panels
    ]


def test_a_missing_dataset_is_skipped_with_a_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    figure = replace(shrunk("fig-1"), datasets=("synthetic", "lastfm"), policies=("LinUCBInd",))
    options = replace(request(tmp_path, figure), data=DataFiles(tmp_path))
    found = reproduce(options, LocalEngine(2), NoCallback())
    assert caplog.messages == list(found.skipped)
    (line,) = caplog.messages
    assert line.startswith("lastfm is skipped: download")
    assert "lastfm is skipped" in found.report.read_text()
    assert [panel.dataset for panel in found.figures[0].panels] == ["synthetic"]


def test_when_all_data_are_missing_nothing_is_written(tmp_path: Path) -> None:
    figure = replace(shrunk("fig-3"), datasets=("yelp",))
    with pytest.raises(MissingData, match="nothing is left to reproduce: yelp is missing, download"):
        reproduce(replace(request(tmp_path, figure), data=DataFiles(tmp_path)), LocalEngine(1), NoCallback())
    assert not list(tmp_path.iterdir())


def test_seeds_of_tuning_are_not_those_reported(found: Reproduction) -> None:
    from coterie.experiments.run_store import Store

    runs = [finished.run for finished in Store(found.options.out)]
    assert {run.seed for run in runs} == {0, 1, 1000}
    for outcome in found.figures:
        assert all(
            trace.seed < 1000 for panel in outcome.panels for entry in panel.results for trace in entry.traces
        )
