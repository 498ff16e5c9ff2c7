"""`coterie run --tune`, and the folder that goes into a paper."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cli.conftest import Call
from coterie.experiments.citations import WORKS
from coterie.policies import REGISTRY

TINY = ("--horizon", "200", "--users", "6", "--clusters", "2", "--arms", "5", "--dim", "3", "--seeds", "2")
OWN = """
class Patient:
    grid = {"size": [1, 2, 3]}

    def __init__(self, dim, *, size=1):
        self.size = size

    def recommend(self, user, arms):
        return int(self.size == 2 and arms[:, 0].argmax())

    def update(self, user, x, reward):
        pass
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"patient_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return f"{name}:Patient"


def test_tuning_chooses_on_seeds_that_are_not_reported(coterie: Call, own: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("run", "LinUCBInd", "CLUB:alpha=1.5", own, *TINY, "--out", out, "--json")
    told = json.loads(coterie(*words, "--tune").stdout)
    assert told["is_tuned"] is True
    assert told["seeds"] == [0, 1]
    found = {one["policy"]: one["constants"] for one in told["policies"]}
    assert found["CLUB"]["alpha"] == 1.5  # what was given stays
    assert set(found[own]) == {"size"}
    untuned = json.loads(coterie("run", "LinUCBInd", *TINY, "--json").stdout)["policies"][0]
    tuned = next(one for one in told["policies"] if one["policy"] == "LinUCBInd")
    assert tuned["constants"] != untuned["constants"]
    from coterie.experiments.comparison import read_results

    trials = [one.run for one in read_results(out) if one.run.seed >= 1000]
    assert {run.seed for run in trials} == {1000, 1001}
    assert len({run.policy for run in trials if run.policy.name == own}) == 3
    assert len({run.policy.params["beta"] for run in trials if run.policy.name == "LinUCBInd"}) > 5
    compared = json.loads(coterie("compare", out, out, "--json").stdout)
    assert len(compared["pairs"]) == 3  # trials are left out


def test_rivals_that_are_not_tuned_are_named(coterie: Call) -> None:
    done = coterie("run", "AutoCLUB", "LinUCBInd", *TINY)
    assert "Not tuned: LinUCBInd. Their constants are those to start from; --tune" in done.output
    given = coterie("run", "AutoCLUB", "LinUCBInd:beta=0.2", *TINY)
    assert "Not tuned" not in given.output


def test_the_folder_has_everything_for_a_paper(coterie: Call, tmp_path: Path) -> None:
    out = tmp_path / "paper"
    asked = ("--out", out, "--latex", "--labels", "CLUB=Gang & co_1", "--title", "Mine", "--width", 3.3)
    done = coterie("run", "CLUB", "LinUCBOne:beta=0.1", "LinUCBOne:beta=1", *TINY, *asked)
    assert done.exit_code == 0, done.output
    names = {
        "summary.csv",
        "regret.pdf",
        "regret.svg",
        "regret.png",
        "table.tex",
        "figure.tex",
        "references.bib",
    }
    assert names <= {path.name for path in out.iterdir()}
    table = (out / "table.tex").read_text(encoding="utf-8")
    assert r"Gang \& co\_1" in table
    assert all(rule in table for rule in (r"\toprule", r"\midrule", r"\bottomrule"))
    assert r"mean $\pm$ half of the 95\% Student interval over 2 seeds" in table
    assert "200 rounds, seeds 0 to 1. " in table
    assert "Constants were not tuned." in table
    rows = [
        line.strip().split(" & ")
        for line in table.splitlines()
        if " $\\pm$ " in line and " & " in line and "caption" not in line
    ]
    assert len(rows) == 3
    assert all(float(row[4].replace(",", "")) > 0 for row in rows)  # microseconds a round
    assert "$\\beta$ 0.1" in table
    figure = (out / "figure.tex").read_text(encoding="utf-8")
    origins = r"Gang \& co\_1~\cite{gentile2014online}; LinUCBOne~\cite{abbasi2011improved}."
    assert origins in table
    assert origins in figure
    bib = (out / "references.bib").read_text(encoding="utf-8")
    keys = ("coterie", "gentile2014online", "abbasi2011improved")
    assert re.findall(r"^@\w+\{(\w+),$", bib, re.MULTILINE) == list(keys)
    assert bib.count("{") == bib.count("}")
    drawn = (out / "regret.svg").read_text(encoding="utf-8")
    assert "bands: ±" in drawn
    assert "Mine" in drawn
    assert f'width="{3.3 * 72:g}pt"' in drawn
    assert "one standard error" in figure
    assert r"\includegraphics{regret.pdf}" in figure  # at the width that was chosen


def test_a_policy_of_ours_cites_the_software_and_your_own_cites_nothing(
    coterie: Call, own: str, tmp_path: Path
) -> None:
    coterie("run", "AutoCLUB", "COLDB:beta=0.1,alpha=1", own, *TINY, "--out", tmp_path / "x", "--latex")
    table = (tmp_path / "x" / "table.tex").read_text(encoding="utf-8")
    assert table.count(r"\cite{") == 2
    figure = (tmp_path / "x" / "figure.tex").read_text(encoding="utf-8")
    assert r"\includegraphics[width=\linewidth]{regret.pdf}" in figure
    assert r"AutoCLUB~\cite{coterie}; COLDB~\cite{wang2025online}." in table
    bib = (tmp_path / "x" / "references.bib").read_text(encoding="utf-8")
    assert "% wang2025online: written from memory, compare it with the paper.\n@inproceedings{wang" in bib


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--latex",), "--latex is for the files that --out writes: give --out FOLDER too"),
        (("--title", "x"), "--title is for the files that --out writes"),
        (("--labels", "CLBU=x"), "no policy of this run: 'CLBU'; did you mean 'CLUB'?"),
        (("--labels", "CLUB"), "--labels must be POLICY=LABEL pairs"),
        (("--out", "x", "--width", "99"), "--width must be from 2 to 20 inches, got 99"),
        (("--tune", "--seeds", "1000,1001"), "seeds from 1000 on are for tuning"),
    ],
)
def test_wrong_options_are_refused(
    coterie: Call, words: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = coterie("run", "CLUB", *TINY, *words)
    assert done.exit_code == 2
    assert says in done.output


def test_every_policy_that_is_cited_exists_and_keys_are_unique() -> None:
    assert set(WORKS) <= set(REGISTRY)
    works = set(WORKS.values())
    assert len({work.key for work in works}) == len(works)
