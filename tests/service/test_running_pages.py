"""Pages about running the service are followed from top to bottom: every command that can run here runs."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from docs.pages import DOCS, ROOT, read
from optional import need_program

ELSEWHERE = ("docker", "kubectl", "systemctl", "cp", "mkdir", "export", "python", "/opt/")
"""Programs that are not run: they need an engine, a cluster or root, or belong to such a command."""
PROGRAM = re.compile(rf"(?:export \w+=\$\()?(coterie|curl|{'|'.join(ELSEWHERE)})(?:\b|(?<=/))")
BLOCK = re.compile(
    r"^```(?P<kind>\w*)\n(?P<code>.*?)^```$|(?P<typed>(?<=\n\n)(?: {4}[^\n]*\n|\n(?= {4}))+)",
    re.MULTILINE | re.DOTALL,
)
END = "the-end-of-a-command"
PAGES = ("run-for-real.md", "coming-from.md")
SERVE = """
stop_service() { if [ -n "${SERVICE:-}" ]; then kill "$SERVICE"; wait "$SERVICE" || true; SERVICE=; fi; }
serve() {
    stop_service
    coterie serve "$@" >> serve.log 2>&1 < /dev/null &
    SERVICE=$!
    for _ in $(seq 600); do
        if curl --silent --fail "localhost:$COTERIE_PORT/health/live" > /dev/null; then return; fi
        sleep 0.1
    done
    cat serve.log; return 1
}
"""
"""`serve` runs `coterie serve` until the next one, and returns when it answers."""


def commands(block: str) -> list[str]:
    """The commands of an indented block: what does not begin with a program belongs to the one before."""
    found: list[str] = []
    for line in re.sub(r"^ {4,8}", "", block, flags=re.MULTILINE).splitlines():
        if PROGRAM.match(line) or not found:
            found.append(line)
        else:
            found[-1] += f"\n{line}"
    return [one.strip() for one in found if one.strip()]


def runs_here(command: str) -> bool:
    program = PROGRAM.match(command)
    assert program is not None, command
    return not program[1].startswith(ELSEWHERE) or command.startswith("export COTERIE_KEY")


class Shell:
    """One shell for all commands of a page: what one of them exports, the next one has."""

    def __init__(self, folder: Path, database: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        added = {"COTERIE_PORT": port, "COTERIE_URL": f"http://localhost:{port}", "PATH": path}
        added |= {"DATABASE_URL": database, "no_proxy": "*", "NO_PROXY": "*", "COLUMNS": "100"}
        self._process = subprocess.Popen(
            ["bash"],
            cwd=folder,
            env={**os.environ, **added, "COTERIE_CACHE": str(folder / "cache")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.run(SERVE)

    def run(self, command: str) -> str:
        """Run a command and expect that it works; the service runs in the background."""
        command = command.replace("localhost:8000", "localhost:$COTERIE_PORT")
        command = re.sub(r"^coterie serve", "serve", command, flags=re.MULTILINE)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\necho\necho {END} $?\n")
        self._process.stdin.flush()
        output = ""
        for line in self._process.stdout:
            if line.startswith(END):
                assert line.split()[1] == "0", (command, output)
                return output
            output += line
        raise AssertionError((command, output))

    def close(self) -> None:
        """End the service and the shell."""
        self.run("stop_service")
        self._process.communicate("exit\n", timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_the_page_can_be_followed(
    name: str, tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_program("curl")
    monkeypatch.chdir(tmp_path)
    shell, names = Shell(tmp_path, postgres), {"__name__": "page"}
    ran = 0
    for block in BLOCK.finditer(read(DOCS / "how-to" / name)):
        if block["code"] is not None and block["kind"] == "python":
            exec(compile(block["code"], name, "exec"), names)
        for command in commands(block["typed"] or ""):
            if runs_here(command):
                shell.run(command)
                ran += 1
    shell.close()
    assert ran >= 5


def test_files_that_other_commands_name_are_there() -> None:
    text = read(DOCS / "how-to" / "run-for-real.md")
    named = {*re.findall(r"(?:--file|--kustomize|cp) (deploy/\S+)", text)}
    named |= {*re.findall(r"`(deploy/[\w./]+)`", text)}
    assert len(named) > 4
    assert {one for one in named if not (ROOT / one).exists()} <= {"deploy/.env"}  # which the reader makes
