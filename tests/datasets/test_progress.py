from __future__ import annotations

import io
import sys

import pytest

from coterie.datasets import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_is_drawn_where_no_one_is_watching(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with progress.progress("reading", 100) as advance:
        advance(50)
    assert screen.getvalue() == ""


def test_a_bar_is_drawn_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with progress.progress("reading", 100) as advance:
        advance(100)
    assert "reading" in screen.getvalue()


def test_what_is_done_within_two_seconds_shows_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress.progress("reading", 100) as advance:
        advance(100)
    assert "reading" not in screen.getvalue()


def test_without_tqdm_there_is_no_bar_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert not progress.watched()
    with progress.progress("reading", 100) as advance:
        advance(100)
