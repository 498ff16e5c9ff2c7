"""Polis, read beside a naive reading of the same files."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import coterie
from coterie.datasets import load, load_payoffs
from coterie.datasets.item_vectors import words_of
from datasets import generated

VOTES = generated.polis_votes()
OTHERS = generated.polis_votes(n_voters=22, n_comments=9, seed=1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    generated.polis_conversation(tmp_path / "polis" / "taxes", VOTES)
    generated.polis_conversation(tmp_path / "polis" / "water", OTHERS, xid=True)
    return tmp_path


def naive_votes(folder: Path) -> dict[tuple[int, int], float]:
    """The matrix of participants-votes.csv, where Polis has put the last votes itself."""
    with (folder / "participants-votes.csv").open(newline="") as file:
        return {
            (int(row["participant"]), int(comment)): float(vote)
            for row in csv.DictReader(file)
            for comment, vote in row.items()
            if comment.isdigit() and vote
        }


def test_the_last_vote_counts_for_those_whose_group_is_known(folder: Path) -> None:
    table = load_payoffs("polis", folder / "polis" / "taxes", vectors="text", dim=4)
    served = [voter for voter in range(30) if voter % 5]
    assert table.user_ids.tolist() == served
    assert table.groups is not None
    assert table.groups.tolist() == [voter % 2 for voter in served]
    assert "6 of 30 users, who are in no group" in table.provenance.left_out
    naive = naive_votes(folder / "polis" / "taxes")
    found = {
        (int(table.user_ids[row]), int(table.item_ids[column])): 2 * payoff - 1
        for row, column, payoff in zip(
            table.payoffs.rows, table.payoffs.columns, table.payoffs.values, strict=True
        )
    }
    assert found == {pair: vote for pair, vote in naive.items() if pair[0] % 5}


def test_several_conversations_are_one_dataset(folder: Path) -> None:
    table = load_payoffs("polis", folder, vectors="text", dim=4)
    assert set(table.user_ids.tolist()) == {
        f"{name}/{voter}"
        for name, count in (("taxes", 30), ("water", 22))
        for voter in range(count)
        if voter % 5
    }
    assert table.groups is not None
    groups = dict(zip(table.user_ids.tolist(), table.groups.tolist(), strict=True))
    assert len(set(groups.values())) == 4  # two in each conversation
    assert groups["taxes/1"] == groups["taxes/3"] != groups["taxes/2"]
    assert groups["water/1"] == groups["water/3"] not in (groups["taxes/1"], groups["taxes/2"])
    naive = naive_votes(folder / "polis" / "water")
    row = table.user_ids.tolist().index("water/7")
    places = {
        str(table.item_ids[k]): v
        for k, v in zip(
            *(part[table.payoffs.rows == row] for part in (table.payoffs.columns, table.payoffs.values)),
            strict=True,
        )
    }
    assert places == {
        f"water/{comment}": (vote + 1) / 2 for (voter, comment), vote in naive.items() if voter == 7
    }
    one = load_payoffs("polis", folder / "polis" / "water" / "votes.csv", vectors="text", dim=4)
    assert one.n_users == sum(voter % 5 > 0 for voter in range(22))


def test_one_conversation_can_be_named(folder: Path) -> None:
    one = load_payoffs("polis", folder, vectors="text", dim=4, conversation="water")
    same = load_payoffs("polis", folder / "polis" / "water", vectors="text", dim=4)
    assert one.user_ids.tolist() == same.user_ids.tolist()
    assert one.provenance == same.provenance
    says = "no polis file of the conversation 'fire' beside taxes, water"
    with pytest.raises(coterie.MissingData, match=says):
        load_payoffs("polis", folder, vectors="text", conversation="fire")
    with pytest.raises(coterie.ArgumentError, match="conversation is for 'polis', not for 'coat'"):
        load_payoffs("coat", folder, conversation="fire")


def test_words_make_vectors_that_no_vote_changes(folder: Path) -> None:
    before = load_payoffs("polis", folder, vectors="text", dim=5)
    assert set(before.items[:, 0].tolist()) == {5.0}
    assert words_of("Alpha yxx, beta 計程車") == ["alpha", "yxx", "beta", "計程", "程車"]
    turned = [vote._replace(vote=-vote.vote) for vote in VOTES]
    comments = (folder / "polis" / "taxes" / "comments.csv").read_bytes()
    generated.polis_conversation(folder / "polis" / "taxes", turned)
    assert (folder / "polis" / "taxes" / "comments.csv").read_bytes() == comments
    after = load_payoffs("polis", folder, vectors="text", dim=5)
    np.testing.assert_array_equal(before.items, after.items)
    assert not np.array_equal(before.payoffs.values, after.payoffs.values)
    same = [k for k, item in enumerate(before.item_ids.tolist()) if item in ("taxes/0", "taxes/12")]
    np.testing.assert_allclose(before.items[same[0]], before.items[same[1]])  # the same words


def test_agreement_is_feedback_for_vectors_of_users_and_items(folder: Path) -> None:
    data = load("polis", folder / "polis" / "taxes", dim=3)
    naive = naive_votes(folder / "polis" / "taxes")
    assert data.provenance.rows == len(naive)
    assert data.provenance.users_found == 30
    assert data.provenance.density == pytest.approx(sum(v > 0 for v in naive.values()) / (30 * 14))


HEADER = "timestamp,comment-id,voter-id,vote\n"


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        (
            "votes.csv",
            "timestamp,comment-id,vote\n1,2,1\n",
            "line 1 of votes.csv of taxes: no column 'voter-id'",
        ),
        ("votes.csv", HEADER, "votes.csv of taxes has no rows"),
        (
            "votes.csv",
            f"{HEADER}1,2,3,2\n",
            "line 2 of votes.csv: vote must be -1, 0 or 1",
        ),
        (
            "votes.csv",
            f"{HEADER}1,2,me,1\n",
            "line 2 of votes.csv: voter-id must be a whole",
        ),
        (
            "comments.csv",
            "comment-id,comment-body\n0,none\n",
            "has no text of the comment taxes/1$",
        ),
        (
            "comments.csv",
            "comment-id,comment-body\nx,none\n",
            "taxes: comment-id 'x' is not a whole",
        ),
        (
            "participants-votes.csv",
            "participant,n-votes\n1,3\n",
            "no column 'group-id' in",
        ),
        (
            "participants-votes.csv",
            "participant,group-id\n1,me\n",
            "participant taxes/1 is no number",
        ),
    ],
)
def test_broken_files_get_a_sentence(folder: Path, file: str, content: str, says: str) -> None:
    generated.write(folder / "polis" / "taxes" / file, content)
    with pytest.raises(coterie.DataError, match=says):
        load_payoffs("polis", folder, vectors="text", dim=3)


def test_missing_files_are_named(folder: Path) -> None:
    (folder / "polis" / "water" / "participants-votes.csv").unlink()
    with pytest.raises(coterie.MissingData, match=r"no polis file beside .*its participants-votes.csv"):
        load_payoffs("polis", folder, vectors="text", dim=3)
    (folder / "empty").mkdir()
    with pytest.raises(
        coterie.MissingData, match=r"no polis file in .*download openData from https://github.com"
    ):
        load_payoffs("polis", folder / "empty")
