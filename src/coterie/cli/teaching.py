"""What stands below every help page: examples, and what the exit codes mean."""

from __future__ import annotations

CODES = "Exit codes: 0 done, 1 something failed, 2 wrong use, 3 data missing, 130 interrupted."


def examples(*lines: tuple[str, str]) -> str:
    """The foot of a help page: each example is a sentence and the command that does it."""
    shown = [f"[dim]# {sentence}[/dim]\n\n[cyan]{_escaped(command)}[/cyan]" for sentence, command in lines]
    return "\n\n".join(["[bold]Examples[/bold]", *shown, f"[dim]{CODES}[/dim]"])


def _escaped(command: str) -> str:
    return command.replace("[", "\\[")
