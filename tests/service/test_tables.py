"""`Recommender` with tables of pandas and polars, arrays and mappings, and what a notebook asks of it."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest

import coterie
from coterie import Recommender

mpl.use("agg")
COLUMNS: dict[str, Any] = {"id": ["tea", "coffee"], "hot": [1.0, 0.0], "strong": [0.0, 1.0]}
FORMS: dict[str, Any] = {
    "pandas": pd.DataFrame(COLUMNS),
    "pandas by index": pd.DataFrame(COLUMNS).set_index("id"),
    "polars": pl.DataFrame(COLUMNS),
    "lists of polars": pl.DataFrame({"id": COLUMNS["id"], "x": [[1.0, 0.0], [0.0, 1.0]]}),
    "mapping": {"tea": [1.0, 0.0], "coffee": np.array([0.0, 1.0])},
    "mapping of series": {"tea": pd.Series([1.0, 0.0]), "coffee": pl.Series([0.0, 1.0])},
}
LOG: dict[str, Any] = {"user": ["ann", "bob"] * 6, "item": ["tea", "coffee"] * 6, "reward": [1, 0] * 6}
LOGS: dict[str, Any] = {
    "pandas": pd.DataFrame(LOG),
    "polars": pl.DataFrame(LOG),
    "columns": LOG,
    "arrays": {name: np.array(values) for name, values in LOG.items()},
    "rows": [dict(zip(LOG, row, strict=True)) for row in zip(*LOG.values(), strict=True)],
}


@pytest.mark.parametrize("form", FORMS)
def test_items_and_arms_may_have_every_form(form: str) -> None:
    shop = Recommender(items=FORMS[form])
    assert shop.items == ("tea", "coffee")
    assert Recommender(dim=2).decide("ann", arms=FORMS[form], k=2).ranking == ("tea", "coffee")


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pl.Series])
def test_ids_may_be_a_column_of_a_table(kind: Any) -> None:
    ids = kind(["coffee"])
    shop = Recommender(items=FORMS["polars"])
    chosen = shop.decide("ann", ids).chosen
    assert (chosen, type(chosen)) == ("coffee", str)
    assert shop.decide("ann", exclude=ids).chosen == "tea"


@pytest.mark.parametrize("form", LOGS)
def test_a_log_is_learnt_in_its_order_whatever_its_form(form: str) -> None:
    shop, one_by_one = Recommender(items=FORMS["mapping"]), Recommender(items=FORMS["mapping"])
    assert shop.fit(LOGS[form]) is shop
    for user, item, reward in zip(*LOG.values(), strict=True):
        one_by_one.feedback(user, reward, item=item)
    assert np.array_equal(shop.policy.estimates, one_by_one.policy.estimates)
    assert shop.users == ("ann", "bob")
    assert shop.policy.rounds == 12


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"item": ["tea"] * 11 + ["cocoa"]}, r"row 11 \(from 0\): .*cocoa"),
        ({"reward": [1] * 11 + [float("nan")]}, r"row 11 \(from 0\): reward must be"),
        ({"user": ["ann"] * 11 + [None]}, r"row 11 \(from 0\) needs user, item and reward, got no user"),
        ({"reward": [1]}, "columns of a log must have one length"),
    ],
)
def test_a_wrong_row_is_named_and_nothing_is_learnt(changes: dict[str, Any], sentence: str) -> None:
    shop = Recommender(items=FORMS["mapping"])
    with pytest.raises(coterie.CoterieError, match=sentence):
        shop.fit({**LOG, **changes})
    assert shop.policy.rounds == 0


def test_a_reward_with_an_id_counts_once() -> None:
    shop = Recommender(items=FORMS["mapping"])
    log = {**LOG, "feedback_id": [f"order-{number}" for number in range(12)]}
    assert shop.fit(log).fit(log).policy.rounds == 12


def test_similar_users_pictures_and_tables_have_names() -> None:
    rng = np.random.default_rng(1)
    likes = {"ann": 0, "bob": 1, "carol": 0, "dave": 1}
    rows = [
        {"user": user, "item": item, "reward": float(item == COLUMNS["id"][taste]) + 0.05 * rng.normal()}
        for _ in range(15)
        for user, taste in likes.items()
        for item in COLUMNS["id"]
    ]
    shop = Recommender(items=FORMS["pandas"]).fit(rows)
    assert shop.similar("ann", 1)[0].user == "carol"
    assert shop.similar("dave")[0].user == "bob"
    table = shop.to_frame()
    assert table["user"].to_list() == list(likes)
    assert table["rewards"].to_list() == [30] * 4
    assert sum(len(np.asarray(one.get_offsets())) for one in shop.plot_clusters().collections) == 4
    with pytest.raises(coterie.UnknownName):
        shop.similar("nobody")
    with pytest.raises(coterie.ArgumentError, match="LinUCBInd does not say who is alike"):
        Recommender(2, "LinUCBInd", {"beta": 0.1}, users=["ann"]).similar("ann")


def test_the_text_of_an_explanation_has_the_ten_best_items() -> None:
    vectors = {f"item-{number}": [number / 30, 1.0] for number in range(30)}
    shop = Recommender(items=vectors, users=["ann", "bob"])
    shop.fit({"user": ["ann"] * 30, "item": list(vectors), "reward": [number / 30 for number in range(30)]})
    found = shop.explain("ann")
    lines = repr(found).splitlines()
    assert lines[0].startswith("user ann: 30 rewards, learns from bob")
    assert [line.split()[-1] for line in lines[1:11]] == [one.id for one in found.scores[:10]]
    assert lines[11:] == ["20 more in scores"]
