"""`python -m benchmarks.startup`: the cost of a policy until its first decision, in a fresh process.

CPU seconds, user and system, of importing the library, making a policy, one `recommend` and one `update`,
from an installed wheel; the least of five processes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
ALLOWED = 0.5
REPEATS = 5

LIST = """
import json
from coterie.policies.registry import REGISTRY
print(json.dumps([(e.name, e.make.__module__, e.parameters) for e in REGISTRY.values()]))
"""
FIRST_DECISION = """
import numpy as np
import coterie
from {module} import {name}
arms = np.random.default_rng(0).normal(size=(20, 8))
policy = {name}(50, 8, {arguments})
arm = policy.recommend(3, arms)
policy.update(3, arms[arm], 1.0)
"""
ARGUMENTS = {
    "confidence": "coterie.Tuned(alpha=1.5, beta=0.1, explore=500, phase=200)",
    "labels": "np.arange(50) % 5",
    "graph": "np.ones((50, 50)) - np.eye(50)",
}
"""What a policy that has the parameter is made with; everything else has a default."""


class Result(NamedTuple):
    """CPU seconds of a fresh process."""

    name: str
    seconds: float


def seconds_of(python: Path, code: str) -> float:
    """The least CPU time of a few processes that run this code."""
    spent = []
    for _ in range(REPEATS):
        before = getrusage(RUSAGE_CHILDREN)
        subprocess.run([python, "-I", "-c", code], check=True)
        after = getrusage(RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(spent)


def measure(python: Path) -> Iterator[Result]:
    """What every policy costs in the environment of an interpreter; Python and NumPy alone come first."""
    yield Result("Python alone", seconds_of(python, "pass"))
    yield Result("import numpy", seconds_of(python, "import numpy"))
    listed = subprocess.run([python, "-I", "-c", LIST], check=True, capture_output=True, encoding="utf-8")
    for name, module, parameters in json.loads(listed.stdout):
        given = ", ".join(f"{key}={value}" for key, value in ARGUMENTS.items() if key in parameters)
        code = FIRST_DECISION.format(name=name, module=module, arguments=given)
        yield Result(name, seconds_of(python, code))


def install(folder: Path) -> Path:
    """The interpreter of a new environment with a wheel of this checkout."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    quiet = ["-m", "pip", "--quiet", "--disable-pip-version-check"]
    where = ["--wheel-dir", str(folder), str(ROOT)]
    subprocess.run([sys.executable, *quiet, "wheel", "--no-build-isolation", "--no-deps", *where], check=True)
    subprocess.run([python, *quiet, "install", *folder.glob("*.whl")], check=True)
    return python


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=(__doc__ or "").strip())
    parser.add_argument(
        "--python", type=Path, help="an interpreter with coterie installed; none: one is made"
    )
    given: Path | None = parser.parse_args().python
    with TemporaryDirectory(prefix="coterie-startup-") as folder:
        python = given or install(Path(folder))
        print(f"CPU seconds before the first decision is learned from; least of {REPEATS} processes\n")
        for name, seconds in measure(python):
            verdict = "yes" if seconds <= ALLOWED else "NO"
            print(f"  {name:<14}{seconds:6.2f}, wanted at most {ALLOWED} ({verdict})")


if __name__ == "__main__":
    main()
