"""GOB.Lin and GraphUCB: all users in one ridge regression, tied together by a graph's Laplacian."""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

import numpy as np

from coterie.kernels.compiling import compiled
from coterie.kernels.generic import View, labels, learns, views
from coterie.kernels.ridge import Ridge, absorb, accumulate, dot, invert
from coterie.types import Floats, Ints


class Joint(NamedTuple):
    """V⁻¹ as blocks (user, i, user, j), Σ rφ and θ̂ of all users; V = penalty ⊗ I + Σ weight φφᵀ."""

    inverse: Floats
    moment: Floats
    estimate: Floats
    weights: Floats
    pulls: Ints
    epochs: Ints
    clock: Ints
    ridge: float
    alpha: float
    source: bool


class Laplacian(NamedTuple):
    """A joint regression, and each user's own (λI + Sᵢ)⁻¹ and S for the width of GraphUCB."""

    joint: Joint
    users: Ridge
    grams: Floats
    logdets: Floats
    walk: Floats
    epochs: Ints
    clock: Ints
    ridge: float
    alpha: float
    source: bool
    delta: float


@compiled
def absorb_joint(joint: Joint, user: int, x: Floats, reward: float) -> None:
    """One rank-one update of the (ud)×(ud) inverse, in place."""
    n, d = joint.estimate.shape
    weight = joint.weights[user]
    gain = np.zeros((n, d))
    for k in range(d):
        scale = x[k]
        for other in range(n):
            for i in range(d):
                gain[other, i] += joint.inverse[user, k, other, i] * scale
    shrink = weight / (1.0 + weight * dot(x, gain[user]))
    step = (reward - dot(x, joint.estimate[user])) * shrink
    flat = gain.reshape(n * d)
    square = joint.inverse.reshape(n * d, n * d)
    for k in range(n * d):
        scale = flat[k] * shrink
        for i in range(n * d):
            square[k, i] -= scale * flat[i]
    for other in range(n):
        for i in range(d):
            joint.estimate[other, i] += step * gain[other, i]
    for i in range(d):
        joint.moment[user, i] += reward * x[i]
    joint.pulls[user] += 1


@views(Joint)
def view_joint(state: Joint, user: int) -> View:
    """The user's block; with the bonus of the source β² = α² ln(t + 1) (Cesa-Bianchi et al. 2013, Fig. 2)."""
    block = np.ascontiguousarray(state.inverse[user, :, user, :])
    beta = state.alpha
    if state.source:
        beta *= sqrt(log(state.clock[0] + 2.0))
    return View(state.estimate[user], block, beta, user, state.ridge, np.inf)


@learns(Joint)
def learn_joint(state: Joint, user: int, x: Floats, reward: float) -> None:
    """Absorb for all users at once; the graph is given and never changes."""
    absorb_joint(state, user, x, reward)
    state.clock[0] += 1


@compiled
def precision(state: Laplacian, user: int) -> Floats:
    """Λᵢ⁻¹, Λᵢ = Aᵢ + 2λℒᵢᵢI + λ²Σⱼ ℒᵢⱼ²Aⱼ⁻¹, Aⱼ = Sⱼ + λI   (Yang et al. 2020)."""
    matrix: Floats = state.grams[user].copy()
    for i in range(matrix.shape[0]):
        matrix[i, i] += state.ridge + 2.0 * state.ridge * state.walk[user, user]
    for other in range(state.walk.shape[0]):
        tie = (state.ridge * state.walk[user, other]) ** 2
        if other != user and tie > 0.0:
            matrix += tie * state.users.inverse[other]
    invert(matrix)
    return matrix


@compiled
def multiplier(state: Laplacian, user: int) -> float:
    """α√(2 ln(|Aᵢ|^½ |λI|^-½ / δ)) + √λ‖Σⱼ ℒᵢⱼθ̂ⱼ‖   (Yang et al. 2020)."""
    drift = np.zeros(state.users.estimate.shape[1])
    for other in range(state.walk.shape[0]):
        drift += state.walk[user, other] * state.users.estimate[other]
    noise = sqrt(2.0 * (0.5 * state.logdets[user] - log(state.delta)))
    return state.alpha * noise + sqrt(state.ridge) * sqrt(dot(drift, drift))


@views(Laplacian)
def view_laplacian(state: Laplacian, user: int) -> View:
    """The user's part of the joint estimate, with the width ‖x‖ in Λᵢ⁻¹, which need not shrink."""
    beta = multiplier(state, user) if state.source else state.alpha
    return View(state.joint.estimate[user], precision(state, user), beta, -1, state.ridge, np.inf)


@learns(Laplacian)
def learn_laplacian(state: Laplacian, user: int, x: Floats, reward: float) -> None:
    """Absorb for all users at once, and for the user alone."""
    absorb_joint(state.joint, user, x, reward)
    state.logdets[user] += log(1.0 + absorb(state.users, user, x, reward, np.empty(x.shape[0])))
    accumulate(state.grams[user], x)
    state.clock[0] += 1


@labels(Joint)
def label_joint(state: Joint, out: Ints) -> None:
    """Nothing is clustered: each user by itself."""
    out[:] = np.arange(out.shape[0])


@labels(Laplacian)
def label_laplacian(state: Laplacian, out: Ints) -> None:
    """Nothing is clustered: each user by itself."""
    out[:] = np.arange(out.shape[0])
