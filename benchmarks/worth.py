"""What popularity, features, users, clusters and repeats are worth on real feedback.

    python -m benchmarks.worth --data DIR                         seeds 0 to 2; some minutes
    python -m benchmarks.worth --data DIR --seeds 0-5 --out DIR   with worth.csv, and worth.png, .svg and .pdf

Policies that know more and more play in environments of `coterie reproduce real`, where an item may be shown
to a user again and where each item is shown to a user once. None is tuned: beta = σ where there is a beta.
SCLUB has alpha = 4σ, of 0.5, 1, 2, 4, 8 and 15σ the best on average on seed 100; with the usual 15σ it
separates no users in most of these environments. Figures are rewards as multiples of the reward of uniform
play. A dataset that is not in the folder is left out.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import coterie
from benchmarks.timing import Table
from coterie.atomic_files import atomic_write
from coterie.errors import MissingData
from coterie.experiments.figures import find_figure
from coterie.experiments.plotting import RC_PARAMS, save_figure
from coterie.experiments.runner import DataFiles
from coterie.experiments.specs import EnvironmentSpec, PolicySpec
from coterie.experiments.tuning import usual_spec
from coterie.policies.registry import find
from coterie.progress import progress_bar

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROUNDS = 10_000
SCLUB_ALPHA = 4.0
"""In units of the deviation of rewards."""


class Step(NamedTuple):
    """What a policy knows beside popularity, the policy, and whether popularity is an option of it."""

    knows: str
    policy: str
    optional: bool = False


STEPS = (
    Step("popularity\nalone", "ItemTS"),
    Step("features", "LinUCBOne", optional=True),
    Step("each user\napart", "LinUCBInd", optional=True),
    Step("clusters", "SCLUB", optional=True),
    Step("users who\nare similar", "HierUCB"),
    Step("all, and\nrepeats", "AutoCLUB"),
)


class World(NamedTuple):
    """An environment by its name in the figure `real`, and its rounds; `once` is 0 if items always repeat."""

    name: str
    label: str
    dataset: str
    rounds: int = ROUNDS
    once: int = ROUNDS
    unit: bool = False


WORLDS = (
    World("Last.fm, one of 25", "one heard of 25", "lastfm", once=0, unit=True),
    World("Last.fm, one of 25, longer", "one heard of 25", "lastfm", rounds=30_000, once=0, unit=True),
    World("Last.fm, stream", "stream", "lastfm"),
    World("MovieTweetings, stream", "stream of tweets", "movietweetings"),
    World("MovieLens, ratings", "ratings", "movielens", once=5_000),
    World("Yelp, ratings", "ratings", "yelp", once=2_500),
    World("Jester, jokes", "all jokes", "jester"),
    World("Polis, votes", "votes", "polis"),
    World("Coat, random coats", "random coats", "coat", rounds=5_000, once=2_500),
)
"""With each item once, few rounds are played: when users have seen all items, all policies are equal."""


class Protocol(NamedTuple):
    """A world with or without repeats: what is played, and for how long."""

    world: World
    once: bool
    environment: EnvironmentSpec
    rounds: int


class Result(NamedTuple):
    """The rewards of a policy in the runs of a protocol, as multiples of uniform play."""

    world: str
    once: bool
    rounds: int
    policy: str
    items: bool
    runs: tuple[float, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.runs))

    @property
    def error(self) -> float:
        """The standard error of the mean; 0 for a single run."""
        return float(np.std(self.runs, ddof=1) / len(self.runs) ** 0.5) if len(self.runs) > 1 else 0.0


def protocols(worlds: Iterable[World]) -> Iterator[Protocol]:
    """Each world with repeats, and with each item once where that is possible."""
    real = {variation.label: variation.environment for variation in find_figure("real").variations}
    for world in worlds:
        environment = replace(real[world.label], dataset=world.dataset, unit=world.unit)
        yield Protocol(world, False, environment, world.rounds)
        if world.once:
            yield Protocol(world, True, replace(environment, once=True), world.once)


def specs(environment: EnvironmentSpec) -> Iterator[PolicySpec]:
    """The policies of all steps; those that may leave popularity out, without it and with it."""
    for step in STEPS:
        usual = usual_spec(step.policy, environment)
        if step.policy == "SCLUB":
            alpha = SCLUB_ALPHA * environment.reward_deviation
            usual = PolicySpec(step.policy, {**usual.params, "alpha": alpha})
        yield usual
        if step.optional:
            yield PolicySpec(step.policy, {**usual.params, "items": True})


def knows_items(spec: PolicySpec) -> bool:
    """Whether this policy learns effects of items."""
    return bool(spec.params.get("items")) or not next(s for s in STEPS if s.policy == spec.name).optional


def play(data: DataFiles, seeds: Sequence[int], worlds: Sequence[World] = WORLDS) -> list[Result]:
    """Every policy in every protocol whose data is there, with a progress bar over runs."""
    found: list[Result] = []
    played = list(protocols(worlds))
    n_specs = len(list(specs(EnvironmentSpec())))
    with progress_bar(len(played) * len(seeds) * n_specs, "runs") as advance:
        for world, once, environment, rounds in played:
            try:
                dataset = data.dataset(environment)
            except MissingData as error:
                print(f"{world.name} is left out: {error}")
                advance(len(seeds) * n_specs)
                continue
            places = [environment.make(dataset, seed) for seed in seeds]
            for spec in specs(environment):
                runs = []
                for seed, place in zip(seeds, places, strict=True):
                    trace = coterie.simulate(spec.make(place, seed), place, rounds, record=2)
                    runs.append(float(trace.relative[-1]))
                    advance(1)
                found.append(Result(world.name, once, rounds, spec.name, knows_items(spec), tuple(runs)))
    return found


def table(results: Sequence[Result]) -> Table:
    """Policies across, protocols down."""
    names = {(r.policy, r.items): r.policy + (" + items" if r.items else "") for r in results}
    optional = {step.policy for step in STEPS if step.optional}
    heads = [name if key[0] in optional else key[0] for key, name in names.items()]
    rows: dict[str, list[str]] = {}
    for r in results:
        row = rows.setdefault(f"{r.world}{', each once' if r.once else ''}, T = {r.rounds:,}", [])
        row.append(f"{r.mean:.3f} ± {r.error:.3f}")
    return Table(
        f"Reward as a multiple of that of uniform play, {len(results[0].runs)} seeds",
        ("environment", *heads),
        [(name, *cells) for name, cells in rows.items()],
    )


def as_csv(results: Sequence[Result]) -> str:
    """A line for each policy in each protocol."""
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("world", "once", "rounds", "policy", "items", "seeds", "relative", "relative_error"))
    for r in results:
        cells = (f"{r.mean:.6g}", f"{r.error:.6g}")
        writer.writerow((r.world, int(r.once), r.rounds, r.policy, int(r.items), len(r.runs), *cells))
    return file.getvalue()


WITHOUT_COLOUR = "#8a8a8a"
OFFSET = 0.16
"""How far dots with repeats are to the left of their step, and those of each item once to the right."""

WITH_SIZE, WITHOUT_SIZE = 4.0, 6.5
"""Where popularity changes nothing, the larger dot is seen around the smaller."""

ACROSS, PANEL_WIDTH, PANEL_HEIGHT = 3, 3.2, 2.0


def draw(results: Sequence[Result]) -> Figure:
    """A panel for each world; steps across, reward relative to uniform play upwards."""
    from matplotlib.figure import Figure

    worlds = list(dict.fromkeys(result.world for result in results))
    rows, across = -(-len(worlds) // ACROSS), min(ACROSS, len(worlds))
    canvas = Figure(figsize=(PANEL_WIDTH * max(across, 2), PANEL_HEIGHT * rows + 1.8))
    panels = canvas.subplots(rows, across, squeeze=False).ravel()
    for axes, world in zip(panels, worlds, strict=False):
        _panel(axes, [result for result in results if result.world == world])
        axes.set_title(world)
    for axes in panels[:-across]:
        axes.set_xticklabels([])
    for axes in panels[len(worlds) :]:
        axes.set_axis_off()
    for axes in panels[::across]:
        axes.set_ylabel("reward / uniform play")
    found = {
        label: handle
        for axes in panels
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    canvas.legend(found.values(), found.keys(), loc="outside lower center", ncols=2)
    return canvas


def _panel(axes: Axes, results: Sequence[Result]) -> None:
    """One world: colour for policies that learn popularity, hollow dots for each item once."""
    place = {step.policy: k for k, step in enumerate(STEPS)}
    for once in (False, True):
        for items in (False, True):
            chosen = [r for r in results if (r.once, r.items) == (once, items)]
            if not chosen:
                continue
            colour = find("AutoCLUB").style.colour if items else WITHOUT_COLOUR
            axes.errorbar(
                [place[r.policy] + (OFFSET if once else -OFFSET) for r in chosen],
                [r.mean for r in chosen],
                yerr=[r.error for r in chosen],
                color=colour,
                marker="o",
                markersize=WITH_SIZE if items else WITHOUT_SIZE,
                markerfacecolor="white" if once else colour,
                linestyle="none",
                label=f"{'with' if items else 'without'} popularity, "
                f"{'each item shown once' if once else 'items may repeat'}",
            )
    axes.axhline(1.0, color="#000000", linewidth=0.8, zorder=1)
    axes.set_xticks(range(len(STEPS)), [step.knows for step in STEPS], rotation=90, fontsize=7.5)
    axes.set_xlim(-0.6, len(STEPS) - 0.4)
    axes.grid(visible=False, axis="x")


def write(results: Sequence[Result], folder: Path) -> None:
    """The numbers, and the picture in every format."""
    from matplotlib.style import context as style_context

    folder.mkdir(parents=True, exist_ok=True)
    atomic_write(folder / "worth.csv", as_csv(results).encode())
    with style_context(dict(RC_PARAMS)):
        title = "What each kind of knowledge is worth on real feedback"
        save_figure(draw(results), title, folder, "worth")


def seed_range(text: str) -> range:
    """`0-2` as the seeds 0, 1 and 2; `3` as the seed 3."""
    first, _, last = text.partition("-")
    found = range(int(first), int(last or first) + 1)
    if not found:
        raise argparse.ArgumentTypeError(f"the last seed must not be below the first, got {text}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.worth",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the datasets, as downloaded")
    parser.add_argument("--seeds", type=seed_range, default=range(3), help="seeds to play, such as 0-2")
    parser.add_argument("--out", type=Path, help="folder for worth.csv and the picture")
    given = parser.parse_args()
    results = play(DataFiles(given.data), given.seeds)
    if not results:
        parser.error(f"there is no dataset in {given.data}")
    table(results).show()
    if given.out is not None:
        write(results, given.out)


if __name__ == "__main__":
    main()
