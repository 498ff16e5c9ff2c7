"""`coterie explain`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import coterie as library
from cli.conftest import Call


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    policy = library.AutoCLUB(4, 2)
    for turn in range(80):
        x = np.array([1.0, 0.0]) if turn % 2 else np.array([0.0, 1.0])
        policy.update(turn % 4, x, (0.8 if turn % 2 else -0.3) + 0.01 * (turn % 3))
    policy.save(tmp_path / "policy.npz")
    return tmp_path / "policy.npz"


def test_a_user_is_explained_as_by_the_library(coterie: Call, saved: Path) -> None:
    policy = library.load(saved)
    assert isinstance(policy, library.AutoCLUB)
    assert coterie("explain", saved, 1).stdout.strip() == str(policy.explain(1))


def test_scores_of_arms_are_taken_apart_and_sum_up(coterie: Call, saved: Path, tmp_path: Path) -> None:
    arms = np.array([[1.0, 0.0], [0.5, 0.5]])
    np.save(tmp_path / "arms.npy", arms)
    told = json.loads(coterie("explain", saved, 1, "--arms", tmp_path / "arms.npy", "--json").stdout)
    ucb = library.load(saved).scores(1, arms).ucb
    np.testing.assert_allclose(np.sum(list(told["scores"].values()), axis=0), ucb, atol=1e-12)
    page = coterie("explain", saved, 1, "--arms", tmp_path / "arms.npy").output
    assert "alternatives" in page
    assert f"{ucb[0]:.4g}" in page


def test_the_ten_best_of_many_arms_are_shown_the_best_first(
    coterie: Call, saved: Path, tmp_path: Path
) -> None:
    arms = np.random.default_rng(3).normal(size=(300, 2))
    np.save(tmp_path / "arms.npy", arms)
    order = np.argsort(-library.load(saved).scores(1, arms).ucb, kind="stable")
    for words, count in (((), 10), (("--top", "25"), 25)):
        done = coterie("explain", saved, 1, "--arms", tmp_path / "arms.npy", *words)
        words_of = [line.split() for line in done.stdout.splitlines()]
        shown = [line[0] for line in words_of if line and line[0].isdigit()]
        assert shown == [str(arm) for arm in order[:count]]
        assert f"the best {count} of 300 arms" in done.stderr
    for wrong in (("--top", "5"), ("--arms", tmp_path / "arms.npy", "--top", "5", "--json")):
        refused = coterie("explain", saved, 1, *wrong)
        assert refused.exit_code == 2
        assert "--top is for the table of --arms" in refused.stderr


def test_what_is_no_snapshot_or_no_user_is_refused(coterie: Call, saved: Path, tmp_path: Path) -> None:
    (tmp_path / "arms.npy").write_text("none")
    for arguments, told in (
        ((saved, 1, "--arms", tmp_path / "arms.npy"), "is not a .npy file of numbers"),
        ((saved, 9), "user must be"),
        ((tmp_path / "arms.npy", 1), "arms.npy"),
    ):
        answer = coterie("explain", *arguments)
        assert answer.exit_code != 0
        assert told in answer.output
