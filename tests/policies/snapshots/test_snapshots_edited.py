"""No edit of a snapshot crashes: it is refused by one sentence, or the policy plays on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from contracts.examples import ALL

pytestmark = pytest.mark.slow

TESTS = Path(__file__).resolve().parents[2]
REFUSED = ("missing", "longer", "as text", "nan", "inf", "six", "None", "[6]")
"""Ends of the names of edits that no policy can live with."""


@pytest.mark.parametrize("example", ALL)
def test_every_edit_is_refused_or_harmless(example: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "policies.snapshots.snapshot_edits", example, str(tmp_path)]
    ran = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, timeout=600, check=False)
    lines = ran.stdout.splitlines()
    assert ran.returncode == 0, f"{lines[-1:]}: {ran.stderr[-2000:]}"
    found = dict(line.split("\t") for line in lines)
    assert len(found) > 50
    for edit, became in found.items():
        assert became == "played on" or became.startswith("refused: "), edit
        assert len(became) < 400, edit
        assert "\\n" not in became, edit
        if edit.endswith(REFUSED) or edit == "rounds = -1":
            assert became.startswith("refused: "), edit
