"""SCLUB, UniSCLUB and SASCLUB: clusters are sets of users that split and merge."""

from __future__ import annotations

from coterie.policies.base import LinearBandit, Plan
from coterie.policies.confidence import FOREVER, Confidence, Schedule, choose_confidence, constants_of
from coterie.policies.declarations import CLUSTER_GRID, UNIFORM_GRID, Declaration, Style
from coterie.policies.sclub.split_merge import SplitMerge
from coterie.validation import positive


class SCLUB(LinearBandit):
    """Clusters are sets that split and merge (Li et al. 2019).

    All users start in one set. A user whose estimate differs too much from a member's is split off; two sets
    whose estimates are close are merged again.

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
        Seed of the policy's own random numbers; SCLUB draws none.
    items : bool, default False
        Whether to learn how much better each item does than its vector predicts, over all users. `recommend`
        and `update` take ids of items; without them, equal vectors are one item.
    arrivals : float, optional
        Factor α_p of the test on arrival frequencies, positive: users who come at different rates are
        separated too. Leave it None (no test) if all users come about equally often; start with 2 otherwise,
        and smaller separates sooner.

    Raises
    ------
    ArgumentError
        If a value is outside its range, or if both or neither of `confidence` and the constants are given.

    Notes
    -----
    Alg. 3 of the paper (Li, Liu, Dai and Lui, ICLR 2025) without its uniform rounds. Each round plays the arm
    of largest xᵀθ̂_V + β √(xᵀM_V⁻¹x), with V the user's cluster (lines 6–7). The user i is split off V if
    (line 13)

        ‖θ̂ᵢ − θ̂_ℓ‖ > f(Tᵢ) + f(T_ℓ)   for some ℓ in V

    and two clusters whose members were all checked in this phase are merged if ‖θ̂¹ − θ̂²‖ < f(T¹) + f(T²)
    (line 15). With `Tuned`, f(T) = α √((1 + ln(1 + T))/(1 + T)); α is the `alpha` of `Tuned`.

    Examples
    --------
    >>> policy = SCLUB(n_users=3, dim=2, alpha=1.5, beta=0.1)
    >>> policy.cluster_of(1).tolist()
    [0, 1, 2]
    """

    declared = Declaration(
        summary="sets of users that split and merge",
        use_when="users arrive unevenly",
        style=Style("SCLUB", "#56B4E9", "^", "--"),
        grid=CLUSTER_GRID,
        cost=25.0,
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
        arrivals: float | None = None,
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
            arrivals=arrivals,
        )

    @staticmethod
    def _plan(
        n_users: int,
        dim: int,
        *,
        confidence: Confidence,
        growing: bool,
        ridge: float,
        seed: int,
        arrivals: float | None,
    ) -> Plan:
        alpha_p = 0.0 if arrivals is None else positive("arrivals", arrivals)
        return Plan(
            SplitMerge,
            {**constants_of(confidence, n_users, dim, ridge), "arrivals": alpha_p},
            growing=growing,
        )


class UniSCLUB(LinearBandit):
    """SCLUB after 2·T0 rounds of uniform exploration (Li et al. 2025, Alg. 3).

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
        for `SCLUB`, where σ is the standard deviation of the noise. Give alpha and beta, or `confidence`.
    beta : float, optional
        Factor β of the bonus, at least 0. Start with σ, as for `SCLUB`.
    explore : int, optional
        Half the number of uniform rounds at the start, in rounds of all users together: the policy explores
        for 2·T0, with T0 = explore. 2 to 20 times the number of users are usual, 0 for none. Needed with
        alpha and beta.
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
    The first 2·T0 rounds play a uniformly random arm (Alg. 3, line 9; Lemma 6), with T0 as for `UniCLUB`.
    Sets split and merge from the first round on. Afterwards it plays as `SCLUB` does.

    Examples
    --------
    >>> policy = UniSCLUB(n_users=3, dim=2, alpha=1.5, beta=0.1, explore=15)
    >>> policy.exploring, policy.exploration.first
    (True, 30)
    """

    declared = Declaration(
        summary="SCLUB after uniform exploration",
        use_when="the gap is known, and users arrive unevenly",
        style=Style("UniSCLUB", "#0072B2", "^", "-"),
        grid=UNIFORM_GRID,
        cost=25.0,
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
        length = min(2 * confidence.exploration(n_users, dim), FOREVER)
        settings = {**constants_of(confidence, n_users, dim, ridge), "arrivals": 0.0}
        return Plan(SplitMerge, settings, Schedule(first=length), growing=growing)


class SASCLUB(LinearBandit):
    """SCLUB for smoothed adversarial contexts (Li et al. 2025, Sec. 4.2).

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
        for `SCLUB`, where σ is the standard deviation of the noise. Give alpha and beta, or `confidence`.
    beta : float, optional
        Factor β of the bonus, at least 0. Start with σ, as for `SCLUB`.
    growing : bool, default False
        Whether the bonus also grows with √ln(t + 1), as in much of the literature; then use a smaller beta.
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the policy's own random numbers; SASCLUB draws none.
    items : bool, default False
        Whether to learn how much better each item does than its vector predicts, over all users. `recommend`
        and `update` take ids of items; without them, equal vectors are one item.

    Raises
    ------
    ArgumentError
        If a value is outside its range, or if both or neither of `confidence` and the constants are given.

    Notes
    -----
    SCLUB with λ̃_x = c₁σ²/ln K in place of λ_x and 1 + √d R in place of L in f (Sec. 4.2, Theorem 4); that is
    what `SmoothedTheory` computes. With any other `confidence` it is `SCLUB` without the test on arrivals.

    Examples
    --------
    >>> from coterie import SmoothedTheory
    >>> confidence = SmoothedTheory(horizon=1000, sigma=0.3, n_arms=10, truncation=1.0)
    >>> SASCLUB(n_users=3, dim=2, confidence=confidence).exploring
    False
    """

    declared = Declaration(
        summary="SCLUB for smoothed contexts",
        use_when="arms are as for SACLUB, and users arrive unevenly",
        style=Style("SASCLUB", "#0072B2", "X", "-"),
        grid=CLUSTER_GRID,
        cost=25.0,
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
        return Plan(
            SplitMerge, {**constants_of(confidence, n_users, dim, ridge), "arrivals": 0.0}, growing=growing
        )
