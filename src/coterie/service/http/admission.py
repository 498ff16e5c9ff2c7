"""Which requests come in, by host, origin, headers and content type: checked before any key or body."""

from __future__ import annotations

import re
from collections import Counter
from ipaddress import ip_address

from coterie.service.http.problems import Headers, Refusal

HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")
CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
"""Bytes that no header value may have (RFC 9110, section 5.5); a tab may stand in one."""
SINGLE = (
    b"host",
    b"authorization",
    b"ocp-apim-subscription-key",
    b"content-type",
    b"origin",
    b"sec-fetch-site",
)
"""Headers that are refused if they come twice: two readers may take different ones of them."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
JSON = "application/json"
JSON_LINES = ("application/x-ndjson", "application/jsonl")
"""Types that an import has, besides JSON."""


class Admission:
    """Decides from the first lines of a request whether anything else of it is looked at.

    A web page of another site can let a browser send requests to a service that only this machine can reach.
    Three checks keep them out: the Host must be a name of this service, so that no other name can be pointed
    to its address (DNS rebinding); a request that a browser marks as cross-site is refused; and a body needs
    a content type that browsers send to another site only after they have asked that site for permission,
    which this service never gives.

    Parameters
    ----------
    hosts : frozenset of str
        Names in lower case, besides those of this machine; `*` allows all.
    any_address : bool
        Whether each IP address is allowed: where the service listens on all of them. No name can be pointed
        to a Host that is an address.
    """

    def __init__(self, hosts: frozenset[str] = frozenset(), *, any_address: bool = False) -> None:
        """Remember the names."""
        self._hosts = hosts | LOOPBACK
        self._any_host = "*" in hosts
        self._any_address = any_address

    @classmethod
    def to(cls, bound: str, allowed: str | None = None) -> Admission:
        """Return the rule of a service listening on a host; `allowed` has more names, separated by commas."""
        names = [name.strip().lower() for name in (allowed or "").split(",") if name.strip()]
        address = _address(bound)
        named = f"[{bound}]" if address is not None and ":" in bound else bound
        unspecified = address is not None and ip_address(address).is_unspecified
        return cls(frozenset({*names, named.lower()}), any_address=unspecified)

    def check(self, method: str, path: str, headers: Headers, *, version: str = "1.1") -> None:
        """Raise a Refusal unless a request may come in."""
        counts = Counter(name for name, _ in headers)
        for name in SINGLE:
            if counts[name] > 1:
                raise Refusal(
                    400, f"a request has at most one {name.decode().title()} header, got {counts[name]}"
                )
        for name, value in headers:
            if CONTROL.search(value):
                raise Refusal(
                    400, f"the header {name.decode('latin-1')[:60]!r} has a control character in its value"
                )
        found = {name: value.decode("latin-1") for name, value in headers}
        self._check_host(found.get(b"host"), path, version)
        _check_site(method, path, found)
        if method in WITH_BODY:
            _check_content_type(path, found.get(b"content-type", ""))

    def _check_host(self, host: str | None, path: str, version: str) -> None:
        """Check the name; health checks of load balancers use an address, or HTTP/1.0 without a name."""
        health = path.startswith("/health/")
        if host is None:
            if health and version == "1.0":
                return
            raise Refusal(400, "a request needs a Host header")
        parts = HOST.fullmatch(host)
        if parts is None:
            raise Refusal(400, f"Host must be a name or an address, and perhaps a port, got {host[:60]!r}")
        name = parts[1].lower().rstrip(".")
        known = self._any_host or name in self._hosts or (self._any_address and _address(name) is not None)
        if not (health or known):
            raise Refusal(
                421, f"{name[:60]!r} is not a name of this service; `coterie serve --allowed-host` allows it"
            )


def _address(name: str) -> str | None:
    """Return the IP address that a name is, without brackets, or None."""
    bare = name[1:-1] if name.startswith("[") else name
    try:
        return str(ip_address(bare))
    except ValueError:
        return None


def _check_site(method: str, path: str, headers: dict[bytes, str]) -> None:
    """Refuse what a page of another site lets a browser send; anybody may follow a link to a page."""
    if method in ("GET", "HEAD") and path in ("/", "/docs"):
        return
    site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin")
    if site is not None:
        # Ports of one host are one site: "same-site" may be any other service of this machine.
        foreign = site not in ("same-origin", "none")
    else:
        foreign = (
            origin is not None and origin.partition("://")[2].lower() != headers.get(b"host", "").lower()
        )
    if foreign:
        raise Refusal(403, "a page of another site may not use this service")


def _check_content_type(path: str, value: str) -> None:
    kind = value.partition(";")[0].strip().lower()
    if not value and path.endswith("/activate"):
        return  # a call without a body, as clients of Personalizer send it
    lines = path.endswith("/import")
    if kind != JSON and not (lines and kind in JSON_LINES):
        wanted = f"{JSON_LINES[0]} or {JSON}" if lines else JSON
        raise Refusal(415, f"the body needs Content-Type: {wanted}, got {kind[:60]!r}")
