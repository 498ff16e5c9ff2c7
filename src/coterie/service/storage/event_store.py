"""The log: its records, and the store of them and of snapshots, in SQL that both databases understand.

State is a function of the log. Whatever was random is in it: an event says what was decided, and where the
policy's generator stood afterwards if the decision moved it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from coterie.errors import StoreError
from coterie.types import Floats

_decode: Callable[[str], Any] = json.loads
_encode: Callable[[Any], str] = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
if find_spec("msgspec") is not None:  # the same text, ten times faster
    import msgspec

    _decode = msgspec.json.Decoder().decode

    def _encode(value: Any) -> str:
        """Return the same text as the encoder of the standard library."""
        return msgspec.json.encode(value).decode()


CREATED = "created"
"""A policy was made; `detail` holds its settings."""
CONFIGURED = "configured"
"""Settings that may change have changed; `detail` holds all of them."""
ITEMS = "items"
"""Items were set (`put`, vectors in `x`) or `removed`; with `all` the catalogue is cleared first."""
DECISION = "decision"
"""An arm or a list of arms was chosen for a user."""
ACTIVATED = "activated"
"""A deferred decision was shown, and waits for its reward from then on."""
REWARD = "reward"
"""The reward of a decision came, or its `parts` were closed; with `x` if it did not wait any more."""
PART = "part"
"""A part of a decision's reward came, which adds to a sum; `detail` names it."""
FEEDBACK = "feedback"
"""A reward came for an arm that something else chose; `decision` is the id of the feedback."""
EXPIRED = "expired"
"""No reward came in time; the default reward was counted."""
RETIRED = "retired"
"""The policy serves no more; its log remains."""

REWARDED = (REWARD, FEEDBACK)
"""Kinds of event that settle a decision's id with a reward."""

FORMAT = 5
"""The version of the tables and of what events say; other versions are refused, but for the former one."""
FORMER_FORMAT = 4
"""A store of this version becomes one of the present when a service opens it.

Its log knows fewer kinds of event; its snapshots lack parts of rewards: these are dropped, and the log is
replayed.
"""
PAGE = 5_000
"""Events that are read at a time, at most."""
PAGE_BYTES = 2**25
"""Bytes of their vectors, unless one event has more: a change of the catalogue may have megabytes."""
BLOCK = 1_024
"""Events whose users are indexed together: a commit writes a few pages of the last block, not one a user."""
COLUMNS = "seq, policy, kind, at, decision, user_id, item, reward, x, detail, checksum"
"""The fields of an event, then the checksum of them."""
IMPORT = "import "
"""What the name of the mark of an import begins with, before that of the policy."""
OWNER = "SELECT value FROM meta WHERE name = 'owner'"
"""How often the store was opened to be written; whoever opened it last owns it."""
TABLES = (
    "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS log (seq {number} PRIMARY KEY, policy TEXT NOT NULL,
       kind TEXT NOT NULL, at {double} NOT NULL, decision TEXT, user_id TEXT, item TEXT, reward {double},
       x {bytes}, detail TEXT, checksum {number} NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS log_decision ON log (decision) WHERE decision IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS log_kind ON log (kind) WHERE kind IN ('created', 'retired')",
    f"CREATE INDEX IF NOT EXISTS log_block ON log ((seq / {BLOCK}), user_id) WHERE user_id IS NOT NULL",
    """CREATE TABLE IF NOT EXISTS snapshot (policy TEXT NOT NULL, seq BIGINT NOT NULL,
       manifest {bytes} NOT NULL, digest {bytes} NOT NULL, PRIMARY KEY (policy, seq))""",
    """CREATE TABLE IF NOT EXISTS chunk (policy TEXT NOT NULL, digest {bytes} NOT NULL,
       content {bytes} NOT NULL, PRIMARY KEY (policy, digest))""",
    """CREATE TABLE IF NOT EXISTS key (id TEXT PRIMARY KEY, digest TEXT NOT NULL, role TEXT NOT NULL,
       policy TEXT, label TEXT NOT NULL, created {double} NOT NULL)""",
    "CREATE TABLE IF NOT EXISTS experiment (name TEXT PRIMARY KEY, detail TEXT NOT NULL)",
)
OF_USER = f"""WITH RECURSIVE block (number, least) AS (
    SELECT (SELECT MAX(seq) FROM log) / {BLOCK}, (SELECT MIN(seq) FROM log) / {BLOCK}
    UNION ALL SELECT number - 1, least FROM block WHERE number > least)
    SELECT {{columns}} FROM block CROSS JOIN log
    WHERE seq / {BLOCK} = number AND user_id = ? AND policy = ?"""
