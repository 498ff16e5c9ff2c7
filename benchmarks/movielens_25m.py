"""How long a file of MovieLens-25M's size takes to load, and how much memory.

    python benchmarks/movielens_25m.py [--rows 25000095] [--zip]

The file is generated in a temporary folder (650 MB) with the users, films and schema of the real one. It is
written and loaded in processes of their own, so that the peak memory is that of loading alone; the claim is
under a minute and under 2 GB.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROWS, USERS, FILMS = 25_000_095, 162_541, 59_047
SECONDS, GIGABYTES = 60.0, 2.0


def generate(path: Path, rows: int) -> None:
    import numpy as np
    import polars as pl

    from coterie.seeding import stream

    rng = stream(0, "benchmarks", "movielens-25m")
    users = np.sort((USERS * rng.random(rows) ** 2).astype(np.int32)) + 1
    films = (FILMS * rng.random(rows) ** 4).astype(np.int32) + 1
    ratings = rng.integers(1, 11, rows, dtype=np.int8).astype(np.float32) / 2
    times = rng.integers(789_652_009, 1_574_327_703, rows)
    table = pl.DataFrame({"userId": users, "movieId": films, "rating": ratings, "timestamp": times})
    table.write_csv(path, float_precision=1)


def zipped(path: Path) -> Path:
    import zipfile

    archive = path.with_name("ml-25m.zip")
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        file.write(path, "ml-25m/ratings.csv")
    return archive


def load(path: Path) -> None:
    import coterie.datasets

    for title in ("first", "cached"):
        start = time.perf_counter()
        data = coterie.datasets.load("movielens", path)
        print(f"{title:>8}: {time.perf_counter() - start:6.2f} s, peak {peak():.2f} GB", flush=True)
        if title == "first" and (time.perf_counter() - start > SECONDS or peak() > GIGABYTES):
            raise SystemExit(f"slower than {SECONDS:.0f} s or larger than {GIGABYTES:.0f} GB")
    print(data.provenance.describe())


def peak() -> float:
    """The largest resident memory of this process, in GB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--zip", action="store_true", help="load the zip instead of the csv inside it")
    parser.add_argument("--stage", choices=("generate", "load"), help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stage == "generate":
        generate(options.path, options.rows)
    elif options.stage == "load":
        load(options.path)
    else:
        run(options.rows, options.zip)


def run(rows: int, as_zip: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ratings.csv"
        _stage("generate", path, "--rows", str(rows))
        print(f"{rows:,} rows, {path.stat().st_size / 1e6:,.0f} MB, {os.cpu_count()} cores", flush=True)
        _stage("load", zipped(path) if as_zip else path)


def _stage(stage: str, path: Path, *more: str) -> None:
    """One stage in a process of its own, with a cache that is thrown away."""
    command = [sys.executable, __file__, "--stage", stage, "--path", str(path), *more]
    subprocess.run(command, check=True, env={**os.environ, "COTERIE_CACHE": str(path.parent / "cache")})


if __name__ == "__main__":
    main()
