from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest

from coterie import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_is_drawn_where_no_one_is_watching(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress.progress_bar(100, "B", label="reading", delay=0.0) as advance:
        advance(50)
    assert screen.getvalue() == ""


def test_a_bar_is_drawn_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress.progress_bar(100, "B", label="reading", delay=0.0) as advance:
        advance(100)
    assert "reading" in screen.getvalue()


def test_what_is_done_within_two_seconds_shows_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress.progress_bar(100, "B", label="reading") as advance:
        advance(100)
    assert "reading" not in screen.getvalue()


def test_without_tqdm_there_is_no_bar_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert not progress.is_shown()
    with progress.progress_bar(100, "B", label="reading") as advance:
        advance(100)


class Kernel:
    """Stands for the shell of a notebook, which has a kernel."""

    kernel = object()


def test_a_notebook_has_a_bar_though_its_stderr_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=Kernel))
    with progress.progress_bar(100, "round", delay=0.0) as advance:
        advance(50)
    assert "/100 [" in screen.getvalue()


def test_a_bar_can_be_asked_for_and_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    for screen, shown in ((io.StringIO(), True), (Terminal(), False)):
        monkeypatch.setattr(sys, "stderr", screen)
        with progress.progress_bar(100, "round", shown=shown, delay=0.0) as advance:
            advance(50)
        assert ("/100 [" in screen.getvalue()) is shown