"""The events of a user: one lookup in the index for each block of the log."""


class StoreTakenOver(StoreError):
    """Raised when another process has opened the store since: it is the owner now."""


class DamagedEvent(StoreError):
    """Raised when a row of the log is not what was written."""


class Event(NamedTuple):
    """One record of the log.

    `seq` numbers the events of a whole store from 1. `x` holds float64 values, rows first; `detail` is JSON.
    """

    seq: int
    policy: str
    kind: str
    at: float
    decision: str | None = None
    user: str | None = None
    item: str | None = None
    reward: float | None = None
    x: bytes | None = None
    detail: str | None = None

    def fields(self) -> dict[str, Any]:
        """Return the decoded detail; it is shared, and must not be changed."""
        return _decoded(self.detail) if self.detail else {}

    def vectors(self, dim: int) -> Floats:
        """Return the vectors of `x`, one per row, read-only."""
        return np.frombuffer(self.x or b"").reshape(-1, dim)

    def chosen_vectors(self, dim: int) -> Floats:
        """Return the vectors that a decision chose, from all that were offered or stored alone."""
        rows, picked = self.vectors(dim), self.fields().get("arms")
        return rows if picked is None else rows[picked]

    @property
    def size(self) -> int:
        """About how many bytes it takes in memory."""
        return 600 + len(self.x or b"") + text_size(self.detail or "")


def text_size(text: str) -> int:
    """Return about how many bytes a text takes in memory.

    Not `sys.getsizeof`, whose answer changes: Python keeps the UTF-8 form of a text once it was needed.
    """
    return 50 + len(text) if text.isascii() else 80 + 8 * len(text)


def checksum(event: Event) -> int:
    """Return 64 bits of the BLAKE2b hash of an event's fields, to notice bits that changed on the disk."""
    reward = None if event.reward is None else float(event.reward)  # as databases return it
    fields = (*event[:3], float(event.at), *event[4:7], reward, event.detail)
    found = blake2b(repr(fields).encode("utf-8", "surrogatepass"), digest_size=8)
    found.update(event.x or b"")
    return int.from_bytes(found.digest(), "big", signed=True)


def checked_event(row: Sequence[Any]) -> Event:
    """Return the event of a row, whose last value is the checksum; DamagedEvent if they do not agree."""
    event = Event(*row[:-1])
    if checksum(event) != row[-1]:
        raise DamagedEvent(f"event {row[0]} of policy {row[1]!r} is damaged: its checksum is another")
    return event


def detail(**fields: Any) -> str:
    """Encode fields as the detail of an event, without those that are None."""
    return encode_detail({name: value for name, value in fields.items() if value is not None})


def encode_detail(fields: dict[str, Any]) -> str:
    """Encode fields as compact JSON; they must not be changed afterwards, since they are cached."""
    text = _encode(fields)
    _cache_detail(text, fields)
    return text


_DETAILS: dict[str, dict[str, Any]] = {}
"""The latest details: an event is read several times in a row while it is handled."""
DETAILS_KEPT = 100
LONGEST_KEPT = 2**16
"""Characters of a detail that is kept: the ids of a catalogue may be megabytes, and are read once."""


def _decoded(text: str) -> dict[str, Any]:
    found = _DETAILS.get(text)
    if found is None:
        found = _decode(text)
        _cache_detail(text, found)
    return found


def _cache_detail(text: str, fields: dict[str, Any]) -> None:
    if len(_DETAILS) >= DETAILS_KEPT:
        _DETAILS.clear()
    if len(text) <= LONGEST_KEPT:
        _DETAILS[text] = fields


