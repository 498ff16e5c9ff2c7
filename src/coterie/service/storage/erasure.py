"""Erasure: what was removed from the log is overwritten in the files of the store, now or later."""

from __future__ import annotations

from contextlib import suppress

from coterie.errors import StoreError
from coterie.service.storage.journal import Journal
from coterie.service.storage.snapshot_writer import Retry


class Erasure:
    """Overwrites what was removed, and tries again while that fails, also after a restart.

    A removal is committed with a mark that stays until the files were written anew, which needs room on the
    disk. The log is sound meanwhile, so that requests are served.

    Attributes
    ----------
    pending : bool
        Whether removed rows may still be in a file.
    retry : Retry
        Attempts that failed.
    """

    def __init__(self, journal: Journal) -> None:
        """Look for the mark of an earlier process."""
        self._journal = journal
        self.retry = Retry()
        self.look()

    def look(self) -> None:
        """Read from the store whether removed rows may still be in a file."""
        self.pending = self._journal.store.erasure_is_pending()

    def finish(self) -> None:
        """Overwrite what was removed; StoreError if that cannot be done now."""
        try:
            self._journal.attempt(self._journal.store.finish_erasure)
        except StoreError as error:
            self.pending = True
            self.retry.fail(str(error))
            raise StoreError(
                f"what was removed is still in the files of the store, and is overwritten later: {error}"
            ) from None
        self.pending, self.retry = False, Retry()

    def finish_due(self) -> None:
        """Try again if something is left, unless that has failed just now; never raises."""
        if self.pending and self.retry.is_due():
            with suppress(StoreError):
                self.finish()
