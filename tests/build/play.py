"""`python tests/build/play.py`: what a few policies do and know after some rounds, as hashes of all bits."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import numpy as np

import coterie
from coterie import datasets, environments, simulation
from coterie.policies.confidence import Tuned
from coterie.policies.registry import REGISTRY

USERS, DIM, ARMS, ROUNDS = 20, 13, 17, 2_000
"""Sizes that no vector of a processor divides."""

ARGUMENTS: dict[str, dict[str, Any]] = {
    "LinUCBInd": {"beta": 0.3},
    "LinTSInd": {"beta": 0.3},
    "CLUB": {"confidence": Tuned(alpha=0.5, beta=0.1)},
    "SCLUB": {"confidence": Tuned(alpha=0.5, beta=0.1)},
    "PhaseUniCLUB": {"confidence": Tuned(alpha=0.5, beta=0.1, explore=50, phase=20, growth=1)},
    "AutoCLUB": {},
    "HierUCB": {},
    "HierTS": {},
    "GOBLin": {"graph": np.kron(np.eye(USERS // 5), np.ones((5, 5))) - np.eye(USERS), "alpha": 0.2},
}


def fingerprint(name: str) -> str:
    """The hash of a policy's trace and estimates."""
    data = datasets.load("synthetic", dim=DIM, n_users=2 * USERS, n_items=100)
    world = environments.Stochastic(data, n_users=USERS, n_clusters=4, n_arms=ARMS, seed=1)
    policy = REGISTRY[name].make(USERS, DIM, seed=2, **ARGUMENTS[name])
    trace = simulation.simulate(policy, world, ROUNDS, record=50)
    held = (trace.regret, trace.reward, trace.clusters, trace.ari, policy.estimates)
    return sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in held)).hexdigest()


if __name__ == "__main__":
    found = {name: fingerprint(name) for name in ARGUMENTS}
    print(json.dumps({"from": coterie.__file__, "bits": found}))
