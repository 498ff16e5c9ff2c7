"""An export takes no more memory the more events there are, and none of the event loop's time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from coterie.service.core.engine import PolicyEngine
from coterie.service.http import routes
from coterie.service.settings import PolicySettings
from coterie.service.storage.event_store import Event
from coterie.service.storage.export import ExportRow, export_rows
from coterie.service.storage.sqlite import SQLiteStore
from service.serving import in_event_loop, served
from service.shops import ITEMS

DIM, ARMS, FEW, MANY = 16, 10, 5_000, 40_000
PEAKS = """
import json, sys
from itertools import islice
from pathlib import Path
from coterie.service.storage.export import ExportRow, export_rows, json_lines, write_parquet
from coterie.service.storage.sqlite import SQLiteStore

store, dim, form, sizes = sys.argv[1], int(sys.argv[2]), sys.argv[3], map(int, sys.argv[4:])
opened = SQLiteStore(store)
opened.open(lock=False)
peaks = []
for size in sizes:
    rows = islice(export_rows(opened, "default", dim), size)
    Path("/proc/self/clear_refs").write_text("5")
    if form == "parquet":
        write_parquet(rows, Path(store).with_name("log.parquet"), ExportRow)
    else:
        size = sum(map(len, json_lines(rows)))
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    peaks.append(int(status["VmHWM"].split()[0]) * 1024)
print(json.dumps(peaks))
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of many decisions with their rewards, written without the policy."""
    path = tmp_path_factory.mktemp("export") / "a.db"
    engine = PolicyEngine(SQLiteStore(path))
    settings = PolicySettings(dim=DIM, policy="LinUCBInd", log_offers="all")
    live = engine.settle(engine.create("default", settings))
    vectors = np.random.default_rng(0).normal(size=(ARMS, DIM))
    arms = {f"item-{n}": x for n, x in enumerate(vectors)}
    engine.settle(live.decide("alice", arms=arms, decision_id="first"))
    engine.settle(live.reward("first", 0.5))
    decision, reward = engine.store.find("default", "first")
    made: list[Event] = []
    for n in range(MANY):
        key, seq = f"copy-{n}", reward.seq + 1 + 2 * n
        made.append(decision._replace(seq=seq, decision=key))
        made.append(reward._replace(seq=seq + 1, decision=key))
    engine.journal.run(lambda: engine.store.append(made))
    engine.close(snapshot=False)
    return path


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_eight_times_as_many_events_take_no_more_memory(store: Path, form: str) -> None:
    words = [sys.executable, "-c", PEAKS, str(store), str(DIM), form, str(FEW), str(MANY)]
    few, many = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    assert many - few < 20 * 2**20  # all rows are 45 MB as arrays, and 300 MB as lists of numbers


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_rows_are_read_in_threads(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    in_loop: list[bool] = []

    def noted(*arguments: Any) -> Iterator[ExportRow]:
        for row in export_rows(*arguments):
            in_loop.append(in_event_loop())
            yield row

    monkeypatch.setitem(routes.EXPORTED, "decisions", (noted, ExportRow))
    with (
        served(str(tmp_path / "a.db"), dim=2) as one,
        httpx.Client(base_url=one.url, trust_env=False) as http,
    ):
        live = one.engine.find("default")
        live.change_items(ITEMS)
        for n in range(10):
            decided = live.decide("alice", decision_id=f"d{n}")
            one.engine.settle(live.reward(decided.result.id, 1.0))
        http.get(f"/v1/policies/default/export?format={form}").raise_for_status()
    assert in_loop == [False] * 10
