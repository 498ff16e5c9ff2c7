"""API keys: a role each, perhaps for one policy; kept as digests, compared in constant time."""

from __future__ import annotations

import hmac
import time
from hashlib import sha256
from secrets import token_hex, token_urlsafe
from typing import Literal, NamedTuple, get_args

from coterie.errors import ArgumentError, UnknownName
from coterie.service.http.problems import Headers, Refusal, header
from coterie.service.storage.event_store import EventStore
from coterie.validation import shown

Role = Literal["reader", "writer", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Each may do what those before it may."""
FRESH = 2.0
"""Seconds after which keys are read from the store again."""


class Key(NamedTuple):
    """A key as it is stored: a digest of its secret. `policy` None is for all policies."""

    id: str
    digest: str
    role: Role
    policy: str | None
    label: str
    created: float

    def allows(self, role: Role, policy: str | None) -> bool:
        """Tell whether the key has at least this role for this policy."""
        scope = self.policy is None or self.policy == policy
        return scope and ROLES.index(self.role) >= ROLES.index(role)


def create_key(store: EventStore, role: str, *, policy: str | None = None, label: str = "") -> str:
    """Make a key and return its text, which is stored nowhere."""
    if role not in ROLES:
        raise ArgumentError(f"role must be one of {', '.join(ROLES)}, got {shown(role)}")
    key_id, secret = token_hex(4), token_urlsafe(32)
    row = (key_id, _digest(secret), role, policy, label[:200], time.time())
    with store.transaction():
        store.execute("INSERT INTO key VALUES (?, ?, ?, ?, ?, ?)", [row])
    return f"ck_{key_id}_{secret}"


def list_keys(store: EventStore) -> list[Key]:
    """Return all keys, the oldest first."""
    rows = store.query("SELECT id, digest, role, policy, label, created FROM key ORDER BY created")
    return [Key(*row) for row in rows]


def revoke_key(store: EventStore, key_id: str) -> None:
    """Revoke a key."""
    if all(key.id != key_id for key in list_keys(store)):
        raise UnknownName(f"no key {shown(key_id)}; `coterie keys list` shows all")
    with store.transaction():
        store.execute("DELETE FROM key WHERE id = ?", [(key_id,)])


class APIKeys:
    """The keys of a store, read again every two seconds, so that a revoked key soon opens nothing."""

    def __init__(self, store: EventStore) -> None:
        """Read the keys."""
        self._store = store
        self._read = 0.0
        self._keys: dict[str, Key] = {}
        self.refresh()

    def refresh(self) -> None:
        """Read the keys if they were not read lately."""
        now = time.monotonic()
        if now - self._read > FRESH:
            self._keys = {key.id: key for key in list_keys(self._store)}
            self._read = now

    def __len__(self) -> int:
        """Return how many keys there are."""
        return len(self._keys)

    def find(self, text: str) -> Key | None:
        """Return the key of this text, if there is one."""
        self.refresh()
        mark, _, rest = text.partition("_")
        key_id, _, secret = rest.partition("_")
        key = self._keys.get(key_id)
        expected = key.digest if key is not None else _digest("")
        same = hmac.compare_digest(_digest(secret), expected)
        return key if same and mark == "ck" else None

    def authorise(
        self, headers: Headers, role: Role, policy: str | None, *, any_scope: bool = False
    ) -> Key | None:
        """Check that the key of a request has a role for a policy; without any keys, everybody may.

        `any_scope` lets keys of a single policy pass, too.
        """
        self.refresh()
        if not self._keys:
            return None
        scheme, _, token = header(headers, b"authorization").decode("latin-1").partition(" ")
        key = self.find(token.strip()) if scheme.lower() == "bearer" else None
        if key is None:
            raise Refusal(401, "a key is needed: Authorization: Bearer ck_…; `coterie keys create` makes one")
        if not key.allows(role, key.policy if any_scope else policy):
            where = "" if policy is None else f" of policy {policy!r}"
            raise Refusal(403, f"this needs the role {role}{where}, and the key does not have it")
        return key


def _digest(secret: str) -> str:
    """Hash a secret, which has 256 random bits: a slow hash, as for passwords, would protect nothing more."""
    return sha256(secret.encode("utf-8", "replace")).hexdigest()
