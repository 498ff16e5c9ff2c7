"""A service of several shards: one from outside, and each of its shards decides as a service of its own."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from coterie import ArgumentError, AsyncClient, Client, Conflict, Recommender, UnknownName
from coterie.cli.keys import opened
from coterie.placement import Placement, shard_of
from coterie.service.http.api_keys import create_key, revoke_key
from coterie.service.settings import ServerSettings
from coterie.service.shards.supervisor import Supervisor
from coterie.service.storage.location import open_store
from coterie.service.storage.shard_mark import read_mark
from service.shard_crashing import SHARDS, Alone, Shards, eventually, play, sharded, torture, user_in

JSON = {"content-type": "application/json"}
ITEMS = {"a": [1.0, 0.0, 0.2], "b": [0.0, 1.0, 0.1], "c": [0.5, 0.5, -0.3], "d": [-0.2, 0.4, 0.8]}


class Recorder(httpx.HTTPTransport):
    """The network, with a list of the ports that requests went to."""

    def __init__(self) -> None:
        super().__init__()
        self.ports: list[int | None] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.ports.append(request.url.port)
        return super().handle_request(request)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shards]:
    with sharded(tmp_path_factory.mktemp("shards") / "shop") as found:
        with Client(found.url) as client:
            client.put_items(ITEMS)
        yield found


@pytest.mark.slow
def test_each_shard_decides_as_a_service_of_its_own(tmp_path: Path) -> None:
    alone = Alone()
    with sharded(tmp_path / "shop") as service, Client(service.url) as client:
        play(client, alone, "u", 150, seed=1)
    with sharded(tmp_path / "shop") as service, Client(service.url) as client:  # the same after a restart
        play(client, alone, "v", 60, seed=2)
        assert client.describe().rounds == 210


def test_a_client_goes_straight_to_the_shard_of_a_user_after_its_first_request(service: Shards) -> None:
    network = Recorder()
    users = [user_in(shard, "straight") for shard in range(SHARDS)]
    with Client(service.url, transport=network) as client:
        client.decide(users[0])
        assert network.ports == [service.port, service.port]  # the decision, then the addresses
        for user in users:
            client.reward(client.decide(user).id, 0.5)
            assert network.ports[-2:] == [service.ports[shard_of(user, SHARDS)]] * 2
            client.explain(user)
            client.history(user)
            assert network.ports[-2:] == [service.ports[shard_of(user, SHARDS)]] * 2
        client.decide(users[1], decision_id="straight-own")
        client.reward("straight-own", 1.0)  # nobody knows from this id where its user lives
        assert network.ports[-1] == service.port


def test_an_async_client_goes_straight_too(service: Shards) -> None:
    async def use() -> None:
        async with AsyncClient(service.url) as client:
            for shard in (0, 1, 2, 1):
                user = user_in(shard, "async")
                assert (await client.reward((await client.decide(user)).id, 1.0)).status == "counted"
            assert len(await client.history(user_in(1, "async"))) == 4

    asyncio.run(use())


def test_any_shard_passes_on_what_is_not_its_own(service: Shards) -> None:
    path = "/v1/policies/default"
    for url in (service.url, *map(service.own, range(SHARDS))):
        for shard in range(SHARDS):
            user = user_in(shard, f"passed-{url[-5:]}")
            with httpx.Client(base_url=url, headers=JSON) as plain:
                made = plain.post(f"{path}/decisions", json={"user": user})
                assert made.status_code == 200, made.text
                assert made.headers["coterie-shards"] == str(SHARDS)
                body = {"rewards": [{"decision_id": made.json()["decision_id"], "reward": 1.0}]}
                assert plain.post(f"{path}/rewards", json=body).json()["results"][0]["status"] == "counted"
                assert plain.post(f"{path}/rewards", json=body).json()["results"][0]["status"] == "duplicate"
                assert plain.get(f"{path}/users/{user}").json()["rewards"] == 1
                kinds = [one["kind"] for one in plain.get(f"{path}/history/{user}").json()["events"]]
                assert kinds == ["decision", "reward"]
                # It is there and nowhere else.
                own = httpx.get(f"{service.own(shard)}{path}/users", params={"limit": 10_000})
                assert own.json()["users"].count(user) == 1


def test_a_request_for_the_wrong_shard_gets_421_and_all_addresses(service: Shards) -> None:
    user = user_in(1)
    for path, body in (("/decisions", {"user": user}), (f"/users/{user}", None)):
        for shard, status in ((1, 200), (0, 421)):  # a user who lives there is answered, whatever was meant
            answer = httpx.request(
                "POST" if body else "GET",
                f"{service.own(shard)}/v1/policies/default{path}",
                json=body,
                headers={"coterie-shard": "0"},
            )
            assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["shards"]["addresses"] == [service.own(shard) for shard in range(SHARDS)]


def test_a_client_whose_addresses_are_wrong_finds_its_way(service: Shards) -> None:
    class Mistaken(Recorder):
        """Tells the client the shards in the wrong order."""

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            answer = super().handle_request(request)
            if request.url.path == "/v1/shards":
                answer.read()
                found = answer.json()
                return httpx.Response(200, json={**found, "addresses": found["addresses"][::-1]})
            return answer

    network = Mistaken()
    with Client(service.url, transport=network) as client:
        users = [user_in(shard, "mistaken") for shard in (0, 0, 2)]
        assert [client.reward(client.decide(user).id, 1.0).status for user in users] == ["counted"] * 3
    assert {service.ports[0], service.ports[2]} & set(network.ports)


def test_rewards_of_several_shards_in_one_request_each_have_their_result(service: Shards) -> None:
    with Client(service.url) as client:
        users = [user_in(shard, "batch") for shard in (0, 1, 2, 1)]
        ids = [
            client.decide(user, decision_id=f"batch-{n}" if n % 2 else None).id
            for n, user in enumerate(users)
        ]
        rewards: list[dict[str, Any]] = [{"decision_id": one, "reward": 0.5} for one in ids]
        rewards.insert(1, {"decision_id": "nobody", "reward": 1.0})
        rewards.append({"user": users[0], "item": "a", "reward": 0.25})
        found = client.reward_many(rewards)
        assert [one.status for one in found] == ["counted", "refused", *["counted"] * 4]
        assert found[1].code == 404
        assert [one.id for one in found[:5]] == [ids[0], "nobody", *ids[1:]]
        assert [one.status for one in client.reward_many(rewards[:5])][::2] == ["duplicate"] * 3
        with pytest.raises(UnknownName, match="nobody"):
            client.reward("nobody", 1.0)
        with pytest.raises(Conflict):
            client.reward("batch-1", 0.75)


def test_bad_requests_are_refused_as_by_a_single_service(service: Shards) -> None:
    url = f"{service.url}/v1/policies/default"
    for path, body, status in (
        ("decisions", b"{", 400),
        ("decisions", b'{"user": 3}', 422),
        ("decisions", b"[]", 422),
        ("rewards", b'{"rewards": []}', 422),
        ("rewards", b'{"rewards": [3]}', 422),
        ("rewards", b'{"rewards": [{"reward": 1}]}', 422),
        ("rewards", b'{"rewards": [{"reward": 1, "user": "x", "what": 1}]}', 422),
    ):
        for _ in range(4):  # whichever shard accepts the connection
            with httpx.Client() as plain:
                answer = plain.post(f"{url}/{path}", content=body, headers=JSON)
            assert answer.status_code == status, (path, body, answer.text)
            assert answer.json()["detail"]
    assert httpx.post(f"{service.url}/v1/policies/none/decisions", json={"user": "x"}).status_code == 404
    assert httpx.get(f"{url}/users/nobody").status_code == 404


def test_what_all_shards_have_is_shown_as_one(service: Shards) -> None:
    with Client(service.url) as client:
        for number in range(30):
            client.reward(client.decide(f"shown-{number}", ["a", "b"]).id, 1.0)
        whole = client.describe()
        parts = [httpx.get(f"{service.own(k)}/v1/policies/default").json() for k in range(SHARDS)]
        assert whole.users == sum(one["users"] for one in parts)
        assert whole.rounds == sum(one["rounds"] for one in parts)
        assert whole.items == len(ITEMS) == parts[2]["items"]
        assert whole.events["items"] == 1
        clusters = client.clusters()
        assert sum(one.size for one in clusters) == whole.users
        assert {one.shard for one in clusters} == set(range(SHARDS))
        assert [one.size for one in clusters] == sorted((one.size for one in clusters), reverse=True)
    listed = httpx.get(f"{service.url}/v1/policies").json()
    assert [one["users"] for one in listed["policies"]] == [whole.users]
    assert listed["failed"] == []


def test_users_are_listed_shard_after_shard_some_at_a_time(service: Shards) -> None:
    with Client(service.url) as client:
        for number in range(10):
            client.decide(f"listed-{number}")
    url, found, start = f"{service.url}/v1/policies/default/users", [], 0
    while start is not None:
        page = httpx.get(url, params={"start": start, "limit": 7}).json()
        assert len(page["users"]) <= 7
        found += page["users"]
        start = page["next"]
    assert len(found) == len(set(found)) == page["total"]
    own = [
        httpx.get(f"{service.own(k)}/v1/policies/default/users", params={"limit": 10_000}).json()["users"]
        for k in range(SHARDS)
    ]
    assert found == [user for users in own for user in users]
    assert all(shard_of(user, SHARDS) == k for k, users in enumerate(own) for user in users)


def test_metrics_have_a_label_for_the_shard(service: Shards) -> None:
    text = httpx.get(f"{service.url}/metrics").text
    for shard in range(SHARDS):
        assert f'coterie_shard_up{{shard="{shard}"}} 1' in text
        assert f'coterie_users{{shard="{shard}",policy="default"}}' in text
        assert f'coterie_decision_seconds_bucket{{shard="{shard}",le="+Inf"}}' in text
    assert text.count("# TYPE coterie_users gauge") == 1
    assert "shard" not in httpx.get(f"{service.own(0)}/metrics").text.replace("coterie_shard", "")


def test_a_user_is_forgotten_wherever_the_request_arrives(service: Shards) -> None:
    user = user_in(2, "gone")
    with Client(service.url) as client:
        client.reward(client.decide(user).id, 1.0)
        httpx.delete(f"{service.own(0)}/v1/policies/default/users/{user}").raise_for_status()
        with pytest.raises(UnknownName):
            client.history(user)


def test_policies_settings_and_items_change_in_all_shards(service: Shards) -> None:
    with Client(service.url, "other") as client:
        client.create_policy(2, "CLUB", params={"alpha": 1.0, "beta": 0.1})
        client.put_items({"x": [1.0, 0.0], "y": [0.0, 1.0]}, tags={"x": ["new"]})
        client.remove_items(["y"])
        client.configure(uniform_share=0.25)
        for shard in range(SHARDS):
            own = httpx.get(f"{service.own(shard)}/v1/policies/other").json()
            assert own["settings"]["policy"] == "CLUB"
            assert own["settings"]["uniform_share"] == 0.25
            assert own["items"] == 1
            assert client.decide(user_in(shard), only="new").chosen == "x"
        with Client(service.url, "third") as third:
            with pytest.raises(ArgumentError, match="users at the start"):
                third.create_policy(2, users=["ada"])
        httpx.delete(f"{service.own(1)}/v1/policies/other").raise_for_status()
        for shard in range(SHARDS):
            with pytest.raises(UnknownName):
                client.decide(user_in(shard))


def test_an_export_has_all_shards_and_can_be_imported_into_all(service: Shards) -> None:
    with Client(service.url) as client, Client(service.url, "copy") as copy:
        for shard in range(SHARDS):
            client.reward(client.decide(user_in(shard, "exported")).id, 0.5)
        url = f"{service.url}/v1/policies/default/export"
        lines = httpx.get(url, timeout=30).text.splitlines()
        rows = [json.loads(line) for line in lines]
        whole = client.describe()
        assert len(rows) == len({row["decision_id"] for row in rows})
        assert {shard_of(row["user"], SHARDS) for row in rows} == set(range(SHARDS))
        items = httpx.get(url, params={"table": "items"}).text.splitlines()
        assert len(items) == len(ITEMS) <= whole.items
        assert httpx.get(url, params={"format": "parquet"}).status_code == 501
        rewarded = [line for line, row in zip(lines, rows, strict=True) if row["reward"] is not None]
        copy.create_policy(3)
        path = f"{service.url}/v1/policies/copy/import"
        found = httpx.post(path, content="\n".join(rewarded), headers=JSON, timeout=60).json()
        assert found == {"counted": len(rewarded), "duplicates": 0}
        assert copy.describe().rounds == len(rewarded)
        again = httpx.post(path, content="\n".join(rewarded[:5]), headers=JSON, timeout=60).json()
        assert again == {"counted": 0, "duplicates": 5}
        wrong = httpx.post(path, content="\n".join([*rewarded[:3], "{}"]), headers=JSON, timeout=60)
        assert wrong.status_code == 422
        assert "line 4" in wrong.json()["detail"]
        httpx.delete(f"{service.url}/v1/policies/copy").raise_for_status()


def test_what_is_not_there_for_all_shards_says_so(service: Shards) -> None:
    policies = [{"policy": "default"}, {"policy": "other"}]
    made = httpx.post(f"{service.url}/v1/experiments", json={"name": "e", "policies": policies})
    assert made.status_code == 501
    assert "/v1/shards" in made.json()["detail"]
    ranked = {"contextFeatures": [], "actions": [{"id": "a", "features": [{"f": 1}]}]}
    for url in (service.url, service.own(1)):  # written nowhere, rather than in the wrong shard
        path = "/v1/policies/default/personalizer/rank"
        assert httpx.post(url + path, json=ranked).status_code == 501
    outcomes = "/v1/policies/default/outcomes"
    assert httpx.get(service.url + outcomes).status_code == 501
    assert httpx.get(service.own(1) + outcomes).status_code == 200
    members = f"{service.url}/v1/policies/default/clusters/0"
    assert httpx.get(members).status_code == 422
    with Client(service.url) as client:
        client.decide(user_in(1, "member"))
        first = next(one for one in client.clusters() if one.shard == 1)
    found = httpx.get(f"{service.url}/v1/policies/default/clusters/{first.id}", params={"shard": 1}).json()
    assert first.first_user in found["users"]


def test_the_page_of_the_service_shows_all_shards_and_links_to_the_page_of_each(service: Shards) -> None:
    page = httpx.get(service.url)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.text.count("<td>serving</td>") == SHARDS
    for shard in range(SHARDS):
        assert f'href="{service.own(shard)}/"' in page.text
    assert "/static/" in httpx.get(service.own(1)).text  # the live page of one shard


def test_only_shards_may_read_the_log_of_changes(service: Shards) -> None:
    for path in ("changes", "own-status"):
        assert httpx.get(f"{service.own(0)}/v1/shards/{path}").status_code == 403
    assert httpx.post(f"{service.own(1)}/v1/shards/catch-up", json={}).status_code == 403


@pytest.mark.slow
def test_a_killed_shard_is_back_and_nothing_is_lost_or_counted_twice(tmp_path: Path) -> None:
    """Load goes on in all shards; callers with retries see no error, and the state is that of no kill."""
    assert torture(tmp_path / "shop", kills=5).acknowledged > 100


@pytest.mark.slow
def test_a_change_reaches_a_shard_that_was_away_when_it_is_back(tmp_path: Path) -> None:
    with sharded(tmp_path / "shop") as service:
        url = f"{service.url}/v1/policies/default/items"
        service.send(2, signal.SIGSTOP)
        body = {"items": [{"id": one, "x": x} for one, x in ITEMS.items()]}
        # Shard 1 passes a change on to shard 0, and must pass on what that answers of the others.
        changed = httpx.put(f"{service.own(1)}/v1/policies/default/items", json=body, timeout=30)
        assert changed.status_code == 200
        assert changed.headers["coterie-not-yet"] == "2"
        looked = httpx.get(f"{service.url}/v1/policies/default", timeout=30)
        assert looked.headers["coterie-away"] == "2"
        status = httpx.get(f"{service.url}/v1/shards/status", timeout=30).json()["shards"]
        assert [one["up"] for one in status] == [True, True, False]
        assert 'coterie_shard_up{shard="2"} 0' in httpx.get(f"{service.url}/metrics", timeout=30).text
        service.send(2, signal.SIGCONT)
        eventually(
            lambda: httpx.get(f"{service.own(2)}/v1/policies/default", timeout=30).json()["items"] == 4
        )
        again = httpx.put(url, json=body, timeout=30)
        assert "coterie-not-yet" not in again.headers


@pytest.mark.slow
def test_a_shard_that_hangs_is_killed_and_started_again(tmp_path: Path) -> None:
    with sharded(tmp_path / "shop", shards=2) as service:
        hanging = service.supervisor.shards[1]
        before = service.send(1, signal.SIGSTOP)
        hanging.kill_if_hanging(patience=0.5)
        service.wait_for_restart(1, before)
        with Client(service.url) as client:
            for shard in range(2):
                arms = {"p": [1.0, 0.0, 0.0], "q": [0.0, 1.0, 0.0]}
                assert client.decide(user_in(shard, shards=2), arms=arms).id


@pytest.mark.slow
def test_keys_hold_in_all_shards(tmp_path: Path) -> None:
    where = tmp_path / "shop"
    with sharded(where) as service, opened(str(where)) as store:
        key = create_key(store, "writer")
        user = user_in(2)
        arms = {"p": [1.0, 0.0, 0.0]}
        eventually(lambda: _status(service.own(2), user, None) == 401)
        for url in (service.url, *map(service.own, range(SHARDS))):
            assert _status(url, user, None) == 401
            assert _status(url, user, key) == 200
        with Client(service.url, key=key) as client:
            assert client.reward(client.decide(user, arms=arms).id, 1.0).status == "counted"
        revoke_key(store, key.split("_")[1])
        eventually(lambda: _status(service.own(2), user, key) == 401)
        page = httpx.get(service.url)
        assert "serving" in page.text
        assert "users and" not in page.text  # without a key nobody sees how many there are


def _status(url: str, user: str, key: str | None) -> int:
    headers = JSON if key is None else {**JSON, "authorization": f"Bearer {key}"}
    body = {"user": user, "arms": [{"id": "p", "x": [1.0, 0.0, 0.0]}]}
    return httpx.post(f"{url}/v1/policies/default/decisions", json=body, headers=headers).status_code


@pytest.mark.slow
def test_a_store_is_opened_only_as_the_shard_that_it_is(tmp_path: Path) -> None:
    with sharded(tmp_path / "shop", shards=2):
        pass
    store = open_store(str(tmp_path / "shop" / "shard-1.db"))
    store.open()
    assert read_mark(store) == Placement(1, 2)
    store.close()
    with pytest.raises(ArgumentError, match="this store is shard 1 of 2: serve the folder"):
        Recommender(store=tmp_path / "shop" / "shard-1.db")
    for shards in (1, 4):
        with pytest.raises(ArgumentError, match="has the stores of 2 shards: say --shards 2"):
            with sharded(tmp_path / "shop", shards=shards):
                pass
    (tmp_path / "shop" / "shard-0.db").rename(tmp_path / "other.db")
    (tmp_path / "shop" / "shard-1.db").rename(tmp_path / "shop" / "shard-0.db")
    (tmp_path / "other.db").rename(tmp_path / "shop" / "shard-1.db")
    with pytest.raises(ArgumentError, match=r"this store is shard . of 2, and cannot be opened as shard"):
        with sharded(tmp_path / "shop", shards=2):
            pass


def test_a_file_or_a_plain_store_is_refused(tmp_path: Path) -> None:
    Recommender(dim=3, store=tmp_path / "plain.db").close()
    with pytest.raises(ArgumentError, match=r"needs a folder .* is a file"):
        with sharded(tmp_path / "plain.db"):
            pass
    with pytest.raises(ArgumentError, match="needs a folder"):
        with sharded("postgresql://localhost/shop"):
            pass
    (tmp_path / "shop").mkdir()
    with pytest.raises(ArgumentError, match=r"store must be a file, .* is a folder"):
        open_store(str(tmp_path / "shop"))
    (tmp_path / "plain.db").rename(tmp_path / "shop" / "shard-0.db")
    with pytest.raises(ArgumentError, match="has all users of a service without shards"):
        with sharded(tmp_path / "shop", shards=1):
            pass


@pytest.mark.slow
def test_shards_end_when_their_supervisor_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "coterie", "serve", "--shards", "2", "--store", "shop", "--port", "0"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = next(line for line in process.stderr if line.startswith("serving"))
    assert "serving 2 shards from shop on http://127.0.0.1:" in said
    url = said.split(" on ")[1].split(";")[0]
    addresses = httpx.get(f"{url}/v1/shards").json()["addresses"]
    process.kill()
    process.wait()
    process.stderr.close()

    def gone() -> bool:
        try:
            httpx.get(f"{addresses[1]}/health/live", timeout=1)
        except httpx.ConnectError:
            return True
        except httpx.TransportError:
            return False
        return False

    eventually(gone)
    Supervisor(ServerSettings(store=str(tmp_path / "shop"), shards=2, port=0)).close()
