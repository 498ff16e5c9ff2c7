"""`coterie serve` and `coterie keys` as processes, as people start them."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import httpx
import pytest

from coterie import ArgumentError, Client, CoterieError, UnknownName
from coterie.cli.demo import visit
from coterie.cli.serve import read_server_settings
from coterie.service.core.recovery import recover_policy
from coterie.service.http.api_keys import create_key
from coterie.service.http.server import address_of, is_loopback, listen, open_engine
from coterie.service.limits import Limits
from coterie.service.settings import FIRST_POLICY, ServerSettings
from coterie.service.storage.sqlite import SQLiteStore

DOCS = Path(__file__).resolve().parents[2] / "docs" / "how-to"


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def process(folder: Path, *options: str, end: signal.Signals = signal.SIGINT) -> Iterator[str]:
    """A process of `coterie serve` that answers; its address. It ends by the signal `end`."""
    with server_process(folder, *options) as (url, running):
        try:
            yield url
        finally:
            running.send_signal(end)
            running.wait(20)


@contextmanager
def server_process(
    folder: Path,
    *options: str,
    prepare: Callable[[], None] | None = None,
    program: Sequence[str] = ("-m", "coterie"),
    stderr: int = subprocess.PIPE,
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A process of `coterie serve` that answers: its address, and itself. It is killed if it still runs."""
    port = free_port()
    words = [sys.executable, *program, "serve", "--port", str(port), *options]
    with subprocess.Popen(
        words,
        cwd=folder,
        stderr=stderr,
        env={**os.environ, "NO_COLOR": "1"},
        preexec_fn=prepare,
    ) as running:
        url = f"http://127.0.0.1:{port}"
        try:
            for _ in range(600):
                try:
                    httpx.get(f"{url}/health/ready", trust_env=False).raise_for_status()
                    break
                except httpx.HTTPError:
                    assert running.poll() is None, running.stderr and running.stderr.read()
                    time.sleep(0.05)
            yield url, running
        finally:
            if running.poll() is None:
                running.kill()
                running.wait(20)


