"""The one module of tests that reaches inside the library: a rename there changes this file alone."""

from __future__ import annotations

from time import sleep

import pytest

import coterie.datasets.lines
import coterie.datasets.prepare
import coterie.datasets.sources
import coterie.environments.population
import coterie.environments.stochastic
import coterie.experiments.fingerprint
import coterie.experiments.run_store
import coterie.simulation.rand_index
import coterie.simulation.simulator
from coterie.datasets import Dataset


def read_blocks_of(size: int, patch: pytest.MonkeyPatch) -> list[int]:
    """Read files of lines in blocks of so many bytes; the list fills with the sizes of those taken apart."""
    taken: list[int] = []
    block = coterie.datasets.lines.LineBlock
    numbered = block.numbered

    def noted(self: coterie.datasets.lines.LineBlock) -> object:
        taken.append(len(self.data))
        return numbered(self)

    patch.setattr(coterie.datasets.lines, "BLOCK", size)
    patch.setattr(block, "numbered", noted)
    return taken


def hash_chunks_of(size: int, patch: pytest.MonkeyPatch) -> None:
    """Hash files in chunks of so many bytes."""
    patch.setattr(coterie.datasets.sources, "CHUNK", size)


def forbid_making_datasets(patch: pytest.MonkeyPatch) -> None:
    """Fail where a dataset is made that could have come from the cache."""

    def build(*_: object) -> Dataset:
        raise AssertionError("made again")

    patch.setattr(coterie.datasets.prepare, "build", build)


def without_table_of_means(patch: pytest.MonkeyPatch) -> None:
    """Let no table of users and items be made: means are computed round by round."""
    for module in (coterie.environments.population, coterie.environments.stochastic):
        patch.setattr(module, "MOST_ENTRIES", 50)


def remember_widths_of(size: int, patch: pytest.MonkeyPatch) -> None:
    """Remember widths of lasting items in at most so many bytes."""
    patch.setattr(coterie.simulation.simulator, "MOST_REMEMBERED", size)


def count_labels_in(room: int, patch: pytest.MonkeyPatch) -> None:
    """Count pairs of labels in a table of at most so many entries for each user."""
    patch.setattr(coterie.simulation.rand_index, "ROOM", room)


def judge_clusters_for(seconds: float, patch: pytest.MonkeyPatch) -> None:
    """Let the comparison of clusters with the truth take so many seconds."""

    def judged(*_: object) -> tuple[int, float]:
        sleep(seconds)
        return 1, 1.0

    patch.setattr(coterie.simulation.simulator, "judged", judged)


def change_all_code(patch: pytest.MonkeyPatch) -> None:
    """Let every run be one of another version of the code."""
    patch.setattr(coterie.experiments.run_store, "fingerprint", lambda *about: "another")


def change_our_code(patch: pytest.MonkeyPatch) -> None:
    """Let the code of this library be another, but not that of policies from outside."""
    patch.setattr(coterie.experiments.fingerprint, "_ours", lambda *about: "changed")
