"""What keeps the log and the snapshots: statements that SQLite and PostgreSQL both understand."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from hashlib import blake2b
from io import BufferedIOBase, BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

from coterie.errors import StoreError
from coterie.policies.array_files import Archive
from coterie.service.core.log_events import CONFIGURED, CREATED, EXPIRED, RETIRED, Event

FORMAT = 1
"""The version of the tables; a store of another one is refused."""
PART = 2**22
"""Bytes of a snapshot that are written at a time, so that rewards do not wait for all of it."""
PAGE = 5_000
"""Events that are read at a time."""
BLOCK = 1_024
"""Events whose users are indexed together: a commit writes a few pages of the last block, not one a user."""
COLUMNS = "seq, policy, kind, at, decision, user_id, item, reward, x, detail"
TABLES = (
    "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS log (seq {number} PRIMARY KEY, policy TEXT NOT NULL,
       kind TEXT NOT NULL, at {double} NOT NULL, decision TEXT, user_id TEXT, item TEXT, reward {double},
       x {bytes}, detail TEXT)""",
    "CREATE INDEX IF NOT EXISTS log_decision ON log (decision) WHERE decision IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS log_kind ON log (kind) WHERE kind IN ('created', 'retired')",
    "DROP INDEX IF EXISTS log_user",  # of earlier versions: each event wrote a page of its own
    f"CREATE INDEX IF NOT EXISTS log_block ON log ((seq / {BLOCK}), user_id) WHERE user_id IS NOT NULL",
    """CREATE TABLE IF NOT EXISTS snapshot (policy TEXT NOT NULL, seq BIGINT NOT NULL, parts BIGINT NOT NULL,
       digest TEXT NOT NULL, PRIMARY KEY (policy, seq))""",
    """CREATE TABLE IF NOT EXISTS snapshot_part (policy TEXT NOT NULL, seq BIGINT NOT NULL,
       part BIGINT NOT NULL, content {bytes} NOT NULL, PRIMARY KEY (policy, seq, part))""",
    """CREATE TABLE IF NOT EXISTS snapshot_base (policy TEXT NOT NULL, seq BIGINT NOT NULL,
       base BIGINT NOT NULL, PRIMARY KEY (policy, seq))""",
    """CREATE TABLE IF NOT EXISTS key (id TEXT PRIMARY KEY, digest TEXT NOT NULL, role TEXT NOT NULL,
       policy TEXT, label TEXT NOT NULL, created {double} NOT NULL)""",
)
OF_USER = f"""WITH RECURSIVE block (number, least) AS (
    SELECT (SELECT MAX(seq) FROM log) / {BLOCK}, (SELECT MIN(seq) FROM log) / {BLOCK}
    UNION ALL SELECT number - 1, least FROM block WHERE number > least)
    SELECT {{columns}} FROM block CROSS JOIN log
    WHERE seq / {BLOCK} = number AND user_id = ? AND policy = ?"""
"""The events of a user, by a look into the index of each block."""

logger = logging.getLogger(__name__)


class Content(NamedTuple):
    """The bytes of a snapshot, in a file that is gone when it is closed, and their checksum."""

    file: BufferedIOBase
    size: int
    digest: str

    def archive(self) -> Archive:
        """The arrays within."""
        return Archive(self.file, self.size)


class StoredSnapshot(NamedTuple):
    """A snapshot that is whole: the last event in it, its content, and, of an increment, that of its base."""

    seq: int
    content: Content
    base: Content | None = None


