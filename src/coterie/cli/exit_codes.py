"""Errors become one line on stderr and an exit code that means something."""

from __future__ import annotations

import errno
import logging
import os
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from coterie.cli.options import GroupWithExamples
from coterie.errors import ArgumentError, CoterieError, MissingData, MissingExtra, UnknownName

DONE, FAILED, USAGE, MISSING, CLOSED_PIPE, INTERRUPTED = 0, 1, 2, 3, 141, 130
CODES = {ArgumentError: USAGE, UnknownName: USAGE, MissingExtra: USAGE, MissingData: MISSING}
"""The exit code of each kind of error; any other is FAILED."""

SYNONYMS = {"horizon": "rounds", "path": "data", "share": "log_share"}
"""Options that are called otherwise than the argument of the library that they set."""


class Interrupted(Exception):
    """Ctrl-C; the sentence says what is kept and how to go on."""


class WriteFailed(Exception):
    """A file could not be written; the sentence names it and says what is kept."""


@contextmanager
def saying_what_is_kept(sentence: Callable[[], str]) -> Iterator[None]:
    """End an interruption or a failed write with a sentence on what is kept and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {sentence()}") from None
    except OSError as error:
        # Without a file name it is not a failed write of ours, and a CoterieError has its own sentence.
        if error.filename is None or isinstance(error, CoterieError):
            raise
        raise WriteFailed(f"{_one_line(error)}; {sentence()}") from error


class NoticeHandler(logging.Handler):
    """Prints what the library logs as lines on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        """One line, above a live display if there is one."""
        print(f"coterie: {record.getMessage()}", file=sys.stderr)


class MainGroup(GroupWithExamples):
    """The outermost group: an error becomes one line; COTERIE_DEBUG=1 shows the traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; Ctrl-C leaves as an error that has something to say."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Interrupted(str(error) or "interrupted") from error

    def options_of(self, typed: Sequence[str]) -> list[str]:
        """The options of the command that these words call."""
        command: Any = self
        for word in typed:
            command = getattr(command, "commands", {}).get(word, command)
        return [name for parameter in command.params for name in parameter.opts]

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line and leave with its exit code."""
        _show_notices()
        try:
            code = super().main(
                args,
                prog_name=prog_name,
                complete_var=complete_var,
                # Typer would print a usage text of several lines and exit by itself; errors become one line
                # here.
                standalone_mode=False,
                windows_expand_args=windows_expand_args,
                **extra,
            )
            # A pipe that was closed early is noticed here, while it can still become an exit code.
            sys.stdout.flush()
        except BrokenPipeError:
            code = _close_quietly()
        except SystemExit as end:
            if not isinstance(end.__context__, BrokenPipeError):
                raise
            code = _close_quietly()  # Rich and Typer leave with 1 where the shell expects 141
        except Exception as error:
            if os.environ.get("COTERIE_DEBUG") == "1":
                raise
            line, code = describe_error(error)
            typed = sys.argv[1:] if args is None else args
            _print_error(f"coterie: {name_option(line, typed, self.options_of(typed))}")
        sys.exit(code if isinstance(code, int) else DONE)


def _show_notices() -> None:
    """Let warnings of the library reach the terminal, once."""
    logger = logging.getLogger("coterie")
    # Commands run several times in one process under test; one handler is enough.
    if not any(isinstance(handler, NoticeHandler) for handler in logger.handlers):
        logger.addHandler(NoticeHandler(logging.WARNING))


def describe_error(error: Exception) -> tuple[str, int]:
    """An error as one line, and its exit code."""
    if isinstance(error, Interrupted):
        return str(error), INTERRUPTED
    if isinstance(error, typer.TyperException):
        return _usage(error), error.exit_code
    if isinstance(error, CoterieError):
        code = next((code for kind, code in CODES.items() if isinstance(error, kind)), FAILED)
        return _one_line(error), code
    if isinstance(error, WriteFailed):
        return str(error), FAILED
    if isinstance(error, OSError):
        where = "standard output: " if error.errno == errno.ENOSPC and error.filename is None else ""
        return where + _one_line(error), FAILED
    kind = type(error).__name__
    return f"unexpected {kind}: {_one_line(error)} (COTERIE_DEBUG=1 shows where; please report it)", FAILED


def name_option(line: str, typed: Sequence[str], options: Collection[str] = ()) -> str:
    """An error whose first word is an argument of the library, with the option for it in that place.

    That is an option that was typed, or else one of the command's `options`; a value that came from a file or
    from `--set name=value` keeps the name it was given by.

    >>> name_option("n_users must be at least 1, got 0", ["run", "--users", "0"])
    '--users must be at least 1, got 0'
    >>> name_option("n_users must be from 1 to 2, got 50", ["run"], ["--users"])
    '--users must be from 1 to 2, got 50'
    """
    name, space, rest = line.partition(" ")
    given = {word.partition("=")[0] for word in typed}
    bare = name.removesuffix(":")
    written = [
        f"--{one.replace('_', '-')}" for one in (bare, bare.removeprefix("n_"), SYNONYMS.get(bare, ""))
    ]
    # The word in front may be a key of `--set` or of the file: then that is the name the user knows.
    known = given if bare in given or "--config" in given else {*given, *options}
    found = next((option for option in written if option in known), None)
    return line if found is None else f"{found}{name[len(bare) :]}{space}{rest}"


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())


def _usage(error: typer.TyperException) -> str:
    """Typer's message, with the command that shows the help page."""
    context = getattr(error, "ctx", None)
    path = getattr(context, "command_path", "coterie")
    message = " ".join(error.format_message().split())
    return f"{message.rstrip('.')} (see `{path} --help`)" if message else f"see `{path} --help`"


def _print_error(line: str) -> None:
    """Print the line on stderr; a closed pipe is no further error."""
    try:
        print(line, file=sys.stderr, flush=True)
    except BrokenPipeError:
        _close_quietly()


def _close_quietly() -> int:
    """Redirect output to the null device after a broken pipe, so that nothing fails at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    # Python flushes both streams at exit and would report the broken pipe once more.
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
    return CLOSED_PIPE
