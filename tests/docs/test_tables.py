"""Tables of the documentation follow from the numbers that lie beside them."""

from __future__ import annotations

import csv

from coterie.experiments.figures import find_figure
from coterie.experiments.reproduction import FigurePlan
from coterie.experiments.tuning import TuningProtocol
from docs.pages import DOCS


def test_the_table_of_auto_is_what_follows_from_its_summary() -> None:
    panels = FigurePlan(figure=find_figure("auto"), seeds=(0,), protocol=TuningProtocol()).panel_specs()
    limits = {(panel.label, panel.environment.dataset): panel.variation.limit for panel in panels}
    found: dict[tuple[str, str], dict[str, dict[str, str]]] = {place: {} for place in limits}
    with (DOCS / "reproduce" / "auto" / "summary.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found[row["variation"], row["dataset"]][row["policy"]] = row
    wanted, kept, least = [], [], 0
    for place, limit in limits.items():
        regrets = {name: float(row["regret"]) for name, row in found[place].items()}
        ours, oracle = regrets.pop("AutoCLUB"), regrets.pop("LinUCBOracle")
        error, ari = (float(found[place]["AutoCLUB"][name]) for name in ("regret_error", "ari"))
        rival = (limit and limit.of) or min(regrets, key=lambda name: regrets[name])
        ratio, verdict = ours / regrets[rival], ["–", "–"]
        if limit is not None:
            kept.append(ratio <= limit.factor)
            verdict = [f"≤ {limit.factor:.2f}", "yes" if kept[-1] else "no"]
        least += ours < min(regrets.values())
        cells = (f"{ours:,.0f} ± {error:.0f}", rival, f"{regrets[rival]:,.0f}", f"{ratio:.2f}", *verdict)
        wanted.append((*place, *cells, f"{oracle:,.0f}", f"{ours / oracle:.2f}", f"{ari:.2f}"))
    text = (DOCS / "reproduce" / "auto.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    header = next(k for k, row in enumerate(rows) if row[1:4] == ["dataset", "AutoCLUB", "rival"])
    table = rows[header + 2 : rows.index([], header)]
    assert sorted((row[0], row[1].lower().replace(".", ""), *row[2:]) for row in table) == sorted(wanted)
    within = f"in {sum(kept)} of {len(kept)} environments"
    assert f"{within}, and has the least regret in {least} of {len(wanted)}" in text


def test_the_tables_of_field_are_what_follows_from_its_summary() -> None:
    with (DOCS / "reproduce" / "field" / "summary.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    worlds = list(dict.fromkeys((row["variation"], row["dataset"]) for row in rows))
    played = FigurePlan(figure=find_figure("field"), seeds=(0,), protocol=TuningProtocol()).panel_specs()
    assert [(spec.label, spec.environment.dataset) for spec in played] == worlds
    found = [{r["policy"]: r for r in rows if (r["variation"], r["dataset"]) == world} for world in worlds]
    regrets = [{name: float(row["regret"]) for name, row in one.items()} for one in found]
    best = [min(set(one) - {"LinUCBOracle"}, key=one.__getitem__) for one in regrets]
    text = (DOCS / "reproduce" / "field.md").read_text(encoding="utf-8")
    shown = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    first = next(k for k, row in enumerate(shown) if row[1:3] == ["least regret", "regret"])
    for row, name, one in zip(shown[first + 2 :], best, found, strict=False):
        mean, error = float(one[name]["regret"]), float(one[name]["regret_error"])
        assert row[1:3] == [name, f"{mean:,.0f} ± {error:.0f}"]
    second = next(k for k, row in enumerate(shown) if row[:2] == ["policy", "Figure 1"])
    for row in shown[second + 2 : shown.index([], second)]:
        for cell, name, regret in zip(row[1:], best, regrets, strict=True):
            value = f"{regret[row[0]] / regret[name]:.2f}" if row[0] in regret else "–"
            assert cell == (f"**{value}**" if row[0] == name else value)