class EventStore(ABC):
    """The log and the snapshots of any number of policies.

    Methods that write are called by one thread alone, the journal's. Reading methods may be called by any
    thread. Each write is one transaction: it happened as a whole, durably, when the method returns.
    """

    durable = True
    """Does what was written survive the end of the process?"""
    folder: Path | None = None
    """Where temporary files as large as a snapshot have room; None leaves that to the system."""

    @abstractmethod
    def open(self, *, lock: bool = True) -> None:
        """Connect, take the lock, make the tables; StoreError if that cannot be done.

        Without the lock, only keys may be written: a service may have the store open.
        """

    @abstractmethod
    def close(self) -> None:
        """Disconnect and release the lock."""

    @abstractmethod
    def execute(self, statement: str, rows: Sequence[Sequence[Any]] = ((),)) -> None:
        """Perform a statement for each row of values, on the connection that writes."""

    @abstractmethod
    def query(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a statement, on the connection that reads."""

    @abstractmethod
    def check_place(self) -> None:
        """Raise if what was committed is not where the next process would look for it."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All statements within, or none of them."""
        self.execute("BEGIN")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            self.roll_back()
            raise
        self.check_place()

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
        self.execute(f"INSERT INTO log ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", events)

    def read(self, policy: str, after: int = 0) -> Iterator[Event]:
        """The events of a policy after this number, in order."""
        statement = f"SELECT {COLUMNS} FROM log WHERE policy = ? AND seq > ? ORDER BY seq LIMIT {PAGE}"
        while rows := self.query(statement, (policy, after)):
            yield from (Event(*row) for row in rows)
            after = rows[-1][0]

    def find(self, policy: str, decision: str) -> list[Event]:
        """All events of a decision, or of a feedback's id."""
        found = self.query(
            f"SELECT {COLUMNS} FROM log WHERE decision = ? AND policy = ? ORDER BY seq", (decision, policy)
        )
        return [Event(*row) for row in found]

    def history(self, policy: str, user: str, limit: int) -> list[Event]:
        """The latest events of a user, in order."""
        statement = f"{OF_USER.format(columns=COLUMNS)} ORDER BY seq DESC LIMIT ?"
        found = self.query(statement, (user, policy, limit))
        return [Event(*row) for row in found][::-1]

    def policies(self) -> list[str]:
        """The names of the policies that serve, in the order in which they were made."""
        found = self.query(
            "SELECT policy, kind FROM log WHERE kind IN (?, ?) ORDER BY seq", (CREATED, RETIRED)
        )
        retired = {name for name, kind in found if kind == RETIRED}
        return [name for name, kind in found if kind == CREATED and name not in retired]

    def configurations(self, policy: str) -> list[tuple[int, str]]:
        """The numbers and details of the events that hold settings of a policy."""
        found = self.query(
            "SELECT seq, detail FROM log WHERE policy = ? AND kind IN (?, ?) ORDER BY seq",
            (policy, CREATED, CONFIGURED),
        )
        return [(int(seq), str(told)) for seq, told in found]

    def last(self) -> tuple[int, float]:
        """The number of the last event, and the latest time of any."""
        (row,) = self.query("SELECT COALESCE(MAX(seq), 0) FROM log")
        (time,) = self.query("SELECT COALESCE(MAX(at), 0) FROM log WHERE seq > ?", (row[0] - 1000,))
        return int(row[0]), float(time[0])

    def forget_user(self, policy: str, user: str, settings: Sequence[tuple[int, str]] = ()) -> None:
        """Remove all events of a user, and the snapshots, which know of it.

        `settings` replaces the details of events, by number, that name the user.
        """
        with self.transaction():
            theirs = OF_USER.format(columns="seq")
            self.execute(f"DELETE FROM log WHERE seq IN ({theirs})", [(user, policy)])
            for seq, told in settings:
                self.execute("UPDATE log SET detail = ? WHERE seq = ?", [(told, seq)])
            self._drop_snapshots(policy)

    def replace_default(self, decision: str, event: Event) -> None:
        """Let a decision's reward take the place of the default that was counted."""
        with self.transaction():
            which = (event.policy, decision, EXPIRED)
            self.execute("DELETE FROM log WHERE policy = ? AND decision = ? AND kind = ?", [which])
            self.insert([event])
            self._drop_snapshots(event.policy)

    def _drop_snapshots(self, policy: str) -> None:
        self.execute("DELETE FROM snapshot WHERE policy = ?", [(policy,)])
        self.execute("DELETE FROM snapshot_part WHERE policy = ?", [(policy,)])
        self.execute("DELETE FROM snapshot_base WHERE policy = ?", [(policy,)])

    # Snapshots: parts first, then the row that says that it is whole.

    def put_part(self, policy: str, seq: int, part: int, content: bytes) -> None:
        """Write a part of a snapshot."""
        with self.transaction():
            if part == 0:
                self.execute("DELETE FROM snapshot_part WHERE policy = ? AND seq = ?", [(policy, seq)])
            self.execute("INSERT INTO snapshot_part VALUES (?, ?, ?, ?)", [(policy, seq, part, content)])

    def complete(
        self, policy: str, seq: int, parts: int, digest: str, *, base: int | None = None, keep: int = 2
    ) -> None:
        """Say that a snapshot is whole; older ones than the last `keep` and their bases go.

        `base` is the number of the snapshot that it builds on, if it is an increment.
        """
        with self.transaction():
            self.execute("DELETE FROM snapshot WHERE policy = ? AND seq = ?", [(policy, seq)])
            self.execute("DELETE FROM snapshot_base WHERE policy = ? AND seq = ?", [(policy, seq)])
            self.execute("INSERT INTO snapshot VALUES (?, ?, ?, ?)", [(policy, seq, parts, digest)])
            if base is not None:
                self.execute("INSERT INTO snapshot_base VALUES (?, ?, ?)", [(policy, seq, base)])
            kept = "SELECT seq FROM snapshot WHERE policy = ? ORDER BY seq DESC LIMIT ?"
            bases = f"SELECT base FROM snapshot_base WHERE policy = ? AND seq IN ({kept})"
            old = f"policy = ? AND seq NOT IN ({kept}) AND seq NOT IN ({bases})"
            for table in ("snapshot", "snapshot_part"):
                self.execute(
                    f"DELETE FROM {table} WHERE {old}", [(policy, policy, keep, policy, policy, keep)]
                )
            gone = "policy = ? AND seq NOT IN (SELECT seq FROM snapshot WHERE policy = ?)"
            self.execute(f"DELETE FROM snapshot_base WHERE {gone}", [(policy, policy)])

    def drop_parts(self, policy: str | None = None) -> None:
        """Remove parts of snapshots that never became whole, of one policy or of all."""
        whole = "SELECT 1 FROM snapshot s WHERE s.policy = snapshot_part.policy AND s.seq = snapshot_part.seq"
        with self.transaction():
            self.execute(
                f"DELETE FROM snapshot_part WHERE policy = COALESCE(?, policy) AND NOT EXISTS ({whole})",
                [(policy,)],
            )

    def snapshots(self, policy: str) -> Generator[StoredSnapshot, None, None]:
        """The snapshots that are whole, the latest first, an increment with its base; each until the next."""
        bases = dict(self.query("SELECT seq, base FROM snapshot_base WHERE policy = ?", (policy,)))
        listed = self.query("SELECT seq FROM snapshot WHERE policy = ? ORDER BY seq DESC", (policy,))
        for (seq,) in listed:
            with ExitStack() as files:
                content = self._snapshot(policy, seq, files)
                base = self._snapshot(policy, bases[seq], files) if seq in bases else None
                if content is not None and (seq not in bases or base is not None):
                    yield StoredSnapshot(int(seq), content, base)

    def _snapshot(self, policy: str, seq: int, files: ExitStack) -> Content | None:
        """The content of a snapshot, if it is whole: copied to a file, so that it takes no memory.

        Where the disk has no room, it is copied to memory: a full disk is no reason not to start.
        """
        told = self.query("SELECT parts, digest FROM snapshot WHERE policy = ? AND seq = ?", (policy, seq))
        if not told:
            return None
        parts, digest = told[0]
        file: BufferedIOBase | None = None
        try:
            file = files.enter_context(TemporaryFile(dir=self.folder))
            return self._copied(policy, seq, parts, digest, file)
        except StoreError:
            raise
        except OSError as error:
            logger.warning("snapshot of policy %s: read into memory, the disk has no room: %s", policy, error)
            if file is not None:
                with suppress(OSError):
                    file.close()
            return self._copied(policy, seq, parts, digest, BytesIO())

    def _copied(self, policy: str, seq: int, parts: int, digest: str, file: BufferedIOBase) -> Content | None:
        """The parts of a snapshot in a file, if they are those that were written."""
        one = "SELECT content FROM snapshot_part WHERE policy = ? AND seq = ? AND part = ?"
        found = blake2b(digest_size=16)
        for part in range(parts):
            for (content,) in self.query(one, (policy, seq, part)):
                file.write(content)
                found.update(content)
        file.flush()
        return Content(file, file.tell(), digest) if found.hexdigest() == digest else None

    def check_format(self) -> None:
        """Enter the version of the tables, or see that it is ours."""
        found = self.query("SELECT value FROM meta WHERE name = 'format'")
        if not found:
            with self.transaction():
                self.execute("INSERT INTO meta VALUES ('format', ?)", [(str(FORMAT),)])
        elif found[0][0] != str(FORMAT):
            raise ValueError(f"it has format {found[0][0]}, and this Coterie reads format {FORMAT}")
