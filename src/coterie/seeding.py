"""The only source of randomness: independent, named streams grown from one seed."""

from __future__ import annotations

from hashlib import sha256

import numpy as np

from coterie.validation import whole


def check_seed(seed: int) -> int:
    """The seed as a plain int, or an error that says what would do."""
    return whole("seed", seed, 0)


def stream(seed: int, *names: str) -> np.random.Generator:
    """A generator that depends on the seed and the names alone.

    Streams of different names are independent, so that changing what a policy draws
    does not change the world it meets.

    >>> float(stream(7, "policy").random()) == float(stream(7, "policy").random())
    True
    """
    key = sha256("\0".join(names).encode()).digest()[:16]
    words = [int.from_bytes(key[i : i + 4], "little") for i in range(0, 16, 4)]
    sequence = np.random.SeedSequence(check_seed(seed), spawn_key=tuple(words))
    return np.random.Generator(np.random.PCG64(sequence))
