"""Last.fm, as released for HetRec 2011: tags as feedback, or listens as payoffs."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from coterie.datasets.dataset import Dataset
from coterie.datasets.event_table import Events, EventSource, events_of
from coterie.datasets.item_vectors import from_tags
from coterie.datasets.lines import Delimited, FieldFormat, LineBlock, read
from coterie.datasets.payoff_table import PayoffSource, PayoffTable, SparseTable
from coterie.datasets.prepare import prepare_file
from coterie.datasets.request import Frame, Request, Source
from coterie.datasets.sources import ARCHIVES, About, digest, find_file, opened
from coterie.errors import DataError, MissingData
from coterie.extras import need
from coterie.types import Floats, Ints

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

ABOUT = About(
    name="lastfm",
    summary="tags that listeners gave to artists (HetRec 2011, Last.fm)",
    feedback="1 if the user tagged the artist",
    files=("user_taggedartists.dat",),
    archive="hetrec2011-lastfm-2k.zip",
    url="https://grouplens.org/datasets/hetrec-2011/",
    licence="non-commercial use only, cite the Last.fm website and the HetRec 2011 workshop",
)

TAG_FIELDS = Delimited(
    "\t",
    tuple(FieldFormat(name) for name in ("userID", "artistID", "tagID", "day", "month", "year")),
    has_header=True,
)


def make(request: Request) -> Dataset:
    """Artists as items, feedback 1 if the user assigns a tag to the artist   (Sec. 6.2)."""
    return prepare_file(ABOUT, request, _rows)


def events(place: Source) -> Events:
    """Every day on which a user tagged an artist, however many tags were given."""
    import polars as pl

    path = find_file(ABOUT, place)
    with opened(ABOUT, path) as stream:
        tagged = read(stream, TAG_FIELDS.parse)
    days = tagged.select(
        pl.col("userID").alias("user"),
        pl.col("artistID").alias("item"),
        pl.date("year", "month", "day").dt.epoch("d").cast(pl.Float64).alias("time"),
    )
    if days.get_column("time").has_nulls():
        raise DataError(f"{path.name} has a row whose day, month and year are no date")
    return events_of(EventSource(ABOUT.name, path.name, digest(path)), days.unique(maintain_order=True))


def _rows(path: Path) -> pl.DataFrame:
    with opened(ABOUT, path) as stream:
        return read(stream, _parse)


def _parse(block: LineBlock) -> pl.DataFrame:
    import polars as pl

    return TAG_FIELDS.parse(block).select(user="userID", item="artistID", liked=pl.lit(True))


SETTING = "lastfm-2014"


def _about(file: str) -> About:
    about = ABOUT
    return About(
        name=about.name,
        summary=about.summary,
        feedback="1 if the user listened to the artist",
        files=(file,),
        archive=about.archive,
        url=about.url,
        licence=about.licence,
    )


LISTENS, TAGS, FRIENDS = (_about(f"user_{name}.dat") for name in ("artists", "taggedartists", "friends"))
FILE_FIELDS = {
    LISTENS: Delimited("\t", tuple(map(FieldFormat, ("userID", "artistID", "weight"))), has_header=True),
    TAGS: TAG_FIELDS,
    FRIENDS: Delimited("\t", tuple(map(FieldFormat, ("userID", "friendID"))), has_header=True),
}


def listens(place: Source = None, *, dim: int = 25, unit: bool = False) -> PayoffTable:
    """Payoff 1 for every artist that a user listened to; artists without tags are left out.

    Tokens are the ids of tags, counted over users, weighted by tf·ln(N/(1 + df)); rows are made 1 long, and
    their strongest directions are the vectors. With `unit` these are made 1 long too.

    Notes
    -----
    Users who listened only to artists without tags are left out. Friendships are those of `user_friends.dat`,
    if the file exists.
    """
    need("polars", "reading a table")
    heard, hash_heard = _read_file(LISTENS, place)
    tagged, hash_tagged = _read_file(TAGS, place)
    artists = np.intersect1d(heard["artistID"].to_numpy(), tagged["artistID"].to_numpy())
    if len(artists) < 2:
        raise DataError("fewer than two artists of user_artists.dat have tags in user_taggedartists.dat")
    kept = heard.filter(heard["artistID"].is_in(artists.tolist()))
    users = np.unique(kept["userID"].to_numpy())
    payoffs = _counted(kept["userID"].to_numpy(), users, kept["artistID"].to_numpy(), artists)
    payoffs.values[:] = 1.0
    everyone = heard["userID"].n_unique()
    left_out = (
        f"{heard['artistID'].n_unique() - len(artists):,} artists without tags",
        f"{everyone - len(users):,} of {everyone:,} users, who listened to no other artist",
    )
    hashed = sha256(f"{hash_heard} {hash_tagged}".encode()).hexdigest()
    return PayoffTable(
        items=_tag_vectors(tagged, artists, dim, unit),
        payoffs=payoffs,
        user_ids=users,
        item_ids=artists,
        provenance=PayoffSource(
            name=ABOUT.name, setting=SETTING, file=LISTENS.files[0], sha256=hashed, left_out=left_out
        ),
        offers="one-positive",
        friends=_friends(place, users),
    )


def _tag_vectors(tagged: pl.DataFrame, artists: Ints, dim: int, unit: bool) -> Floats:
    known = tagged.filter(tagged["artistID"].is_in(artists.tolist()))
    tags = np.unique(known["tagID"].to_numpy())
    counts = _counted(known["artistID"].to_numpy(), artists, known["tagID"].to_numpy(), tags)
    vectors = from_tags(counts, dim, unit=unit)
    vectors.setflags(write=False)
    return vectors


def _counted(rows: Ints, row_ids: Ints, columns: Ints, column_ids: Ints) -> SparseTable:
    """The number of times that each pair of ids occurs."""
    places = np.searchsorted(row_ids, rows), np.searchsorted(column_ids, columns)
    return SparseTable(*places, np.ones(len(rows)), (len(row_ids), len(column_ids)))


def _friends(place: Source, users: Ints) -> SparseTable | None:
    """The symmetric graph of friendships; None without the file."""
    try:
        pairs, _ = _read_file(FRIENDS, place)
    except MissingData:
        return None
    here = pairs.filter(pairs["userID"].is_in(users.tolist()) & pairs["friendID"].is_in(users.tolist()))
    one, two = here["userID"].to_numpy(), here["friendID"].to_numpy()
    apart = one != two
    either = np.concatenate([one, two])[np.tile(apart, 2)], np.concatenate([two, one])[np.tile(apart, 2)]
    graph = _counted(either[0], users, either[1], users)
    graph.values[:] = 1.0
    return graph


def _read_file(about: About, place: Source) -> tuple[pl.DataFrame, str]:
    """One of the files; if another of them was named, the one beside it."""
    if place is not None and not isinstance(place, Frame):
        path = Path(place).expanduser()
        if path.is_file() and not path.name.lower().endswith(ARCHIVES):
            place = path.parent
    path = find_file(about, place)
    with opened(about, path) as stream:
        return read(stream, FILE_FIELDS[about].parse), digest(path)
