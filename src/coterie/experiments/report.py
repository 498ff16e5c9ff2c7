"""The HTML report: figures, tables, constants, the command, the machine, and what was left out."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, get_args

from coterie.atomic_files import atomic_write
from coterie.experiments.claims import Answer, Finding
from coterie.experiments.figures import Figure
from coterie.experiments.results import Panel
from coterie.experiments.runner import processor
from coterie.experiments.specs import EnvironmentSpec
from coterie.experiments.tables import TextTable
from coterie.experiments.tuning import BUDGET, FIRST_SEED, Choice, TuningProtocol
from coterie.extras import need

if TYPE_CHECKING:
    from markupsafe import Markup

PACKAGES = ("coterie", "numpy", "scipy", "polars", "matplotlib", "ray")
TEMPLATE = "report.html.jinja"


class FigureResult(NamedTuple):
    """The results of a figure, and its files once they are written.

    `environments` and `horizons` have one entry for each panel.
    """

    figure: Figure
    environments: tuple[EnvironmentSpec, ...]
    horizons: tuple[int, ...]
    seeds: tuple[int, ...]
    panels: tuple[Panel, ...]
    choices: tuple[Choice, ...]
    findings: tuple[Finding, ...]
    sentence: str
    tables: tuple[TextTable, ...]
    files: tuple[Path, ...] = ()

    @property
    def points_tried(self) -> list[int]:
        """The grid points tried for each choice of constants."""
        return [choice.tried for choice in self.choices]

    @property
    def tuning_rounds(self) -> list[int]:
        """The rounds of each tuning study."""
        return [choice.study.rounds for choice in self.choices]


class Fact(NamedTuple):
    """A name and its value, for a table of two columns."""

    name: str
    value: str


def write_report(
    path: Path,
    figures: Sequence[FigureResult],
    *,
    command: str,
    skipped: Sequence[str],
    protocol: TuningProtocol,
    constants: Path | None = None,
) -> None:
    """Write the page, whole or not at all."""
    need("jinja2", "the report")
    from jinja2 import Environment, FileSystemLoader

    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    page = environment.get_template(TEMPLATE).render(
        figures=figures,
        command=command,
        skipped=skipped,
        protocol=protocol,
        constants=constants,
        budget=BUDGET,
        first_seed=FIRST_SEED,
        answers=get_args(Answer),
        machine=[*machine(), *versions()],
        drawings=drawings,
        listed=listed,
        shared_parameters=shared_parameters,
        varied_parameters=varied_parameters,
    )
    atomic_write(path, page.encode())


def listed(numbers: Iterable[int]) -> str:
    """Each number once, least first.

    >>> listed([20000, 500, 500])
    '500 or 20,000'
    """
    return " or ".join(f"{n:,}" for n in sorted(set(numbers)))


def drawings(result: FigureResult) -> list[Markup]:
    """The SVG files of a figure as elements of the page."""
    from markupsafe import Markup

    paths = [path for path in result.files if path.suffix == ".svg"]
    return [Markup(inline_svg(path, result.figure.name)) for path in paths]


def inline_svg(path: Path, prefix: str) -> str:
    """An SVG file as an element; its ids get a prefix, so that drawings on one page do not share them."""
    text = path.read_text(encoding="utf-8")
    drawing = text[text.index("<svg") :]
    # Matplotlib numbers ids from 1 in every file, and one page holds several drawings.
    drawing = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', drawing)
    drawing = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', drawing)
    drawing = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", drawing)
    return re.sub(r"<metadata>.*?</metadata>", "", drawing, flags=re.DOTALL)


def shared_parameters(result: FigureResult) -> list[Fact]:
    """The parameters that all environments of a figure share."""
    varied = varied_names(result)
    return [
        Fact(name, str(getattr(result.environments[0], name)))
        for name in EnvironmentSpec.names()
        if name not in varied
    ]


def varied_parameters(result: FigureResult) -> TextTable:
    """The parameters in which the environments of a figure differ."""
    names = varied_names(result)
    rows = (tuple(str(getattr(world, name)) for name in names) for world in result.environments)
    return TextTable("what varies", names, tuple(rows))


def varied_names(result: FigureResult) -> tuple[str, ...]:
    """The names of the parameters in which the environments of a figure differ."""
    return tuple(
        n for n in EnvironmentSpec.names() if len({getattr(world, n) for world in result.environments}) > 1
    )


def machine() -> list[Fact]:
    """Processor, cores, system and Python; neither host nor user names."""
    return [
        Fact("processor", processor()),
        Fact("processors", str(os.cpu_count())),
        Fact("system", f"{platform.system()} {platform.release()} ({platform.machine()})"),
        Fact("Python", f"{platform.python_implementation()} {platform.python_version()}"),
    ]


def versions() -> list[Fact]:
    """The packages that made the numbers and the pictures."""
    return [Fact(name, found) for name in PACKAGES if (found := _version(name)) is not None]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
