"""The page at the address of the whole service: how each shard is, and a link to its own page."""

from __future__ import annotations

from html import escape

from coterie.service.messages import ShardsAnswer, ShardStatus

CONTENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
REFRESH = 5
"""Seconds between two looks."""
STYLE = (
    "body{font:16px system-ui,sans-serif;margin:2rem auto;max-width:50rem;padding:0 1rem;color:#1b1f24;"
    "background:#fff}table{border-collapse:collapse;width:100%}th,td{text-align:right;padding:.4rem .7rem;"
    "border-bottom:1px solid #d8dee4}th:first-child,td:first-child,td:last-child,th:last-child"
    "{text-align:left}.away{color:#b3261e;font-weight:600}@media(prefers-color-scheme:dark){body{color:"
    "#e6edf3;background:#0d1117}th,td{border-color:#30363d}a{color:#79c0ff}.away{color:#ff8a80}}"
)


def overview(shards: list[ShardStatus], directory: ShardsAnswer, *, counts: bool) -> str:
    """Return the page; `counts` says whether the reader may see how many users there are."""
    rows = "".join(_row(one, directory.addresses[one.shard], counts) for one in shards)
    away = [str(one.shard) for one in shards if not one.up]
    users, rounds = sum(one.users for one in shards), sum(one.rounds for one in shards)
    total = f"<p>{users:,} users and {rounds:,} rewards in {len(shards)} shards.</p>" if counts else ""
    missing = (
        f'<p class="away">Away now: shard {", ".join(away)}. Users of other shards are served; requests of '
        "its users wait, or are answered with 503.</p>"
        if away
        else ""
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Coterie: shards</title>'
        f'<meta name="viewport" content="width=device-width"><meta http-equiv="refresh" content="{REFRESH}">'
        f"<style>{STYLE}</style></head><body><h1>Shards</h1>{total}{missing}<table><thead><tr><th>shard</th>"
        f"<th>users</th><th>rewards</th><th>state</th></tr></thead><tbody>{rows}</tbody></table></body></html>"
    )


def _row(one: ShardStatus, address: str, counts: bool) -> str:
    state = "serving" if one.up and one.in_step else f"serving; {one.reason}" if one.up else "away"
    numbers = (f"{one.users:,}", f"{one.rounds:,}") if counts and one.up else ("–", "–")
    mark = "" if one.up else ' class="away"'
    return (
        f'<tr><td><a href="{escape(address)}/">{one.shard}</a></td><td>{numbers[0]}</td><td>{numbers[1]}</td>'
        f"<td{mark}>{escape(state)}</td></tr>"
    )
