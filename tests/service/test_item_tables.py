"""Items in all the forms that people have them in: into a recommender, through both clients, from files."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie import ArgumentError, AsyncClient, Client, CoterieError, Recommender, StoreError
from coterie.service.item_tables import item_table, read_items
from service.serving import Served, served

VECTORS = np.arange(12.0).reshape(4, 3) / 12
IDS = ["a", "b", "007", "d"]
TAGS = {"a": ["hot", "new"], "007": ["hot"]}


def frames() -> list[Any]:
    """The same items as tables of pandas and polars, with lists and with columns of numbers."""
    import pandas as pd
    import polars as pl

    lists = {"id": IDS, "x": VECTORS.tolist(), "tags": [TAGS.get(one, []) for one in IDS]}
    numbers = {"id": IDS, **{f"f{n}": VECTORS[:, n] for n in range(3)}, "tags": ["hot; new", None, "hot", ""]}
    return [kind(columns) for kind in (pd.DataFrame, pl.DataFrame) for columns in (lists, numbers)]


@pytest.mark.parametrize("which", range(4))
def test_data_frames_of_all_kinds_are_the_same_items(which: int) -> None:
    table = item_table(frames()[which])
    assert (list(table.ids), table.vectors.tolist()) == (IDS, VECTORS.tolist())
    assert {one: sorted(tags) for one, tags in (table.tags or {}).items() if tags} == TAGS
    one = Recommender(items=frames()[which], policy="LinUCBInd")
    assert sorted(one.items) == sorted(IDS)
    assert one.decide("ann", only="new").chosen == "a"


def test_arrays_and_mappings_are_the_same_items() -> None:
    for given, ids in ((dict(zip(IDS, VECTORS, strict=True)), None), (VECTORS, IDS), (VECTORS.tolist(), IDS)):
        table = item_table(given, ids=ids, tags=TAGS)
        assert (list(table.ids), table.vectors.tolist(), table.tags) == (IDS, VECTORS.tolist(), TAGS)
    assert list(item_table(VECTORS).ids) == ["0", "1", "2", "3"]
    assert list(item_table(VECTORS, ids=np.array([7, 8, 9, 10])).ids) == ["7", "8", "9", "10"]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """The same items in files of all kinds."""
    lists, numbers = frames()[2:]
    lists.write_parquet(tmp_path / "lists.parquet")
    numbers.write_parquet(tmp_path / "numbers.parquet")
    numbers.write_csv(tmp_path / "numbers.csv")
    np.save(tmp_path / "array.npy", VECTORS.astype(np.float32))
    (tmp_path / "ids.txt").write_text("\n".join(IDS) + "\n")
    np.save(tmp_path / "ids.npy", np.array(IDS))
    return {path.name: path for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("lists.parquet", None),
        ("numbers.parquet", None),
        ("numbers.csv", None),
        ("array.npy", "ids.txt"),
        ("array.npy", "ids.npy"),
    ],
)
def test_files_of_all_kinds_are_the_same_items(files: dict[str, Path], name: str, ids: str | None) -> None:
    table = read_items(files[name], ids=None if ids is None else files[ids])
    assert list(table.ids) == IDS
    np.testing.assert_allclose(table.vectors, VECTORS, rtol=1e-6)


WRONG: list[tuple[Any, dict[str, Any], str]] = [
    (VECTORS, {"ids": ["a", "b", "a", "d"]}, "items must name each id once, got 'a' twice"),
    (VECTORS, {"ids": ["a", "b"]}, "ids must be 4, one for each row, got 2"),
    (VECTORS, {"ids": ["a", "b", "", "d"]}, "an item's id must have 1 to 256 characters, got 0"),
    (VECTORS, {"ids": [True, 1, 2, 3]}, "an item's id must be text, got True"),
    (VECTORS[0], {}, "items must be a mapping, a data frame or an"),
    (np.full((2, 2), np.nan), {}, "items must hold finite numbers only, got nan"),
    ({"a": [1.0], "b": [1.0, 2.0]}, {}, "items must be vectors of one length, got rows of unequal length"),
    ({"a": [1.0]}, {"ids": ["a"]}, "ids are those of the mapping"),
]


@pytest.mark.parametrize(("items", "options", "sentence"), WRONG, ids=[one[2][:30] for one in WRONG])
def test_wrong_items_are_refused_and_nothing_is_put(items: Any, options: Any, sentence: str) -> None:
    one = Recommender(3, items=dict(zip(IDS, VECTORS, strict=True)))
    before = one.summary.version, one.items
    with pytest.raises(ArgumentError, match=sentence):
        one.put_items(items, **options)
    assert (one.summary.version, one.items) == before


def test_wrong_tables_are_refused_with_what_would_do() -> None:
    import polars as pl

    for columns, sentence in (
        ({"name": ["a"], "x": [[1.0]]}, r"a table of items needs a column 'id', got \['name', 'x'\]"),
        ({"id": ["a"]}, "a table of items needs a column 'x' of lists, or columns of numbers"),
        ({"id": ["a"], "colour": ["red"]}, "column 'colour' must hold numbers"),
        ({"id": ["a", None], "f": [1.0, 2.0]}, "an item's id must be text, got None"),
        ({"id": ["a", "b"], "x": [[1.0], [1.0, 2.0]]}, "got rows of unequal length"),
        ({"id": ["a", "b"], "f": [1.0, None]}, "items must hold finite numbers only, got nan"),
    ):
        with pytest.raises(ArgumentError, match=sentence):
            item_table(pl.DataFrame(columns, strict=False))


# Through a service.

MANY, DIM = 2_500, 64


def many(seed: int = 0) -> np.ndarray[Any, Any]:
    drawn: np.ndarray[Any, Any] = np.random.default_rng(seed).normal(size=(MANY, DIM)) / 8
    return drawn


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    with served(str(tmp_path / "a.db"), dim=DIM) as one:
        yield one


def test_both_clients_put_and_replace_catalogues_of_several_batches(service: Served) -> None:
    ids = [f"item-{n}" for n in range(MANY)]
    seen: list[tuple[int, int]] = []
    with Client(service.url) as client:
        count = client.put_items(
            many(), ids=ids, tags={"item-7": ["red"]}, progress=lambda *n: seen.append(n)
        )
        assert count == MANY
        assert len(seen) > 1
        assert seen[-1] == (MANY, MANY)
        assert client.list_items() == ids
        assert client.decide("ann", only="red").chosen == "item-7"
        assert client.decide("ann", exclude=ids[:-1]).chosen == ids[-1]
        assert client.remove_items(ids[:300]) == MANY - 300

    async def replace() -> tuple[int, list[str]]:
        async with AsyncClient(service.url) as client:
            count = await client.put_items(many(1), replace_all=True)
            assert (await client.decide("ann", k=3, exclude=["0"], only=None)).chosen != "0"
            assert await client.remove_items(["0"]) == MANY - 1
            return count, await client.list_items()

    count, left = asyncio.run(replace())
    assert count == MANY
    assert sorted(left) == sorted(map(str, range(1, MANY)))
    state = service.engine.find("default").state
    assert np.array_equal(state.items.vectors(["17"])[0], many(1)[17])


def test_long_tags_are_sent_in_more_bodies(service: Served) -> None:
    tags = {str(n): [f"{n}-{tag}-{'t' * 80}" for tag in range(50)] for n in range(900)}
    with Client(service.url) as client:
        assert client.put_items(many()[:900], tags=tags) == 900
        assert client.decide("ann", only=tags["899"][3]).chosen == "899"


def test_an_error_in_a_later_batch_says_what_was_put(service: Served) -> None:
    vectors = many()
    vectors[2_000] *= 1e9  # too long for the policy, which only the service knows
    with (
        Client(service.url) as client,
        pytest.raises(ArgumentError, match=r"items must be shorter than .*; 1,024 items before it were put"),
    ):
        client.put_items(vectors)
    assert len(service.engine.find("default").state.items) == 1_024


def test_items_that_were_acknowledged_survive_a_kill(tmp_path: Path) -> None:
    """The service is killed while items are put: whole batches are there, and none that was not sent."""
    serve = [sys.executable, "-m", "coterie", "serve", "--port", "0", "--dim", str(DIM)]
    with subprocess.Popen(
        [*serve, "--store", str(tmp_path / "a.db")], stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stderr is not None
        url = process.stderr.readline().split(" on ")[1].split(";")[0]
        with Client(url, retries=0) as client:

            def kill(done: int, total: int) -> None:
                if done < total:
                    os.kill(process.pid, signal.SIGKILL)

            with pytest.raises(StoreError, match="1,024 items before it were put"):
                client.put_items(many(), progress=kill)
    with Recommender(store=tmp_path / "a.db") as again:
        assert sorted(map(int, again.items)) == list(range(1_024))
        offered = {str(n): x for n, x in enumerate(many()[:1_024])}
        alone = Recommender(DIM, items=offered)
        assert again.decide("ann").chosen == alone.decide("ann").chosen


# The command.


def test_the_command_puts_lists_and_removes(service: Served, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from coterie.cli.commands import app

    def call(*words: object) -> Any:
        return CliRunner().invoke(app, ["items", *map(str, words), "--url", service.url], prog_name="coterie")

    np.save(tmp_path / "vectors.npy", many())
    done = call("put", tmp_path / "vectors.npy")
    assert "2,500 items of vectors.npy put; the catalogue has 2,500" in done.output
    assert call("put", tmp_path / "none.npy").exit_code == 3
    assert "a file of items is one of .npy, .parquet, .csv" in call("put", __file__).output
    assert json.loads(call("list", "--limit", 2, "--json").stdout)["count"] == MANY
    assert "the catalogue has 2,498" in call("remove", "0", "1").output
    assert "no item 'nothing'" in call("remove", "nothing").output


def test_ctrl_c_says_what_was_put(service: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from coterie.cli.commands import app

    np.save(tmp_path / "vectors.npy", many())
    put = Client.put_items

    def interrupted(self: Client, items: Any, **options: Any) -> int:
        report = options.pop("progress")

        def progress(done: int, total: int) -> None:
            report(done, total)
            raise KeyboardInterrupt

        return put(self, items, progress=progress, **options)

    monkeypatch.setattr(Client, "put_items", interrupted)
    words = ["items", "put", str(tmp_path / "vectors.npy"), "--url", service.url]
    found = CliRunner().invoke(app, words, prog_name="coterie")
    assert found.exit_code == 130
    assert "interrupted; 1,024 of 2,500 items of vectors.npy were put, the first ones" in found.output
    assert len(service.engine.find("default").state.items) == 1_024


def test_a_service_that_is_not_there_is_told_in_a_sentence() -> None:
    with Client("http://127.0.0.1:1", retries=0) as client, pytest.raises(CoterieError, match="reached"):
        client.put_items({"a": [1.0]})


NO_LISTS: list[tuple[str, str]] = [
    ("decide('ann', 'a')", "items must be a list of ids, got 'a'"),
    ("decide('ann', VECTORS)", "one of items must be text, got array"),
    ("decide('ann', {'a': VECTORS[0]})", "items must be a list of ids, got {'a'"),
    ("decide('ann', exclude='a')", "exclude must be a list of ids, got 'a'"),
    ("decide('ann', only=3)", "only must be a list of tags, got 3"),
    ("decide('ann', arms={'a': [0.0, 0.5, 0.5]})", "arm 'a' has another vector than the item of that id"),
    ("remove_items('a')", "items must be a list of ids, got 'a'"),
    ("put_items({'z': VECTORS[0]}, tags={'z': 'hot'})", "tags of 'z' must be a list of tags, got 'hot'"),
]


def test_what_is_no_list_of_items_is_refused_alike_by_recommender_and_client(tmp_path: Path) -> None:
    with served(str(tmp_path / "a.db"), dim=3) as running, Client(running.url, retries=0) as client:
        shop = Recommender(dim=3)
        for one in (shop, client):
            one.put_items(VECTORS, ids=IDS)
            for call, sentence in NO_LISTS:
                with pytest.raises(ArgumentError) as caught:
                    eval(f"one.{call}", {"one": one, "VECTORS": VECTORS})
                assert str(caught.value).startswith(sentence), call
        unchecked: Any = VECTORS
        with pytest.raises(ArgumentError, match="arms must be vectors by id"):
            client.decide("ann", arms=unchecked)
        assert (list(shop.items), client.list_items()) == (IDS, IDS)


def test_a_table_with_a_gap_or_without_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    for rows, sentence in (("a,1,\n", "column 'g' must hold numbers, got None"), ("", "has no items")):
        path.write_text(f"id,f,g\n{rows}")
        with pytest.raises(CoterieError, match=sentence):
            read_items(path)
