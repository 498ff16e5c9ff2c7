from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from coterie.experiments.render import FORMATS, draw
from experiments.test_claims import entry, panel

PANELS = [panel(entry("CLUB", 1, 2), entry("SCLUB", 2, 3))]


def test_a_picture_that_is_interrupted_leaves_the_old_one_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = {path: path.read_bytes() for path in draw("curves", "Regret", PANELS, tmp_path, "fig")}
    assert [path.name for path in old] == [f"fig.{kind}" for kind in FORMATS]

    def interrupted(canvas: Figure, file: Any, **settings: Any) -> None:
        with file.open("wb") if isinstance(file, Path) else file as half:
            half.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(Figure, "savefig", interrupted)
    with pytest.raises(KeyboardInterrupt):
        draw("curves", "Regret", PANELS, tmp_path, "fig")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == old
