"""`python -m benchmarks`: a table for each topic, with what was wanted."""

from __future__ import annotations

from itertools import chain
from time import perf_counter

from benchmarks import crowds, field, floors, hier, million, robust, rounds, scale, warm


def main() -> None:
    began = perf_counter()
    print("One thread; microseconds a round without drawing it, the best of two or three runs.", flush=True)
    for table in chain(
        million.tables(),
        crowds.tables(),
        rounds.tables(),
        hier.tables(),
        floors.tables(),
        field.tables(),
        robust.tables(),
        warm.tables(),
        scale.tables(),
    ):  # the largest first: their peak memory
        table.show()
    print(f"\n{perf_counter() - began:.0f} s in all")


if __name__ == "__main__":
    main()
