"""CLUB, UniCLUB and SACLUB: clusters are the components of a graph over users that loses edges."""

from __future__ import annotations

from coterie.policies.base import LinearBandit, Plan
from coterie.policies.club.components import Components
from coterie.policies.confidence import Confidence, Schedule, choose_confidence, constants_of
from coterie.policies.declarations import CLUSTER_GRID, UNIFORM_GRID, Declaration, Style


class CLUB(LinearBandit):
    """Users share data while a graph connects them (Gentile et al. 2014).

    All users are connected at the start. When the estimates of two users differ too much their edge is cut;
    the connected components are the clusters.

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    confidence : Confidence, optional
        A rule for both constants in place of alpha and beta. `Theory` has the paper's constants; at the
        paper's size they separate two users only after about 10⁶ pulls each. `Tuned(alpha=..., beta=...)` is
        the same as alpha and beta.
    alpha : float, optional
        Factor α of the radius f(T) within which two estimates count as equal, at least 0, in the unit of
        rewards. Set it to 15σ, with σ the standard deviation of the noise: 1.5 for σ = 0.1, 7.5 for clicks. A
        smaller alpha separates users sooner: too small and every user ends up alone, too large and all stay
        together. Try several on a simulation of your size. Give alpha and beta, or `confidence`.
    beta : float, optional
        Factor β of the bonus, at least 0, in the unit of rewards. Set it to σ: 0.1 for σ = 0.1, 0.5 for
        clicks. Smaller exploits more, larger explores more.
    growing : bool, default False
        Whether the bonus also grows with √ln(t + 1), as in much of the literature; then use a smaller beta.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the policy's own random numbers; CLUB draws none.
    items : bool, default False
        Whether to learn how much better each item does than its vector predicts, over all users. `recommend`
        and `update` take ids of items; without them, equal vectors are one item.

    Raises
    ------
    ArgumentError
        If a value is outside its range, or if both or neither of `confidence` and the constants are given.

    Notes
    -----
    Alg. 1 of the paper (Li, Liu, Dai and Lui, ICLR 2025) without its uniform rounds. Each round plays the arm
    of largest

        xᵀθ̂_V + β √(xᵀM_V⁻¹x),   M_V = λI + Σ_{i∈V} Sᵢ,   θ̂_V = M_V⁻¹ Σ_{i∈V} bᵢ

    with V the connected component of the user (Alg. 1, lines 6–9). Then the edges between the user i and
    every ℓ with

        ‖θ̂ᵢ − θ̂_ℓ‖ > f(Tᵢ) + f(T_ℓ)

    are cut (line 12). With `Tuned`, f(T) = α √((1 + ln(1 + T))/(1 + T)); α is the `alpha` of `Tuned`.

    Examples
    --------
    >>> policy = CLUB(n_users=3, dim=2, alpha=1.5, beta=0.1)
    >>> policy.update(0, [1.0, 0.0], 0.8)
    >>> policy.recommend(1, [[1.0, 0.0], [-1.0, 0.0]])
    0
    >>> policy.labels().tolist()
    [0, 0, 0]
    """

    declared = Declaration(
        summary="removes edges of a user graph; clusters are its components",
        use_when="you need a classic baseline",
        style=Style("CLUB", "#E69F00", "o", "--"),
        grid=CLUSTER_GRID,
    )

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        confidence: Confidence | None = None,
        alpha: float | None = None,
        beta: float | None = None,
        growing: bool = False,
        ridge: float = 1.0,
        seed: int = 0,
        items: bool = False,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(
            n_users,
            dim,
            confidence=choose_confidence(self.name, confidence, alpha=alpha, beta=beta),
            growing=growing,
            ridge=ridge,
            seed=seed,
            items=items,
        )

    @staticmethod
    def _plan(
        n_users: int, dim: int, *, confidence: Confidence, growing: bool, ridge: float, seed: int
    ) -> Plan:
        return Plan(Components, constants_of(confidence, n_users, dim, ridge), growing=growing)


