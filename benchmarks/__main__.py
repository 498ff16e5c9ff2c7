"""`python -m benchmarks`: all of them, as a table with what was wanted."""

from __future__ import annotations

from benchmarks import auto, crowd, joint, rounds


def verdict(holds: bool) -> str:
    return "yes" if holds else "NO"


def main() -> None:
    print("One thread; microseconds a round; best of three.\n")
    result = crowd.measure()
    print("CLUB among 10,000 users, complete graph (d = 50, K = 100)")
    ratio = result.ours / result.floor
    print(f"  round {result.ours:.0f}, bare distance check {result.floor:.0f}: {ratio:.2f} ×, ", end="")
    print("wanted at most 3 × ", end="")
    print(f"({verdict(ratio <= result.allowed)}); peak memory {result.gigabytes:.2f} GB, wanted below 2\n")
    print("Simulated rounds: d = 50, K = 100 of 5,000, u = 50, 10 clusters, T = 20,000")
    print(
        f"  {'policy':<14}{'ours':>8}{'NumPy':>9}{'ratio':>8}{'wanted':>8}{'':>5}"
        f"{'steps':>8}{'× ours':>8}{'wanted':>8}"
    )
    for r in rounds.measure():
        faster, slower = r.plain / r.ours, r.steps / r.ours
        print(
            f"  {r.name:<14}{r.ours:8.2f}{r.plain:9.1f}{faster:8.2f}{r.wanted:8.0f}"
            f"{verdict(faster >= r.wanted):>5}"
            f"{r.steps:8.2f}{slower:8.2f}{3:8d}{verdict(slower <= 3):>5}"
        )
    print("\nAutoCLUB beside UniCLUB in the same world, and among more users (100 rounds each)")
    for b in auto.beside():
        share = b.auto / b.uni
        print(f"  {b.world:<14}{b.auto:8.2f}, UniCLUB {b.uni:.2f}: {share:.2f} ×, ", end="")
        print(f"wanted at most {b.allowed:.0f} × ({verdict(share <= b.allowed)})")
    for c in auto.crowds():
        print(f"  {c.users:>4} users    {c.auto:8.2f}, linear growth {c.allowed:.2f} ", end="")
        print(f"({verdict(c.auto <= c.allowed)})")
    print("\nGraph regularisation: u = 20, K = 20, d = 50")
    for j in joint.measure():
        share = j.ours / j.floor
        print(f"  {j.name:<14}{j.ours:8.0f}, one rank-one update of 1,000 × 1,000 {j.floor:.0f}: ", end="")
        print(f"{share:.2f} ×, wanted at most {j.allowed:.0f} × ({verdict(share <= j.allowed)})")


if __name__ == "__main__":
    main()
