"""What a client knows of the shards of a service: where each is, so that requests can go straight there."""

from __future__ import annotations

import time
from collections.abc import Sequence

import httpx
import msgspec

from coterie.service.messages import ShardsAnswer

PATH = "/v1/shards"
COUNT = "coterie-shards"
"""The header by which every answer of a sharded service says how many shards there are."""
MEANT_FOR = "coterie-shard"
"""The header of a request that is meant for one shard."""
FORGOTTEN = 30.0
"""Seconds without another attempt to go straight, after one that failed."""


class ShardAddresses:
    """Addresses of shards, learnt from the service and forgotten when one of them does not answer.

    Whatever they say is only a shorter way: the service passes on what is sent to its own address.

    Parameters
    ----------
    url : str
        The address of the service. Behind `https` there is a proxy that alone may be spoken to.
    """

    def __init__(self, url: str) -> None:
        """Know nothing."""
        self._plain = httpx.URL(url).scheme == "http"
        self._addresses: list[str] = []
        self._not_before = 0.0

    def wants(self, response: httpx.Response) -> bool:
        """Tell whether the addresses should be asked for, after an answer."""
        count = response.headers.get(COUNT)
        if count is None or not self._plain or count == str(len(self._addresses)):
            return False
        return time.monotonic() >= self._not_before

    def learn(self, response: httpx.Response) -> None:
        """Take the answer with the addresses; any other one counts as a failure."""
        try:
            found = msgspec.json.decode(response.content, type=ShardsAnswer).addresses
        except msgspec.MsgspecError:
            found = []
        if not response.is_success or not all(one.startswith("http://") for one in found):
            found = []
        self._addresses = found
        if not found:
            self.forget()

    def forget(self) -> None:
        """Send everything to the address of the service for a while."""
        self._addresses = []
        self._not_before = time.monotonic() + FORGOTTEN

    def straight(self, hashes: Sequence[int]) -> tuple[str, dict[str, str]] | None:
        """Return address and headers for a request about users of these hashes; None if it needs no shard.

        None, too, if they live in several shards: the service takes such a request apart.
        """
        count = len(self._addresses)
        shards = {one % count for one in hashes} if count else set()
        if len(shards) != 1:
            return None
        shard = shards.pop()
        return self._addresses[shard], {MEANT_FOR: str(shard)}

    @staticmethod
    def misdirected(response: httpx.Response) -> bool:
        """Tell whether a shard has refused a request because its user lives elsewhere."""
        return response.status_code == 421 and COUNT in response.headers
