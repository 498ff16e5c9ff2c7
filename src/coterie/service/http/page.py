"""The page at `/`, and the stream of frames that it draws."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from coterie.service.http.context import context_of, policy_of
from coterie.service.http.frames import PolicyFrames
from coterie.service.http.problems import Refusal

FOLDER = Path(__file__).parent / "static"
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
MOST_VIEWERS = 100
"""Pages that may be open at the same time."""
encode = msgspec.json.Encoder().encode


async def stream(request: Request) -> Response:
    """Frames as server-sent events, one a second, until the reader goes; first the past of five minutes."""
    live, context = policy_of(request), context_of(request)
    if sum(one.viewers for one in context.frames.values()) >= MOST_VIEWERS:
        raise Refusal(503, f"{MOST_VIEWERS} pages are open, and no more may be; try again")
    frames = context.frames.get(live.name)
    if frames is None or frames.ended:
        frames = context.frames[live.name] = PolicyFrames(live, context)
    return StreamingResponse(_events(frames), media_type="text/event-stream")


async def _events(frames: PolicyFrames) -> AsyncIterator[bytes]:
    frames.viewers += 1
    try:
        if past := frames.past():
            yield b"event: past\ndata: " + encode(past) + b"\n\n"
        number = frames.number
        await frames.newer(number)
        while not frames.ended:
            number = frames.number
            if frames.trouble is not None:
                yield b"event: trouble\ndata: " + encode(frames.trouble) + b"\n\n"
            else:
                yield b"data: " + encode(frames.latest) + b"\n\n"
            await frames.newer(number)
    finally:
        frames.viewers -= 1


@cache
def _file(name: str) -> bytes | None:
    known = {path.name: path for path in FOLDER.iterdir() if path.suffix in KINDS}
    return known[name].read_bytes() if name in known else None


async def page(request: Request) -> Response:
    """The page, or a file that it needs; nothing else of the disk can be asked for."""
    name = request.path_params.get("file", "index.html")
    content = _file(name)
    if content is None:
        raise Refusal(404, "no such file")
    headers = {"content-security-policy": POLICY}
    return Response(content, headers=headers, media_type=KINDS[Path(name).suffix])
