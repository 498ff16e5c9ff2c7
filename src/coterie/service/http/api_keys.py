"""API keys: a role each, perhaps for one policy; kept as digests, compared in constant time."""

from __future__ import annotations

import hmac
import logging
import time
import weakref
from hashlib import sha256
from secrets import token_hex, token_urlsafe
from threading import Event, Thread
from typing import Literal, NamedTuple, get_args

from coterie.errors import ArgumentError, StoreError, UnknownName
from coterie.service.http.problems import Headers, Refusal, header
from coterie.service.storage.event_store import EventStore
from coterie.validation import shown

Role = Literal["reader", "writer", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Each may do what those before it may."""
FRESH = 2.0
"""Seconds after which keys are read from the store again."""
MOST_AGE = 10.0
"""Seconds after which keys that could not be read again open nothing."""
logger = logging.getLogger(__name__)


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
        _remember_keys(store)
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
        _remember_keys(store)


def _remember_keys(store: EventStore) -> None:
    """Note in a transaction that the store has had a key, so that revoking the last one opens nothing."""
    store.execute("INSERT INTO meta VALUES ('keys', 'required') ON CONFLICT DO NOTHING")


def keys_required(store: EventStore) -> bool:
    """Tell whether the store has, or ever had, a key."""
    return bool(list_keys(store)) or bool(store.query("SELECT 1 FROM meta WHERE name = 'keys'"))


class APIKeys:
    """The keys of a store, read again every two seconds by a thread of their own.

    No request queries the store for keys: a database that hangs would stop the event loop. Keys that could
    not be read for `MOST_AGE` seconds open nothing, since any of them may have been revoked meanwhile.

    Parameters
    ----------
    store : EventStore
        Open.
    insecure : bool
        Whether requests need no key while the store has none. Otherwise they need none only if the store
        never had one.
    """

    def __init__(self, store: EventStore, *, insecure: bool = False) -> None:
        """Read the keys and start the thread, which ends with `close` or when this object is collected."""
        self._store, self._insecure = store, insecure
        self._keys: dict[str, Key] = {}
        self._required = False
        self._read_at = 0.0
        self.refresh()
        self._stop = Event()
        weakref.finalize(self, self._stop.set)
        Thread(
            target=_keep_fresh, args=(weakref.ref(self), self._stop), name="coterie-keys", daemon=True
        ).start()

    def refresh(self) -> None:
        """Read the keys; StoreError if the store cannot be read."""
        began = time.monotonic()
        self._keys = {key.id: key for key in list_keys(self._store)}
        # The mark is read after the keys: who revokes the last key has set it before.
        self._required = self._required or keys_required(self._store)
        self._read_at = began

    @property
    def age(self) -> float:
        """Seconds since the keys were read."""
        return time.monotonic() - self._read_at

    def close(self) -> None:
        """End the thread."""
        self._stop.set()

    def find(self, text: str) -> Key | None:
        """Return the key of this text, if there is one."""
        mark, _, rest = text.partition("_")
        key_id, _, secret = rest.partition("_")
        key = self._keys.get(key_id)
        expected = key.digest if key is not None else _digest("")
        same = hmac.compare_digest(_digest(secret), expected)
        return key if same and mark == "ck" else None

    def authorise(
        self, headers: Headers, role: Role, policy: str | None, *, any_scope: bool = False
    ) -> Key | None:
        """Check that the key of a request has a role for a policy; None if requests need no key.

        `any_scope` lets keys of a single policy pass, too.
        """
        if self.age > MOST_AGE:
            raise Refusal(503, f"the store did not answer for {self.age:.0f} s, so no key can be checked")
        if not self._keys and (self._insecure or not self._required):
            return None
        key = self.find(_token(headers))
        if key is None:
            raise Refusal(401, "a key is needed: Authorization: Bearer ck_…; `coterie keys create` makes one")
        if not key.allows(role, key.policy if any_scope else policy):
            where = "" if policy is None else f" of policy {policy!r}"
            raise Refusal(403, f"this needs the role {role}{where}, and the key does not have it")
        return key


def _token(headers: Headers) -> str:
    """Return the text of the key that a request gives; clients of Personalizer have a header of their own."""
    scheme, _, token = header(headers, b"authorization").decode("latin-1").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    return header(headers, b"ocp-apim-subscription-key").decode("latin-1").strip()


def _keep_fresh(reference: weakref.ref[APIKeys], stop: Event) -> None:
    """Read keys again and again, until they are of no use to anybody."""
    while not stop.wait(FRESH):
        keys = reference()
        if keys is None:
            return
        try:
            keys.refresh()
        except StoreError as error:
            logger.warning("the keys could not be read, and are %.0f s old: %s", keys.age, error)
        del keys  # a reference in this frame would keep them alive while it waits


def _digest(secret: str) -> str:
    """Hash a secret, which has 256 random bits: a slow hash, as for passwords, would protect nothing more."""
    return sha256(secret.encode("utf-8", "replace")).hexdigest()
