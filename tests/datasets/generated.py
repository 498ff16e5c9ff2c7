"""Files generated in every schema that the loaders read."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from coterie.seeding import stream


class Row(NamedTuple):
    user: int
    item: int
    rating: float


def rows(n_users: int = 30, n_items: int = 60, count: int = 700, seed: int = 0) -> list[Row]:
    """Distinct (user, item) pairs with half-star ratings.

    Low ids are busier, many counts tie, and no one likes the items that seven divides.
    """
    rng = stream(seed, "tests", "rows")
    users = (n_users * rng.random(4 * count) ** 2).astype(int) + 1
    items = (n_items * rng.random(4 * count) ** 2).astype(int) + 1
    pairs = list(dict.fromkeys(zip(users.tolist(), items.tolist(), strict=True)))[:count]
    stars = rng.integers(1, 11, len(pairs)) / 2
    return [
        Row(user, item, float(star if item % 7 else min(star, 3.0)))
        for (user, item), star in zip(pairs, stars, strict=True)
    ]


def movielens_csv(table: Sequence[Row], end: str = "\n") -> str:
    lines = ["userId,movieId,rating,timestamp", *(f"{u},{i},{r:.1f},964982703" for u, i, r in table)]
    return end.join(lines) + end


def movielens_dat(table: Sequence[Row]) -> str:
    return "".join(f"{u}::{i}::{r:g}::978300760\n" for u, i, r in table)


def movielens_data(table: Sequence[Row]) -> str:
    return "".join(f"{u}\t{i}\t{r:g}\t881250949\n" for u, i, r in table)


def lastfm(table: Sequence[Row]) -> str:
    """One row a tag, so that a pair repeats: as often as it has half stars."""
    header = "userID\tartistID\ttagID\tday\tmonth\tyear\n"
    return header + "".join(
        f"{u}\t{i}\t{tag}\t1\t4\t2009\n" for u, i, r in table for tag in range(int(2 * r))
    )


def yelp_user(user: int) -> str:
    return f"user_{user:017d}"


def yelp_item(item: int) -> str:
    return f"biz_{item:018d}"


def yelp(table: Sequence[Row]) -> str:
    return "".join(yelp_line(row, place) for place, row in enumerate(table))


def yelp_line(row: Row, place: int = 0) -> str:
    review = {
        "review_id": f"review{place:016d}",
        "user_id": yelp_user(row.user),
        "business_id": yelp_item(row.item),
        "stars": row.rating,
        "useful": 0,
        "funny": 0,
        "cool": 0,
        "text": 'Größe, "quotes" and\nlines',
        "date": "1970-01-01 00:00:00",
    }
    return json.dumps(review) + "\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def write_zip(path: Path, members: Sequence[tuple[str, bytes]]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


def tar(members: Sequence[tuple[str, bytes]], gzipped: bool = False) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz" if gzipped else "w") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def jester_ratings(n_users: int = 40, n_jokes: int = 12, seed: int = 0) -> list[Row]:
    """Ratings from −10 to 10 with two digits; every third user rated all jokes, the others about half."""
    rng = stream(seed, "tests", "jester")
    return [
        Row(user, joke, round(float(rng.uniform(-10, 10)), 2))
        for user in range(1, n_users + 1)
        for joke in range(1, n_jokes + 1)
        if user % 3 == 0 or (rng.random() < 0.5) != (joke == 1 + user % n_jokes)
    ]


def jester_csv(table: Sequence[Row]) -> str:
    return "user,joke,rating\n" + "".join(f"{u},{i},{r:.2f}\n" for u, i, r in table)


def jokes_csv(n_jokes: int = 12) -> str:
    """Quoted texts over several lines; neighbours share words, and no. 5 shares none."""
    lines = ["joke,text"]
    for joke in range(1, n_jokes + 1):
        words = f'Word{joke % 4} and ""word{joke % 3}"",\nthen word{joke % 5}' if joke != 5 else "nothing"
        lines.append(f'{joke},"{words.replace("0", "zero").replace("1", "one").replace("2", "two")}"')
    return "\n".join(lines) + "\n"


class Vote(NamedTuple):
    time: int
    comment: int
    voter: int
    vote: int


def polis_votes(n_voters: int = 30, n_comments: int = 14, seed: int = 0) -> list[Vote]:
    """Votes in no order of time; some are changed later, and every fifth participant votes on three."""
    rng = stream(seed, "tests", "polis")
    votes = []
    for voter in range(n_voters):
        count = 3 if voter % 5 == 0 else int(rng.integers(6, n_comments + 1))
        for comment in rng.permutation(n_comments)[:count].tolist():
            for _ in range(1 + int(rng.random() < 0.2)):
                time, vote = int(rng.integers(10**12, 2 * 10**12)), int(rng.integers(-1, 2))
                votes.append(Vote(time, comment, voter, vote))
    return [votes[k] for k in rng.permutation(len(votes))]


def polis_group(voter: int) -> str:
    """The group-id of a participant; nobody's who voted on three comments."""
    return "" if voter % 5 == 0 else str(voter % 2)