def first(events: Sequence[Event], *kinds: str) -> Event | None:
    """Return the first event of one of these kinds, if there is one."""
    for event in events:
        if event.kind in kinds:
            return event
    return None


class EventStore(ABC):
    """The log and the snapshots of any number of policies.

    Methods that write are called by one thread alone, the journal's. Reading methods may be called by any
    thread. Each write is one transaction: it happened as a whole, durably, when the method returns.
    """

    remote = False
    """Whether queries go to another process, so that any of them may take long, or never end."""
    durable = True
    """Does what was written survive the end of the process?"""
    folder: Path | None = None
    """Where temporary files as large as a snapshot have room; None leaves that to the system."""

    OWNER = OWNER
    _epoch: int | None = None

    @abstractmethod
    def open(self, *, lock: bool = True, again: bool = False) -> None:
        """Connect, take the lock, make the tables; StoreError if that cannot be done.

        Without the lock, only keys may be written: a service may have the store open.
        """

    @abstractmethod
    def check_exists(self) -> None:
        """Raise StoreError if there is no store here yet, which `open` would make."""

    @abstractmethod
    def close(self) -> None:
        """Disconnect and release the lock."""

    def export_folder(self) -> TemporaryDirectory[str]:
        """Return a folder in which an export is written before it is sent."""
        return TemporaryDirectory(prefix="coterie-export-")

    @abstractmethod
    def hurry(self) -> None:
        """Give up soon whatever does not answer, since the service ends."""

    @abstractmethod
    def leave_in_child(self) -> None:
        """See to it that a forked process does not touch the connections of its parent, even at its end."""

    @abstractmethod
    def execute(self, statement: str, rows: Sequence[Sequence[Any]] = ((),)) -> None:
        """Perform a statement for each row of values, on the connection that writes."""

    @abstractmethod
    def fetch(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a statement, on the connection that writes, within its transaction."""

    @abstractmethod
    def query(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a statement, on the connection that reads."""

    @abstractmethod
    def one_moment(self) -> AbstractContextManager[None]:
        """Let all queries of a block see the store as it was at its first one, whoever writes meanwhile."""

    @abstractmethod
    def check_place(self) -> None:
        """Raise if what was committed is not where the next process would look for it."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Perform all statements within, or none of them."""
        self.execute("BEGIN")
        try:
            self._check_owner()
            yield
            self.execute("COMMIT")
        except BaseException:
            self.roll_back()
            raise
        self.check_place()

    # The owner. A lock keeps a second service out; but locks can be gone around (another path, a file system
    # without locks, a failover to another server), so each transaction checks that nobody came after.

    def claim(self) -> None:
        """Become the owner: transactions of whoever was it before fail from now on.

        Raises
        ------
        StoreTakenOver
            If this store was open before, and another owner came since: it must not be pushed out in turn.
        """
        self.execute("BEGIN")
        try:
            found = self.fetch(self.OWNER)
            current = int(found[0][0]) if found else 0
            if self._epoch is not None and current > self._epoch:
                raise taken_over()
            epoch = max(current, self._epoch or 0) + 1
            statement = "UPDATE meta SET value = ? WHERE name = 'owner'"
            if not found:
                statement = "INSERT INTO meta (value, name) VALUES (?, 'owner')"
            self.execute(statement, [(str(epoch),)])
            self.execute("COMMIT")
        except BaseException:
            self.roll_back()
            raise
        self._epoch = epoch

    def _check_owner(self) -> None:
        if self._epoch is not None and self.fetch(self.OWNER) != [(str(self._epoch),)]:
            raise taken_over()

    @abstractmethod
    def roll_back(self) -> None:
        """Undo a transaction as far as the connection still allows it; never raises."""

    # The log.

    def append(self, events: Sequence[Event]) -> None:
        """Add events to the end of the log."""
        with self.transaction():
            self.insert(events)

    def insert(self, events: Sequence[Event]) -> None:
        """Add events within a transaction."""
        rows = [(*event, checksum(event)) for event in events]
        self.execute(f"INSERT INTO log ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def rewrite_events(self, events: Sequence[Event]) -> None:
        """Replace rewards, vectors and details of events within a transaction."""
        rows = [(event.reward, event.x, event.detail, checksum(event), event.seq) for event in events]
        self.execute("UPDATE log SET reward = ?, x = ?, detail = ?, checksum = ? WHERE seq = ?", rows)

    def read(self, policy: str, after: int = 0) -> Iterator[Event]:
        """Yield the events of a policy after this number, in order."""
        sizes = "SELECT seq, COALESCE(LENGTH(x), 0) FROM log WHERE policy = ? AND seq > ? ORDER BY seq"
        page = f"SELECT {COLUMNS} FROM log WHERE policy = ? AND seq > ? AND seq <= ? ORDER BY seq"
        while found := self.query(f"{sizes} LIMIT {PAGE}", (policy, after)):
            held = np.cumsum([size for _, size in found])
            last = found[min(int(np.searchsorted(held, PAGE_BYTES)), len(found) - 1)][0]
            yield from map(checked_event, self.query(page, (policy, after, last)))
            after = last

    def find(self, policy: str, decision: str) -> list[Event]:
        """Return all events of a decision, or of a feedback's id."""
        found = self.query(
            f"SELECT {COLUMNS} FROM log WHERE decision = ? AND policy = ? ORDER BY seq", (decision, policy)
        )
        return [checked_event(row) for row in found]

    def history(self, policy: str, user: str, limit: int) -> list[Event]:
        """Return the latest events of a user, in order."""
        statement = f"{OF_USER.format(columns=COLUMNS)} ORDER BY seq DESC LIMIT ?"
        found = self.query(statement, (user, policy, limit))
        return [checked_event(row) for row in found][::-1]

    def policies(self) -> list[str]:
        """Return the names of the policies that serve, in the order in which they were made."""
        found = self.query(
            "SELECT policy, kind FROM log WHERE kind IN (?, ?) ORDER BY seq", (CREATED, RETIRED)
        )
        retired = {name for name, kind in found if kind == RETIRED}
        return [name for name, kind in found if kind == CREATED and name not in retired]

    def configurations(self, policy: str) -> list[tuple[int, str]]:
        """Return the numbers and details of the events that hold settings of a policy."""
        found = self.query(
            "SELECT seq, detail FROM log WHERE policy = ? AND kind IN (?, ?) ORDER BY seq",
            (policy, CREATED, CONFIGURED),
        )
        return [(int(seq), str(text)) for seq, text in found]

    def last(self) -> tuple[int, float]:
        """Return the number of the last event, and the latest time of any."""
        (row,) = self.query("SELECT COALESCE(MAX(seq), 0) FROM log")
        # Times go up with numbers, but for a few around a rewrite: the last events are enough.
        (time,) = self.query("SELECT COALESCE(MAX(at), 0) FROM log WHERE seq > ?", (row[0] - 1000,))
        return int(row[0]), float(time[0])

    def forget_user(self, policy: str, user: str, settings: Sequence[tuple[int, str]] = ()) -> None:
        """Remove all events of a user, and the snapshots, which contain the user.

        `settings` replaces the details of events, by number, that name the user. The rows may be in a file
        until `finish_erasure` was called; a mark says so.
        """
        with self.transaction():
            theirs = OF_USER.format(columns="seq")
            self.execute(f"DELETE FROM log WHERE seq IN ({theirs})", [(user, policy)])
            for seq, text in settings:
                (row,) = self.fetch(f"SELECT {COLUMNS} FROM log WHERE seq = ?", (seq,))
                self.rewrite_events([checked_event(row)._replace(detail=text)])
            self._drop_snapshots(policy)
            self.execute("DELETE FROM meta WHERE name = 'erasing'")
            self.execute("INSERT INTO meta VALUES ('erasing', '1')")

    def erasure_is_pending(self) -> bool:
        """Tell whether rows of a removed user may still be in a file."""
        return bool(self.query("SELECT 1 FROM meta WHERE name = 'erasing'"))

    def finish_erasure(self) -> None:
        """Overwrite what was removed, and take the mark away."""
        self.erase_removed()
        with self.transaction():
            self.execute("DELETE FROM meta WHERE name = 'erasing'")

    @abstractmethod
    def erase_removed(self) -> None:
        """Leave no byte of removed rows in any file, as far as the database lets its clients do that."""

    @abstractmethod
    def reuse_log(self) -> None:
        """Let the database's own log of changes be written from its start again, where it has such a file."""

    def replace_default(self, expired: Event, event: Event) -> None:
        """Replace the default that was counted for a decision by its reward."""
        with self.transaction():
            self.execute("DELETE FROM log WHERE seq = ?", [(expired.seq,)])
            self.insert([event])
            self._drop_snapshots(event.policy, expired.seq)

    def correct_reward(self, event: Event) -> None:
        """Let a reward have been what this event of the same number says."""
        with self.transaction():
            self.rewrite_events([event])
            self._drop_snapshots(event.policy, event.seq)

    # Imports: rows are written some at a time, so that other events are committed between. A mark, set before
    # the first and removed after the last, tells a process that starts later which rows do not count.

    def begin_import(self, policy: str, after: int) -> None:
        """Let events of a policy after this number not count until `end_import`."""
        with self.transaction():
            self.execute("INSERT INTO meta VALUES (?, ?)", [(IMPORT + policy, str(after))])

    def end_import(self, policy: str) -> None:
        """Let all events of an import count."""
        with self.transaction():
            self.execute("DELETE FROM meta WHERE name = ?", [(IMPORT + policy,)])

    def unfinished_imports(self) -> list[str]:
        """Return the policies with an import that has not ended."""
        found = self.query("SELECT name FROM meta WHERE name LIKE ?", (f"{IMPORT}%",))
        return [str(name).removeprefix(IMPORT) for (name,) in found]

    def remove_import(self, policy: str) -> None:
        """Remove the events of an import that has not ended."""
        mark = IMPORT + policy
        with self.transaction():
            for (after,) in self.fetch("SELECT value FROM meta WHERE name = ?", (mark,)):
                self.execute("DELETE FROM log WHERE policy = ? AND seq > ?", [(policy, int(after))])
            self.execute("DELETE FROM meta WHERE name = ?", [(mark,)])

    def _drop_snapshots(self, policy: str, since: int = 0) -> None:
        """Remove snapshots that contain the event of this number; chunks go with the last of them.

        Chunks that only these needed are removed after the next snapshot.
        """
        self.execute("DELETE FROM snapshot WHERE policy = ? AND seq >= ?", [(policy, since)])
        if not self.fetch("SELECT 1 FROM snapshot WHERE policy = ? LIMIT 1", (policy,)):
            self.execute("DELETE FROM chunk WHERE policy = ?", [(policy,)])

    # Snapshots: chunks of content first, named by their digest, then the manifest that lists them. A manifest
    # is written only when all of its chunks are durable, so that a snapshot is whole or not there.

    def put_chunks(self, policy: str, chunks: Sequence[tuple[bytes, bytes]]) -> None:
        """Add chunks that are not there yet: a digest and its content each."""
        with self.transaction():
            rows = [(policy, digest, content) for digest, content in chunks]
            self.execute("INSERT INTO chunk (policy, digest, content) VALUES (?, ?, ?)", rows)

    def chunk_digests(self, policy: str) -> set[bytes]:
        """Return the digests of all chunks of a policy."""
        found = self.query("SELECT digest FROM chunk WHERE policy = ?", (policy,))
        return {bytes(digest) for (digest,) in found}

    def read_chunks(self, policy: str, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the content of those of these chunks that are there and undamaged."""
        marks = ", ".join("?" * len(digests))
        statement = f"SELECT content FROM chunk WHERE policy = ? AND digest IN ({marks})"
        return {
            digest_of(content): bytes(content) for (content,) in self.query(statement, (policy, *digests))
        }

    def remove_chunks(self, policy: str, digests: Sequence[bytes]) -> None:
        """Remove chunks that no manifest lists any more."""
        marks = ", ".join("?" * len(digests))
        with self.transaction():
            self.execute(f"DELETE FROM chunk WHERE policy = ? AND digest IN ({marks})", [(policy, *digests)])

    def put_manifest(self, policy: str, seq: int, manifest: bytes, *, keep: int = 2) -> None:
        """Add the manifest of a snapshot after event `seq`; older ones than the last `keep` go."""
        with self.transaction():
            self.execute("DELETE FROM snapshot WHERE policy = ? AND seq = ?", [(policy, seq)])
            row = (policy, seq, manifest, digest_of(manifest))
            self.execute("INSERT INTO snapshot (policy, seq, manifest, digest) VALUES (?, ?, ?, ?)", [row])
            kept = "SELECT seq FROM snapshot WHERE policy = ? ORDER BY seq DESC LIMIT ?"
            self.execute(
                f"DELETE FROM snapshot WHERE policy = ? AND seq NOT IN ({kept})", [(policy, policy, keep)]
            )

    def manifests(self, policy: str) -> list[tuple[int, bytes]]:
        """Return the manifests of a policy that are undamaged with their numbers, the latest first."""
        found = self.query(
            "SELECT seq, manifest, digest FROM snapshot WHERE policy = ? ORDER BY seq DESC", (policy,)
        )
        return [(int(seq), bytes(one)) for seq, one, digest in found if digest_of(one) == bytes(digest)]

    def chunk_owners(self) -> list[str]:
        """Return the names of policies that have chunks."""
        return [str(name) for (name,) in self.query("SELECT DISTINCT policy FROM chunk")]

    # Experiments: what they are. What they have brought follows from the log of their policies.

    def put_experiment(self, name: str, detail: str) -> None:
        """Set what an experiment is."""
        with self.transaction():
            self.execute("DELETE FROM experiment WHERE name = ?", [(name,)])
            self.execute("INSERT INTO experiment (name, detail) VALUES (?, ?)", [(name, detail)])

    def experiments(self) -> list[tuple[str, str]]:
        """Return the names and details of all experiments."""
        return [(str(name), str(text)) for name, text in self.query("SELECT name, detail FROM experiment")]

    # The format.

    @abstractmethod
    def has_table(self, name: str) -> bool:
        """Tell whether a table exists."""

    def check_format(self) -> None:
        """Raise ValueError if the tables are those of another version; called before anything is written."""
        if not self.has_table("meta"):
            return
        found = self.query("SELECT value FROM meta WHERE name = 'format'")
        if found and found[0][0] not in (str(FORMAT), str(FORMER_FORMAT)):
            raise ValueError(
                f"it has format {found[0][0]}, and this Coterie reads formats {FORMER_FORMAT} and {FORMAT}"
            )

    def set_format(self) -> None:
        """Enter the version of the tables in a new store."""
        if not self.query("SELECT value FROM meta WHERE name = 'format'"):
            with self.transaction():
                self.execute("INSERT INTO meta VALUES ('format', ?)", [(str(FORMAT),)])

    def convert(self) -> None:
        """Make a store of the former version one of the present; called by its owner."""
        if self.query("SELECT value FROM meta WHERE name = 'format'") == [(str(FORMER_FORMAT),)]:
            with self.transaction():
                for name in self.chunk_owners():
                    self._drop_snapshots(name)
                self.execute("UPDATE meta SET value = ? WHERE name = 'format'", [(str(FORMAT),)])


def taken_over() -> StoreTakenOver:
    """Return what an owner is told that is no longer the owner."""
    return StoreTakenOver(
        "another process has opened this store since, and this one acknowledges nothing any more; one store "
        "has one service: stop one of the two, and start the other again"
    )


def digest_of(content: bytes) -> bytes:
    """Return the name of a chunk: 16 bytes of its BLAKE2b hash."""
    return blake2b(content, digest_size=16).digest()


def one_line(error: BaseException) -> str:
    """Return the message of an error, on one line."""
    return " ".join(str(error).split()) or type(error).__name__
