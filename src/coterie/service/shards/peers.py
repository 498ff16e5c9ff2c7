"""Requests from one shard to another: connections that are kept, and patience while a shard restarts."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from coterie.errors import StoreError
from coterie.service.http.problems import Headers

PATIENCE = 8.0
"""Seconds that a request waits for a shard that does not answer; clients wait ten by default."""
KEPT_IDLE = 3.0
"""Seconds that an idle connection is kept; the other end closes it after five."""
MOST_KEPT = 64
"""Idle connections to a shard."""
LONGEST_PAUSE = 0.5
NOT_YET = "coterie-not-yet"
"""The header of an answer that names shards that have not made a change yet; they will."""
MEANT_FOR = b"coterie-shard"
"""The header of a request that is meant for one shard, which must not pass it on."""
PEER_TOKEN = b"coterie-peer"
"""The header that proves that a request comes from a shard of the same service."""


class ShardAway(StoreError):
    """Raised when a shard does not answer; the same request may be sent again."""

    def __init__(self, shard: int) -> None:
        """Name the shard."""
        super().__init__(f"shard {shard} does not answer now; send the request again")
        self.shard = shard


class PeerAnswer(NamedTuple):
    """What a shard has answered; `not_yet` names the shards that have not made a change yet."""

    status: int
    content_type: str
    content: bytes
    not_yet: str = ""

    @property
    def succeeded(self) -> bool:
        """Whether the status says so."""
        return self.status < 300


class PeerConnection(NamedTuple):
    """A connection to a shard, and when it was last used."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    used_at: float


class Peers:
    """The shards of a service, as they reach each other.

    Parameters
    ----------
    addresses : sequence of (str, int)
        Host and port of each shard.
    token : str
        Known to the shards alone.

    Notes
    -----
    A request is sent again when the connection breaks. That is safe because each one has an id, or can be
    repeated without effect; the router adds an id to decisions and rewards that come without one.
    """

    def __init__(self, addresses: Sequence[tuple[str, int]], token: str) -> None:
        """Connect when the first request is sent."""
        self.addresses, self.token = list(addresses), token
        self._idle: list[deque[PeerConnection]] = [deque() for _ in addresses]

    async def send(
        self,
        shard: int,
        method: str,
        target: bytes,
        *,
        body: bytes = b"",
        headers: Headers | None = None,
        patience: float = PATIENCE,
        once: bool = False,
    ) -> PeerAnswer:
        """Send a request until it is answered; ShardAway if it is not in time.

        With `once`, it is not sent again after its connection broke: for what would count twice.
        """
        data = self._request(shard, method, target, body, headers or [])
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + patience, 0.02
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    return await self._attempt(shard, data)
            except TimeoutError:
                raise ShardAway(shard) from None
            except (OSError, EOFError, ValueError):
                if once or loop.time() + pause > deadline:
                    raise ShardAway(shard) from None
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    async def stream(self, shard: int, target: bytes, headers: Headers) -> AsyncIterator[bytes]:
        """Yield the body of a long answer piece by piece; ShardAway if it breaks off."""
        try:
            reader, writer = await asyncio.open_connection(*self.addresses[shard])
            try:
                writer.write(self._request(shard, "GET", target, b"", headers))
                status, fields = await _read_head(reader)
                if status != 200:
                    raise ShardAway(shard)
                async for piece in _pieces(reader, fields):
                    yield piece
            finally:
                writer.close()
        except (OSError, EOFError, ValueError):
            raise ShardAway(shard) from None

    def _request(self, shard: int, method: str, target: bytes, body: bytes, headers: Headers) -> bytes:
        """Return a request that is meant for a shard."""
        host, port = self.addresses[shard]
        named = f"[{host}]" if ":" in host else host
        lines = [
            method.encode() + b" " + target + b" HTTP/1.1",
            f"host: {named}:{port}".encode(),
            b"%b: %d" % (MEANT_FOR, shard),
            b"%b: %b" % (PEER_TOKEN, self.token.encode()),
            b"content-length: %d" % len(body),
            *(name + b": " + value for name, value in headers),
        ]
        return b"\r\n".join([*lines, b"", body])

    async def _attempt(self, shard: int, data: bytes) -> PeerAnswer:
        connection = await self._connect(shard)
        try:
            connection.writer.write(data)
            await connection.writer.drain()
            answer, kept = await _read_answer(connection.reader)
        except BaseException:
            connection.writer.close()
            raise
        idle = self._idle[shard]
        if kept and len(idle) < MOST_KEPT:
            idle.append(connection._replace(used_at=asyncio.get_running_loop().time()))
        else:
            connection.writer.close()
        return answer

    async def _connect(self, shard: int) -> PeerConnection:
        """Return the connection that was used last, or a new one."""
        idle, now = self._idle[shard], asyncio.get_running_loop().time()
        while idle:
            found = idle.pop()
            if now - found.used_at < KEPT_IDLE and not found.reader.at_eof():
                return found
            found.writer.close()
        reader, writer = await asyncio.open_connection(*self.addresses[shard])
        return PeerConnection(reader, writer, now)


async def _read_answer(reader: asyncio.StreamReader) -> tuple[PeerAnswer, bool]:
    """Read an answer of a service, and whether the connection may be used again."""
    status, fields = await _read_head(reader)
    content = b"".join([piece async for piece in _pieces(reader, fields)])
    kind = fields.get(b"content-type", b"application/json").decode("latin-1")
    not_yet = fields.get(NOT_YET.encode(), b"").decode("latin-1")
    return PeerAnswer(status, kind, content, not_yet), fields.get(b"connection", b"").lower() != b"close"


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, dict[bytes, bytes]]:
    """Read the status and the headers of an answer; names are in lower case."""
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head[:-4].split(b"\r\n")
    parts = (line.partition(b":") for line in lines)
    return int(first.split(b" ", 2)[1]), {name.lower(): value.strip() for name, _, value in parts}


async def _pieces(reader: asyncio.StreamReader, fields: dict[bytes, bytes]) -> AsyncIterator[bytes]:
    """Yield the body of an answer, whole or in the chunks in which it comes."""
    if fields.get(b"transfer-encoding", b"").lower() != b"chunked":
        yield await reader.readexactly(int(fields.get(b"content-length", b"0")))
        return
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readuntil(b"\r\n")