def polis_conversation(folder: Path, votes: Sequence[Vote], *, xid: bool = False) -> Path:
    """A folder in the format of the open data; some exports have one more column."""
    lines = [f"{v.time},Sat Nov 17 05:09:36 WIB 2018,{v.comment},{v.voter},{v.vote}" for v in votes]
    write(folder / "votes.csv", "\n".join(["timestamp,datetime,comment-id,voter-id,vote", *lines]) + "\n")
    header = "timestamp,datetime,comment-id,author-id,agrees,disagrees,moderated,comment-body"
    comments = sorted({v.comment for v in votes})
    bodies = [
        f'1,then,{c},0,1,2,1,"Alpha {"xyz"[c % 3]}xx, ""quoted""\nbeta {"pqrs"[c % 4]}pp 計程車"'
        for c in comments
    ]
    write(folder / "comments.csv", "\n".join([header, *reversed(bodies)]) + "\n")
    last = {(v.voter, v.comment): v.vote for v in sorted(votes, key=lambda v: v.time)}
    header = ",".join(
        ["participant", *(["xid"] if xid else []), "group-id,n-comments,n-votes,n-agree,n-disagree"]
    )
    rows = [",".join([header, *map(str, comments)])]
    for voter in sorted({v.voter for v in votes}):
        cells = [str(last.get((voter, comment), "")) for comment in comments]
        rows.append(",".join([str(voter), *(["x"] if xid else []), polis_group(voter), "0,0,0,0", *cells]))
    write(folder / "participants-votes.csv", "\n".join(rows) + "\n")
    return folder


def ascii_matrix(rows: Sequence[Sequence[float]]) -> str:
    return "".join(" ".join(f"{value:g}" for value in row) + "\n" for row in rows)


def coat_ratings(n_users: int = 20, n_items: int = 15, each: int = 6, seed: int = 0) -> list[list[int]]:
    """Ratings from 1 to 5 of a few random items a user, 0 for the rest."""
    rng = stream(seed, "tests", "coat")
    ratings = [[0] * n_items for _ in range(n_users)]
    for row in ratings:
        for item in rng.permutation(n_items)[:each].tolist():
            row[item] = int(rng.integers(1, 6))
    return ratings


def coat_features(count: int, sizes: Sequence[int], seed: int = 0) -> list[list[int]]:
    """One of each group of columns is 1."""
    rng = stream(seed, "tests", "coat features")
    picked = [[int(rng.integers(size)) for size in sizes] for _ in range(count)]
    return [
        [int(k == one) for size, one in zip(sizes, row, strict=True) for k in range(size)] for row in picked
    ]


def coat_folder(folder: Path) -> Path:
    """All files of Coat, smaller."""
    write(folder / "test.ascii", ascii_matrix(coat_ratings()))
    write(folder / "train.ascii", ascii_matrix(coat_ratings(each=8, seed=1)))
    write(folder / "propensities.ascii", ascii_matrix([[0.1 + 0.05 * (i % 7) for i in range(15)]] * 20))
    features = folder / "user_item_features"
    write(features / "item_features.ascii", ascii_matrix(coat_features(15, (2, 4, 3))))
    write(features / "user_features.ascii", ascii_matrix(coat_features(20, (2, 3), seed=1)))
    return folder


def tweeted(table: Sequence[Row]) -> str:
    """Ratings from 0 to 10 of films with seven digits; times are in no order."""
    lines = (
        f"{u}::{i:07d}::{2 * r:g}::{1_362_062_307 + (7919 * k) % 1009}" for k, (u, i, r) in enumerate(table)
    )
    return "\n".join(lines) + "\n"


def tweeted_films(n_films: int = 60) -> str:
    """Films with words in other letters and two genres at most."""
    genres, words = ("Drama", "Comedy|Short", "Crime|Drama", ""), ("xero", "yero", "zero")
    films = range(1, n_films + 1)
    return "".join(f"{i:07d}::Fantômas no {words[i % 3]} (19{i})::{genres[i % 4]}\n" for i in films)


def sushi_orders(count: int = 40, n_items: int = 6, seed: int = 0) -> list[tuple[int, list[int]]]:
    """How many people have an order, and the order."""
    rng = stream(seed, "tests", "sushi")
    return [(1 + int(rng.integers(3)), (rng.permutation(n_items) + 1).tolist()) for _ in range(count)]


def soc(orders: Sequence[tuple[int, Sequence[int]]]) -> str:
    """A file of PrefLib: remarks, then the orders."""
    names = [f"# ALTERNATIVE NAME {item}: kind {item} (of fish)" for item in sorted(orders[0][1])]
    lines = [f"{count}: {','.join(map(str, order))}" for count, order in orders]
    return "\n".join(["# FILE NAME: 00014-00000001.soc", "# DATA TYPE: soc", *names, *lines]) + "\n"