def test_it_serves_without_any_configuration_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    with process(tmp_path) as url, Client(url) as client:
        decision = client.decide("alice", arms={"a": [1.0] * 8, "b": [0.5] * 8})
    assert (tmp_path / "coterie.db").exists()
    with process(tmp_path) as url, Client(url) as client:
        assert client.reward(decision.decision_id, 1.0).status == "counted"
        with pytest.raises(subprocess.CalledProcessError) as refused:
            subprocess.run(
                [sys.executable, "-m", "coterie", "serve", "--port", str(free_port())],
                cwd=tmp_path,
                check=True,
                capture_output=True,
                text=True,
            )
        assert "is in use by another process" in refused.value.stderr
        key = subprocess.run(
            [sys.executable, "-m", "coterie", "keys", "create", "reader"],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        time.sleep(2.5)
        answer = httpx.get(f"{url}/v1/policies", headers={"Authorization": f"Bearer {key}"}, trust_env=False)
        assert answer.status_code == 200
        assert httpx.get(f"{url}/v1/policies", trust_env=False).status_code == 401


def load(url: str, name: str, acknowledged: list[tuple[str, str, str]]) -> None:
    """Decide and reward over HTTP until the service is gone; append what was acknowledged."""
    arms = {"a": [1.0] * 8, "b": [0.5] * 8, "c": [0.0] * 8}
    with Client(url, retries=0) as client:
        for number in range(1_000_000):
            key = f"{name}-{number}"
            try:
                acknowledged.append(
                    ("decision", key, client.decide(f"u{number % 5}", arms=arms, decision_id=key).chosen)
                )
                acknowledged.append(("reward", key, client.reward(key, number % 2).status))
            except CoterieError:
                return


@pytest.mark.slow
def test_what_http_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    acknowledged: list[tuple[str, str, str]] = []
    for cycle in range(5):
        with process(tmp_path, end=signal.SIGKILL) as url:
            names = [f"{cycle}-{thread}" for thread in range(4)]
            threads = [threading.Thread(target=load, args=(url, name, acknowledged)) for name in names]
            for thread in threads:
                thread.start()
            while len(acknowledged) < 40 * (cycle + 1) and any(thread.is_alive() for thread in threads):
                time.sleep(0.01)
        for thread in threads:
            thread.join()
    store = SQLiteStore(tmp_path / "coterie.db")
    store.open()
    found = list(store.read("default"))
    store.close()
    made = {event.decision: event.item for event in found if event.kind == "decision"}
    rewarded = [event.decision for event in found if event.kind == "reward"]
    assert len(acknowledged) > 100
    assert {key: chosen for kind, key, chosen in acknowledged if kind == "decision"}.items() <= made.items()
    assert {key for kind, key, _ in acknowledged if kind == "reward"} <= set(rewarded)
    assert len(rewarded) == len(set(rewarded))


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_service_with_a_last_snapshot_and_nothing_in_the_wal(
    tmp_path: Path, end: signal.Signals
) -> None:
    with server_process(tmp_path, "--dim", "2") as (url, running), Client(url, retries=0) as client:
        client.put_items({"tea": [1.0, 0.0], "coffee": [0.0, 1.0]})
        answered: list[str] = []

        def decide() -> None:
            try:
                while True:
                    answered.append(client.decide("alice").decision_id)
            except CoterieError:
                pass

        deciding = threading.Thread(target=decide)
        deciding.start()
        while len(answered) < 20:
            time.sleep(0.01)
        running.send_signal(end)
        assert running.wait(60) == 0
        deciding.join()
    assert not (tmp_path / "coterie.db-wal").exists()
    store = SQLiteStore(tmp_path / "coterie.db")
    store.open()
    found = list(store.read("default"))
    assert recover_policy(store, "default").snapshot_seq == found[-1].seq
    store.close()
    assert set(answered) <= {event.decision for event in found}


def test_clusters_form_while_the_demo_runs(tmp_path: Path) -> None:
    with process(tmp_path, "--demo") as url, Client(url, "demo", retries=20) as client:
        for _ in range(600):
            try:
                acknowledged = client.describe()
            except UnknownName:
                time.sleep(0.1)
                continue
            if acknowledged.users > 20 and acknowledged.clusters > 1:
                break
            time.sleep(0.1)
        assert acknowledged.clusters > 1
    assert list(tmp_path.iterdir()) == []


def test_a_visit_of_the_demo_is_repeatable(tmp_path: Path) -> None:
    from service.serving import served

    acknowledged = []
    for name in ("a", "b"):
        with served(str(tmp_path / f"{name}.db")) as one:
            visit(one.url, 30)
            state = one.engine.find("demo").state
            acknowledged.append((state.users.ids, state.policy.estimates.tolist()))
    assert acknowledged[0] == acknowledged[1]


def test_other_addresses_need_keys(tmp_path: Path) -> None:
    settings = ServerSettings(host="0.0.0.0", store=str(tmp_path / "a.db"))
    with pytest.raises(
        ArgumentError, match=r"0\.0\.0\.0 can be reached from other machines, and the store has no keys"
    ):
        open_engine(settings)
    open_engine(ServerSettings(host="0.0.0.0", store=str(tmp_path / "a.db"), insecure=True)).close()
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "10.0.0.1", "shop")] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_options_come_before_variables_and_variables_before_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.toml").write_text('port = 1\ndim = 1\nstore = "file.db"\ninsecure = true\n')
    monkeypatch.setenv("COTERIE_PORT", "2")
    monkeypatch.setenv("COTERIE_DIM", "2")
    found = read_server_settings({"port": 3}, tmp_path / "a.toml")
    assert (found.port, found.dim, found.store, found.insecure) == (3, 2, "file.db", True)
    assert found.host == "127.0.0.1"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"policy": "Nope"}, "no policy 'Nope'"),
        ({"insecure": "maybe"}, "insecure must be true or false, got 'maybe'"),
        ({"port": 70_000}, "port must be at most 65535, got 70000"),
        ({"dim": 0}, "dim must be a whole number of at least 1, got 0"),
        ({"log_level": "loud"}, "log_level must be debug, info, warning or error"),
        ({"body_limit": 3}, "body_limit must be a whole number of at least 1024"),
        ({"in_flight_limit": 0}, "in_flight_limit must be a whole number of at least 1"),
        ({"snapshot_every": 0}, "snapshot_every must be a whole number of at least 1"),
    ],
)
def test_a_wrong_setting_is_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(CoterieError, match=sentence):
        read_server_settings(given, None)


