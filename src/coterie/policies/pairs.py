"""Duels: two arms are shown, and the one that is preferred is all that is learnt."""

from __future__ import annotations

from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike

from coterie.policies.inspected import Inspected
from coterie.policies.plans import too_long
from coterie.types import Floats
from coterie.validation import arm_vector, arms_matrix, finite, user_index


class Paired(Inspected):
    """A policy that can show two arms; `LinearBandit` adds single arms and lists.

    The difference z of two arms is one sample of the policy, whatever it pools: with P(first preferred) near
    ½ + zᵀθ/4 the outcome is linear in z.
    """

    def recommend_pair(self, user: int, arms: ArrayLike) -> tuple[int, int]:
        """Choose two arms for a user: the best by estimate, and its strongest challenger.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        arms : array_like of shape (K, dim)
            Vectors of the arms on offer, one a row.

        Returns
        -------
        tuple of int
            Row numbers of x₁, the arm of largest mean, and of x₂, that of largest mean plus bonus of x₂ − x₁;
            both may be the same. Ties go to the lower row number. In uniform rounds, two arms at random.
        """
        user, matrix = user_index(user, self._n_users), arms_matrix(arms, self._dim)
        with self._lock:
            if not self._learner.accepts(matrix):
                raise self._too_long("arms", matrix)
            if len(matrix) > 1 and self._learner.exploring:
                drawn = self._learner.recommend_list(user, matrix, 2)
                return (0, 0) if drawn is None else (int(drawn[0]), int(drawn[1]))
            mean, _ = self._learner.scores(user, matrix)
            best = int(np.argmax(mean))
            apart = matrix - matrix[best]
            if not self._learner.accepts(apart):
                raise self._too_long("differences of arms", apart)
            mean, width = self._learner.scores(user, apart)
        return best, int(np.argmax(mean + width))

    def update_pair(self, user: int, winner: ArrayLike, loser: ArrayLike) -> None:
        """Absorb which of two arms a user preferred; the answer may come late and in any order.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        winner : array_like of shape (dim,)
            Vector of the preferred arm.
        loser : array_like of shape (dim,)
            Vector of the other arm. If both are equal nothing is learnt, but the duel counts.
        """
        user = user_index(user, self._n_users)
        better = finite("winner", arm_vector(winner, self._dim, name="winner"))
        worse = finite("loser", arm_vector(loser, self._dim, name="loser"))
        z, share = oriented(better - worse)
        lost, won = self._learner.DUEL_REWARDS
        with self._lock:
            absorbed = self._learner.update(user, z, lost + share * (won - lost))
        if not absorbed:
            raise too_long("winner − loser", self._arguments["ridge"])


def oriented(apart: Floats) -> tuple[Floats, float]:
    """Winner − loser and 1, or its negative and 0: a difference of arms and whether its first arm won.

    Which of two arms is taken for the first must not depend on who wins: a policy with an intercept would
    learn that the first always does. A hash of the absolute values decides; it is the same for z and −z.

    >>> oriented(np.array([0.0, -2.0])), oriented(np.array([0.0, 2.0])), oriented(np.zeros(2))
    ((array([ 0., -2.]), 1.0), (array([ 0., -2.]), 0.0), (array([0., 0.]), 0.5))
    """
    different = np.flatnonzero(apart)
    if not len(different):
        return np.zeros(len(apart)), 0.5
    swapped = crc32(np.abs(apart).tobytes()) % 2 == 1
    if (apart[different[0]] > 0) != swapped:
        return np.ascontiguousarray(apart), 1.0
    return 0.0 - apart, 0.0
