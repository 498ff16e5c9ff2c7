"""`lint-imports` on the sources: an editable install shows a view of them without packages."""

import sys
from pathlib import Path

from importlinter.cli import lint_imports_command

sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__]
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
lint_imports_command()