def test_a_wrong_name_in_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("prot = 1\n")
    with pytest.raises(UnknownName, match="did you mean 'port'"):
        read_server_settings({}, tmp_path / "a.toml")


def serve_until_it_ends(folder: Path, *options: str) -> str:
    """What `coterie serve` says when it refuses to start."""
    words = [sys.executable, "-m", "coterie", "serve", *options]
    ended = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=60, env={**os.environ, "NO_COLOR": "1"}
    )
    assert ended.returncode == 2
    return ended.stderr


def test_what_keeps_it_from_starting_is_told_in_a_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        acknowledged = serve_until_it_ends(tmp_path, "--port", str(port))
    assert acknowledged == f"coterie: cannot listen on 127.0.0.1:{port}: Address already in use\n"
    assert list(tmp_path.iterdir()) == []
    store = SQLiteStore(tmp_path / "a.db")
    store.open()
    create_key(store, "admin")
    store.close()
    acknowledged = serve_until_it_ends(tmp_path, "--demo", "--store", "a.db", "--port", "0")
    assert "visitors of the demo have no key: --demo needs a store that never had one" in acknowledged


def test_a_free_port_is_found_and_told() -> None:
    with listen(ServerSettings(host="0.0.0.0", port=0)) as found:
        assert address_of(found) == f"http://127.0.0.1:{found.getsockname()[1]}"
    with pytest.raises(ArgumentError, match=r"cannot listen on nowhere\.invalid:1"):
        listen(ServerSettings(host="nowhere.invalid", port=1))


def test_options_of_the_first_policy_are_refused_where_the_store_has_others(tmp_path: Path) -> None:
    store = str(tmp_path / "shop.db")
    open_engine(ServerSettings(store=store, dim=32, policy="LinUCBOne")).close()
    for same in ({}, {"dim": 32}, {"policy": "LinUCBOne", "dim": 32}):
        open_engine(ServerSettings(store=store, **same)).close()
    with pytest.raises(
        ArgumentError,
        match=r"^dim 16 is for the first policy of an empty store, and this one has default "
        r"\(LinUCBOne, dim 32\): leave it out, or choose another store$",
    ):
        open_engine(ServerSettings(store=store, dim=16))
    with pytest.raises(ArgumentError, match=r"^policy CLUB is for the first policy"):
        open_engine(ServerSettings(store=store, policy="CLUB", dim=32))


def test_every_setting_is_on_the_page_of_operations() -> None:
    page = (DOCS / "service-operations.md").read_text(encoding="utf-8")
    for field in (*fields(ServerSettings), *fields(Limits)):
        if field.name == "limits":
            continue
        option, variable = f"--{field.name.replace('_', '-')}", f"COTERIE_{field.name.upper()}"
        row = re.search(rf"^\| `{option}` \| `{variable}` \| (\S+) \|", page, re.MULTILINE)
        assert row is not None, field.name
        assert row[1].lower() == str(FIRST_POLICY.get(field.name, field.default)).lower()


def test_every_test_file_named_on_the_page_of_guarantees_exists() -> None:
    page = (DOCS / "service-guarantees.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+\.py)`", page))
    assert len(named) > 5
    assert all((Path(__file__).parent / name).exists() for name in named)
