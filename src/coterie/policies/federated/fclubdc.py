"""FCLUBDC: clusters of users on several servers, with delayed communication."""

from __future__ import annotations

from math import log
from typing import NamedTuple

from coterie.errors import ArgumentError
from coterie.policies.base import LinearBandit, Plan
from coterie.policies.confidence import Confidence, choose_confidence
from coterie.policies.declarations import CLUSTER_GRID, Declaration, Style
from coterie.policies.federated.servers import Servers
from coterie.validation import number, positive, whole

MOST_SERVERS = 2**20
"""More servers than anybody has."""


class Communication(NamedTuple):
    """What has been sent between servers so far.

    Parameters
    ----------
    messages : int
        Number of messages, in both directions.
    numbers : int
        How many numbers they held: d(d + 1)/2 + d + 1 each.

    Examples
    --------
    >>> import coterie
    >>> coterie.FCLUBDC(4, 2, alpha=1.0, beta=0.1).communication
    Communication(messages=0, numbers=0)
    """

    messages: int
    numbers: int


class FCLUBDC(LinearBandit):
    """CLUB for users on several servers that rarely talk (Liu et al. 2022).

    Each server clusters its own users; a global server joins clusters of different servers that are close.
    Clusters change only at the start of phases of doubling length. In between, a cluster sends what it has
    learnt, and gets what others have, only when that makes estimates much more certain.

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    n_servers : int, default 5
        Number of servers L, at least 1; user i is on server i mod L.
    confidence : Confidence, optional
        A rule for both constants in place of alpha and beta, such as `Theory(...)`; `Tuned(alpha=...,
        beta=...)` is the same as alpha and beta.
    alpha : float, optional
        Factor α of the radius f(T) within which two estimates count as equal, at least 0. Start with 15σ, as
        for `CLUB`. Give alpha and beta, or `confidence`.
    beta : float, optional
        Factor β of the bonus, at least 0. Start with σ, the standard deviation of the noise.
    merging : float, default 1.0
        What the radius is multiplied by where clusters of different servers are compared, positive. The
        source has 4/3.
    upload : float, default 1.01
        A cluster sends its rewards when they have multiplied the determinant of λI + S by this, above 1.
        Larger sends less often.
    download : float, default 1.01
        A cluster gets the rewards of others when those have multiplied the determinant by this, above 1.
    growing : bool, default False
        Whether the bonus also grows with √ln(t + 1), as in much of the literature.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the policy's random numbers, at least 0; FCLUBDC draws none.

    Raises
    ------
    ArgumentError
        If a value is outside its range, or if both or neither of `confidence` and the constants are given.

    Notes
    -----
    Phase s has 2ˢ rounds, s = 1, 2, …. At its start every server removes the edges between its users with
    ‖θ̂ᵢ − θ̂_j‖ > f(Tᵢ) + f(T_j), components are its clusters, and clusters of all servers with
    ‖θ̂₁ − θ̂₂‖ < m(f(T₁) + f(T₂)) are joined, where m is `merging`. All servers are simulated in one process;
    `communication` counts what they would send.

    References
    ----------
    Liu, Zhao, Yu, Li and Lui, *Federated online clustering of bandits*, UAI 2022.

    Examples
    --------
    >>> policy = FCLUBDC(n_users=4, dim=1, n_servers=2, alpha=0.5, beta=0.1)
    >>> for _ in range(9):
    ...     for user, reward in enumerate((1.0, 1.0, -1.0, -1.0)):
    ...         policy.update(user, [1.0], reward)
    >>> policy.labels().tolist()
    [0, 0, 1, 1]
    >>> policy.communication.messages > 0
    True
    """

    declared = Declaration(
        summary="CLUB on several servers: clusters change at doubling times, messages are counted",
        use_when="users are on servers that should rarely talk, or you count communication",
        style=Style("FCLUB_DC", "#AA4499", "h", "-"),
        grid=CLUSTER_GRID,
        cost=60.0,
        figures=("field",),
    )

    _learner: Servers

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        n_servers: int = 5,
        confidence: Confidence | None = None,
        alpha: float | None = None,
        beta: float | None = None,
        merging: float = 1.0,
        upload: float = 1.01,
        download: float = 1.01,
        growing: bool = False,
        ridge: float = 1.0,
        seed: int = 0,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(
            n_users,
            dim,
            n_servers=n_servers,
            confidence=choose_confidence(self.name, confidence, alpha=alpha, beta=beta),
            merging=merging,
            upload=upload,
            download=download,
            growing=growing,
            ridge=ridge,
            seed=seed,
        )

    @staticmethod
    def _plan(
        n_users: int,
        dim: int,
        *,
        n_servers: int,
        confidence: Confidence,
        merging: float,
        upload: float,
        download: float,
        growing: bool,
        ridge: float,
        seed: int,
    ) -> Plan:
        settings = {
            "n_servers": whole("n_servers", n_servers, 1, MOST_SERVERS),
            "beta": confidence.bonus(dim, ridge),
            "shape": confidence.shape(n_users, dim, ridge),
            "merging": positive("merging", merging),
            "upload": _logarithm("upload", upload),
            "download": _logarithm("download", download),
        }
        return Plan(Servers, settings, growing=growing)

    @property
    def communication(self) -> Communication:
        """Messages between servers so far, and how many numbers they held."""
        with self._lock:
            return Communication(self._learner.messages, self._learner.numbers_sent)


def _logarithm(name: str, ratio: float) -> float:
    """The logarithm of a ratio of determinants."""
    if not 1 < number(name, ratio):
        raise ArgumentError(f"{name} must be above 1, got {ratio!r}")
    return log(ratio)
