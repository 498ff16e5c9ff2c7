"""Payoffs from tables: what is read and left out, and that nothing of a served user reaches the vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import coterie
from coterie.datasets import load_payoffs
from coterie.datasets.item_vectors import from_tags
from coterie.datasets.payoff_table import SparseTable
from coterie.environments import Payoffs, Stream
from coterie.simulation import simulate
from datasets import generated

ROWS = generated.rows(n_users=40, n_items=50, count=900)


def frame(**changes: Any) -> pl.DataFrame:
    columns = {
        "user": [row.user for row in ROWS],
        "item": [row.item for row in ROWS],
        "rating": [row.rating for row in ROWS],
        "timestamp": [1000 + (7919 * k) % 1009 for k in range(len(ROWS))],
    }
    return pl.DataFrame({**columns, **changes})


def test_rated_items_are_worth_their_scaled_rating(tmp_path: Path) -> None:
    path = generated.write(tmp_path / "ratings.csv", generated.movielens_csv(ROWS))
    table = load_payoffs("movielens", path, dim=6)
    ratings = {(row.user, row.item): row.rating for row in ROWS}
    entries = zip(
        table.payoffs.rows.tolist(), table.payoffs.columns.tolist(), table.payoffs.values, strict=True
    )
    for row, column, payoff in entries:
        pair = int(table.user_ids[row]), int(table.item_ids[column])
        assert payoff == pytest.approx((ratings[pair] - 0.5) / 4.5)
    world = Payoffs(table, n_arms=5, seed=1)
    assert world.offers == "known"
    assert simulate(coterie.LinUCBInd(world.n_users, 6, beta=0.1), world, 300).reward[-1] > 0


def test_clicks_are_ratings_above_the_threshold(tmp_path: Path) -> None:
    path = generated.write(tmp_path / "reviews" / "yelp_academic_dataset_review.json", generated.yelp(ROWS))
    table = load_payoffs("yelp", path, dim=6, threshold=3.5)
    assert set(table.payoffs.values.tolist()) == {0.0, 1.0}
    stars = load_payoffs("yelp", path, dim=6)
    np.testing.assert_array_equal(table.payoffs.values == 1.0, stars.payoffs.values > (3.5 - 1) / 4)


@pytest.mark.parametrize("setting", ["rated", "stream"])
def test_nothing_of_a_served_user_reaches_the_vectors(setting: str) -> None:
    before = load_payoffs("interactions", frame(), setting=setting, dim=6)
    served = set(before.user_ids.tolist())
    rng = np.random.default_rng(3)
    mine = np.array([row.user in served for row in ROWS])
    ratings = np.where(mine, rng.integers(1, 11, len(ROWS)) / 2, [row.rating for row in ROWS])
    items = np.where(mine, rng.integers(1, 51, len(ROWS)), [row.item for row in ROWS])
    after = load_payoffs("interactions", frame(rating=ratings, item=items), setting=setting, dim=6)
    shared = np.intersect1d(before.item_ids, after.item_ids)
    assert len(shared) == len(before.item_ids)  # the catalogue is the others' too
    np.testing.assert_array_equal(before.items, after.items)
    assert not np.array_equal(before.payoffs.columns, after.payoffs.columns)
    others = np.where(mine, [row.rating for row in ROWS], 5.5 - np.array([row.rating for row in ROWS]))
    if setting == "rated":
        changed = load_payoffs("interactions", frame(rating=others), setting=setting, dim=6)
        assert not np.allclose(before.items, changed.items)


def test_half_of_the_users_are_never_served_whatever_the_seed_of_the_world() -> None:
    table = load_payoffs("interactions", frame(), dim=6)
    assert table.n_users == 20
    other = load_payoffs("interactions", frame(), dim=6, seed=1)
    assert set(other.user_ids.tolist()) != set(table.user_ids.tolist())
    assert "20 of 40 users, whose feedback makes" in table.provenance.left_out[0]


def test_vectors_have_an_intercept_a_mean_and_directions() -> None:
    table = load_payoffs("interactions", frame(), dim=6)
    assert set(table.items[:, 0].tolist()) == {5.0}
    for part in (table.items[:, 1:2], table.items[:, 2:]):
        assert (part**2).sum(axis=1).mean() == pytest.approx(1 / 2)
    ratings = {(row.user, row.item): (row.rating - 0.5) / 4.5 for row in ROWS}
    held = [pair for pair in ratings if pair[0] not in set(table.user_ids.tolist())]
    overall = np.mean([ratings[pair] for pair in held])
    means = []
    for item in table.item_ids.tolist():
        own = [ratings[pair] for pair in held if pair[1] == item]
        means.append((sum(own) + 5 * overall) / (len(own) + 5))
    standard = (np.array(means) - np.mean(means)) / np.std(means)
    np.testing.assert_allclose(table.items[:, 1] * np.sqrt(2), standard, atol=1e-9)


def test_a_stream_follows_the_clock() -> None:
    times = frame()["timestamp"].to_list()
    table = load_payoffs("interactions", frame(), setting="stream", dim=6)
    world = Stream(table, n_arms=5, seed=4)
    known = set(table.item_ids.tolist())
    served = set(table.user_ids.tolist())
    order = sorted(range(len(ROWS)), key=lambda k: times[k])
    everything = {user: {row.item for row in ROWS if row.user == user} for user in served}
    expected = [ROWS[k] for k in order if ROWS[k].user in served and ROWS[k].item in known]
    expected = [row for row in expected if len(known - everything[row.user]) >= 4]
    assert world.n_rounds == len(expected)
    assert [int(table.item_ids[item]) for item in world.events] == [row.item for row in expected]
    assert [int(table.user_ids[world.members[u]]) for u in world.users] == [row.user for row in expected]
    assert world.users.tolist() == list(appearance([row.user for row in expected]))
    assert world.present(0) == len({row.user for row in expected[:256]})
    block = world.block(0)
    for row, picks, means in zip(expected, block.picks, block.means, strict=False):
        items = [int(table.item_ids[pick]) for pick in picks]
        assert items[int(means.argmax())] == row.item
        assert not (set(items) - {row.item}) & everything[row.user]


def appearance(users: list[int]) -> list[int]:
    numbers = {user: k for k, user in enumerate(dict.fromkeys(users))}
    return [numbers[user] for user in users]


def test_users_of_a_stream_join_a_policy_as_they_appear() -> None:
    table = load_payoffs("interactions", frame(), setting="stream", dim=6)
    world = Stream(table, n_arms=5)
    policy = coterie.LinUCBInd(1, 6, beta=0.1)
    trace = simulate(policy, world, world.n_rounds)
    assert policy.n_users == world.n_users
    assert trace.uniform[-1] == pytest.approx(world.n_rounds / 5)


def test_dates_are_times_too() -> None:
    days = [f"2020-01-{1 + k % 28:02d}T10:00:{k % 60:02d}" for k in range(len(ROWS))]
    text = load_payoffs("interactions", frame(timestamp=days), setting="stream", dim=6)
    dates = pl.Series(days).str.to_datetime()
    again = load_payoffs("interactions", frame(timestamp=dates), setting="stream", dim=6)
    np.testing.assert_array_equal(text.events, again.events)
    named = frame(timestamp=days).rename({"timestamp": "when"})
    last = load_payoffs("interactions", named, setting="stream", dim=6, columns=("user", "item", "when"))
    np.testing.assert_array_equal(text.events, last.events)


def lastfm_folder(tmp_path: Path, friends: bool = True) -> Path:
    listens = "userID\tartistID\tweight\n" + "".join(f"{u}\t{i}\t{int(9 * r)}\n" for u, i, r in ROWS)
    generated.write(tmp_path / "user_artists.dat", listens)
    tagged = [row for row in ROWS if row.item % 5]
    header = "userID\tartistID\ttagID\tday\tmonth\tyear\n"
    tags = "".join(f"{u}\t{i}\t{(i * t) % 11}\t{1 + t}\t4\t2009\n" for u, i, r in tagged for t in range(1, 4))
    generated.write(tmp_path / "user_taggedartists.dat", header + tags)
    if friends:
        generated.write(tmp_path / "user_friends.dat", "userID\tfriendID\n1\t2\n2\t1\n1\t3\n3\t1\n")
    return tmp_path


def test_lastfm_2014_is_about_artists_with_tags(tmp_path: Path) -> None:
    table = load_payoffs("lastfm", lastfm_folder(tmp_path), setting="lastfm-2014", dim=4)
    tagged = {row.item for row in ROWS if row.item % 5}
    assert set(table.item_ids.tolist()) == tagged
    assert len(table.payoffs) == sum(row.item in tagged for row in ROWS)
    assert set(table.payoffs.values.tolist()) == {1.0}
    assert table.friends is not None
    assert table.friends.counts[np.searchsorted(table.user_ids, [1, 2, 3])].tolist() == [2, 1, 1]
    unit = load_payoffs("lastfm", tmp_path / "user_artists.dat", setting="lastfm-2014", dim=4, unit=True)
    lengths = np.linalg.norm(table.items, axis=1, keepdims=True)
    np.testing.assert_allclose(unit.items * lengths, table.items, atol=1e-12)
    (tmp_path / "user_friends.dat").unlink()
    assert load_payoffs("lastfm", tmp_path, setting="lastfm-2014", dim=4).friends is None
    (tmp_path / "user_artists.dat").unlink()
    with pytest.raises(coterie.MissingData, match=r"no lastfm file .* its user_artists.dat; licence"):
        load_payoffs("lastfm", tmp_path, setting="lastfm-2014")


def test_tags_are_weighted_as_the_page_says() -> None:
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 4, size=(30, 12)) * (rng.random((30, 12)) < 0.5)
    counts[7] = 0
    rows, columns = np.nonzero(counts)
    vectors = from_tags(SparseTable(rows, columns, counts[rows, columns].astype(float), (30, 12)), 5)
    weights = counts * np.log(30 / (1 + (counts > 0).sum(axis=0)))
    lengths = np.linalg.norm(weights, axis=1, keepdims=True)
    unit = weights / np.where(lengths > 0, lengths, 1)
    left, singular, _ = np.linalg.svd(unit, full_matrices=False)
    wanted = left[:, :5] * singular[:5]
    np.testing.assert_allclose(np.abs(vectors), np.abs(wanted), atol=1e-9)
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(5)]
    assert (largest > 0).all()
    assert not vectors[7].any()


def test_own_payoffs_with_own_vectors(tmp_path: Path) -> None:
    table = pl.DataFrame({"who": ["b", "a", "a"], "what": [7, 9, 7], "worth": [1.0, 0.25, 0.0]})
    vectors = pl.DataFrame({"what": [9, 7, 8], "x": [0.0, 1.0, 5.0], "y": [1.0, 0.0, 5.0]})
    vectors.write_csv(tmp_path / "items.csv")
    for items in (vectors, tmp_path / "items.csv", [[1.0, 0.0], [0.0, 1.0]]):
        own = load_payoffs("interactions", table, setting="payoffs", items=items)
        assert own.payoffs.dense().tolist() == [[0.0, 0.25], [1.0, 0.0]]
        assert own.items.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert Payoffs(own, n_arms=2).block(0).means.shape == (256, 2)
    with pytest.raises(coterie.DataError, match="no vector of the item 7"):
        load_payoffs("interactions", table, setting="payoffs", items=vectors.filter(pl.col("what") != 7))
    with pytest.raises(coterie.ArgumentError, match="'payoffs' needs vectors of the items"):
        load_payoffs("interactions", table, setting="payoffs")


@pytest.mark.parametrize(
    ("table", "options", "says"),
    [
        (frame().drop("timestamp"), {"setting": "stream"}, "the table has no timestamps, its columns are"),
        (frame(timestamp=[5] * len(ROWS)), {"setting": "stream"}, "have the same time"),
        (frame(timestamp=["soon"] * len(ROWS)), {"setting": "stream"}, "timestamp must be a time"),
        (frame(item=[1] * len(ROWS)), {}, "has a single item"),
        (frame(rating=[float("nan")] * len(ROWS)), {}, "rating must be a finite number, got nan"),
        (frame(rating=[3.0] * len(ROWS)), {}, "all ratings are 3"),
        (frame().select("user", "item"), {}, "has no ratings"),
        (frame().clear(), {}, "the table has no rows"),
        (frame(), {"columns": ("user", "film")}, "columns must be among user, item, rating, timestamp"),
        (frame(), {"setting": "lastfm-2014"}, "a protocol on the dataset 'lastfm'"),
        (frame(), {"setting": "odd"}, "no setting of real feedback 'odd'"),
        (frame(), {"dim": 60}, "dim must be smaller: the data has"),
    ],
)
def test_wrong_tables_get_a_sentence(table: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises((coterie.DataError, coterie.ArgumentError, coterie.UnknownName), match=says):
        load_payoffs("interactions", table, **options)


def test_one_rating_a_user_cannot_be_served() -> None:
    one = frame().unique("user", keep="first", maintain_order=True)
    table = load_payoffs("interactions", one, dim=2)
    with pytest.raises(coterie.ArgumentError, match="no user has 10 items"):
        Payoffs(table, n_arms=10)


def test_missing_files_are_told_where_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(coterie.MissingData, match=r"no movielens file .*download ml-25m.zip"):
        load_payoffs("movielens", tmp_path)
    with pytest.raises(coterie.MissingData, match="no file at"):
        load_payoffs("interactions", tmp_path / "none.csv")