class UniCLUB(LinearBandit):
    """CLUB after T0 rounds of uniform exploration (Li et al. 2025, Alg. 1).

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    confidence : Confidence, optional
        A rule for all constants in place of alpha, beta and explore. `Theory(..., gamma=...)` has the paper's
        constants, with a T0 of about 10¹⁰ rounds at the paper's size.
    alpha : float, optional
        Factor α of the radius f(T) within which two estimates count as equal, at least 0. Start with 15σ, as
        for `CLUB`, where σ is the standard deviation of the noise. Give alpha and beta, or `confidence`.
    beta : float, optional
        Factor β of the bonus, at least 0. Start with σ, as for `CLUB`.
    explore : int, optional
        Number T0 of uniform rounds at the start, summed over all users; 2 to 20 times the number of users are
        usual, 0 for none. Needed with alpha and beta.
    growing : bool, default False
        Whether the bonus also grows with √ln(t + 1), as in much of the literature; then use a smaller beta.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the uniform rounds, at least 0.
    items : bool, default False
        Whether to learn how much better each item does than its vector predicts, over all users. `recommend`
        and `update` take ids of items; without them, equal vectors are one item.

    Raises
    ------
    ArgumentError
        If a value is outside its range, if both or neither of `confidence` and the constants are given, or if
        the number of uniform rounds is not given.

    Notes
    -----
    The first T0 rounds play a uniformly random arm (line 3), with (Eq. 3)

        T0 = 16u ln(u/δ) + 4u max{8L²/λ_x ln(ud/δ), 512d/(γ²λ_x) ln(u/δ)}

    or T0 = `explore` with `Tuned`. Edges are cut from the first round on. Afterwards it plays as `CLUB` does.
    A round counts when its reward is absorbed.

    Examples
    --------
    >>> policy = UniCLUB(n_users=3, dim=2, alpha=1.5, beta=0.1, explore=30)
    >>> policy.exploring, policy.exploration.first
    (True, 30)
    """

    declared = Declaration(
        summary="CLUB after uniform exploration",
        use_when="the gap between clusters is known",
        style=Style("UniCLUB", "#D55E00", "o", "-"),
        grid=UNIFORM_GRID,
    )

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        confidence: Confidence | None = None,
        alpha: float | None = None,
        beta: float | None = None,
        explore: int | None = None,
        growing: bool = False,
        ridge: float = 1.0,
        seed: int = 0,
        items: bool = False,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(
            n_users,
            dim,
            confidence=choose_confidence(self.name, confidence, alpha=alpha, beta=beta, explore=explore),
            growing=growing,
            ridge=ridge,
            seed=seed,
            items=items,
        )

    @staticmethod
    def _plan(
        n_users: int, dim: int, *, confidence: Confidence, growing: bool, ridge: float, seed: int
    ) -> Plan:
        schedule = Schedule(first=confidence.exploration(n_users, dim))
        return Plan(Components, constants_of(confidence, n_users, dim, ridge), schedule, growing=growing)


class SACLUB(LinearBandit):
    """CLUB for smoothed adversarial contexts (Li et al. 2025, Sec. 4.2).

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    confidence : Confidence, optional
        A rule for both constants in place of alpha and beta. `SmoothedTheory` has the paper's constants; at
        the paper's size they separate two users only after about 10⁶ pulls each.
    alpha : float, optional
        Factor α of the radius f(T) within which two estimates count as equal, at least 0. Start with 15σ, as
        for `CLUB`, where σ is the standard deviation of the noise. Give alpha and beta, or `confidence`.
    beta : float, optional
        Factor β of the bonus, at least 0. Start with σ, as for `CLUB`.
    growing : bool, default False
        Whether the bonus also grows with √ln(t + 1), as in much of the literature; then use a smaller beta.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the policy's own random numbers; SACLUB draws none.
    items : bool, default False
        Whether to learn how much better each item does than its vector predicts, over all users. `recommend`
        and `update` take ids of items; without them, equal vectors are one item.

    Raises
    ------
    ArgumentError
        If a value is outside its range, or if both or neither of `confidence` and the constants are given.

    Notes
    -----
    CLUB with λ̃_x = c₁σ²/ln K in place of λ_x and 1 + √d R in place of L in f (Sec. 4.2, Theorem 4); that is
    what `SmoothedTheory` computes. With any other `confidence` it is `CLUB`.

    Examples
    --------
    >>> from coterie import SmoothedTheory
    >>> confidence = SmoothedTheory(horizon=1000, sigma=0.3, n_arms=10, truncation=1.0)
    >>> SACLUB(n_users=3, dim=2, confidence=confidence).exploring
    False
    """

    declared = Declaration(
        summary="CLUB for smoothed contexts",
        use_when="arms are chosen adversarially and perturbed by noise",
        style=Style("SACLUB", "#E69F00", "P", "-"),
        grid=CLUSTER_GRID,
        figures=("real",),
    )

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        confidence: Confidence | None = None,
        alpha: float | None = None,
        beta: float | None = None,
        growing: bool = False,
        ridge: float = 1.0,
        seed: int = 0,
        items: bool = False,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(
            n_users,
            dim,
            confidence=choose_confidence(self.name, confidence, alpha=alpha, beta=beta),
            growing=growing,
            ridge=ridge,
            seed=seed,
            items=items,
        )

    @staticmethod
    def _plan(
        n_users: int, dim: int, *, confidence: Confidence, growing: bool, ridge: float, seed: int
    ) -> Plan:
        return Plan(Components, constants_of(confidence, n_users, dim, ridge), growing=growing)
