"""Off-policy estimators as their papers state them: plain loops over events, matrices inverted anew."""

from __future__ import annotations

import numpy as np

from coterie.evaluation import Log
from coterie.policies.protocols import Policy
from coterie.types import Floats


def replay(log: Log, policy: Policy, draws: Floats) -> list[float]:
    """The rewards that count: the policy's arm was logged, and chance keeps the event."""
    least = min(log.propensities.tolist())
    rewards = []
    for t in range(len(log)):
        arms = log.arms(t)
        if policy.recommend(int(log.users[t]), arms) != log.chosen[t]:
            continue
        if draws[t] >= least / log.propensities[t]:
            continue
        policy.update(int(log.users[t]), arms[log.chosen[t]], float(log.rewards[t]))
        rewards.append(float(log.rewards[t]))
    return rewards


def ips(log: Log, policy: Policy) -> tuple[float, float]:
    """IPS and SNIPS of a policy that learns from every event after it was asked."""
    total, weight_total = 0.0, 0.0
    for t in range(len(log)):
        arms = log.arms(t)
        if policy.recommend(int(log.users[t]), arms) == log.chosen[t]:
            total += float(log.rewards[t]) / float(log.propensities[t])
            weight_total += 1.0 / float(log.propensities[t])
        policy.update(int(log.users[t]), arms[log.chosen[t]], float(log.rewards[t]))
    return total / len(log), total / weight_total


def ridge(rows: list[Floats], rewards: list[float], dim: int) -> Floats:
    """(I + XᵀX)⁻¹ Xᵀr."""
    gram, moment = np.eye(dim), np.zeros(dim)
    for row, reward in zip(rows, rewards, strict=True):
        gram += np.outer(row, row)
        moment += reward * row
    return np.asarray(np.linalg.solve(gram, moment), np.float64)


def doubly_robust(log: Log, policy: Policy) -> float:
    """DR with a ridge regression for all, and one for each user on what it left when the event came."""
    d, total = log.dim + 1, 0.0
    rows: list[Floats] = []
    rewards: list[float] = []
    own: dict[int, tuple[list[Floats], list[float]]] = {}
    for t in range(len(log)):
        user, reward = int(log.users[t]), float(log.rewards[t])
        arms = np.hstack([log.arms(t), np.ones((int(log.sizes[t]), 1))])
        mine = own.setdefault(user, ([], []))
        model = ridge(rows, rewards, d) + ridge(*mine, d)
        arm, logged = policy.recommend(user, arms[:, :-1].copy()), arms[log.chosen[t]]
        total += float(arms[arm] @ model)
        if arm == log.chosen[t]:
            total += (reward - float(logged @ model)) / float(log.propensities[t])
        policy.update(user, logged[:-1].copy(), reward)
        rows.append(logged)
        rewards.append(reward)
        mine[0].append(logged)
        mine[1].append(reward - float(logged @ ridge(rows, rewards, d)))
    return total / len(log)
