"""The base class of all policies: decisions, learning and inspection around a compiled learner."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from os import PathLike
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, TypeVar, overload
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike

from coterie.errors import ArgumentError
from coterie.extras import need
from coterie.policies.array_files import ByteProgress
from coterie.policies.catalogue.item_catalogue import Catalogue, Only
from coterie.policies.catalogue.search import best_rows
from coterie.policies.confidence import Confidence, Schedule
from coterie.policies.declarations import Declaration
from coterie.policies.kernel.effects import Effects
from coterie.policies.kernel.learner import LONGEST2, Learner
from coterie.policies.memory_use import MemoryUse, check_graph, memory_use
from coterie.policies.snapshot_format import captured, revived, save
from coterie.seeding import check_seed, stream
from coterie.types import Floats, Ints, Scores
from coterie.validation import (
    arm_vector,
    arms_matrix,
    counted,
    finite,
    flag,
    item_id,
    item_ids,
    label_vector,
    number,
    positive,
    reals,
    shown,
    user_graph,
    user_index,
    users_array,
    whole,
)

if TYPE_CHECKING:
    import polars as pl

A = TypeVar("A", bound=np.ndarray[Any, Any])
Self = TypeVar("Self", bound="LinearBandit")

MOST_USERS = 2**31
"""More users than any memory holds; keeps sizes inside 64 bits."""
MOST_DIM = 2**20
"""A longer vector would need a matrix of terabytes."""
NO_ITEM = -1
"""In the place of an id: a reward that tells nothing of any item."""
Shapes: TypeAlias = dict[str, tuple[tuple[int, ...], np.dtype[Any]]]
"""The shape and type of each array by name."""


class Plan(NamedTuple):
    """How the compiled learner of a policy is made: class, settings, and when arms are played uniformly.

    `growing` says whether the bonus grows with time; scores above `limit` are clipped; `items` says whether
    effects of items are learnt.
    """

    learner: type[Learner]
    settings: dict[str, Any]
    schedule: Schedule = Schedule()
    growing: bool = False
    limit: float = inf
    items: bool = False

    def number_names(self) -> set[str]:
        """Names of the single numbers of the learner's state."""
        effects = (part + name for part in self._parts() for name in Effects.NUMBERS)
        return {*self.learner.number_names(), *effects}

    def shapes(self, n_users: int, dim: int, numbers: dict[str, Any]) -> Shapes:
        """Shape and type of every array of a learner whose state has these numbers."""
        found: Shapes = dict(self.learner.shapes(n_users, dim, numbers, **self.settings))
        for part in self._parts():
            said = {name: numbers[part + name] for name in Effects.NUMBERS}
            found |= {part + name: shape for name, shape in Effects.shapes(1, 1, said).items()}
        return found

    def _parts(self) -> tuple[str, ...]:
        """What the names of the arrays and numbers of effects begin with."""
        return self.learner.EFFECTS if self.items else ()

    def build(self, n_users: int, dim: int, ridge: float, generator: np.random.Generator) -> Learner:
        """Build the learner, before its first round; a graph that does not fit into memory is refused."""
        check_graph(self.learner, n_users, dim, self.settings)
        made = self.learner(
            n_users, dim, ridge=ridge, schedule=self.schedule, generator=generator, **self.settings
        )
        made.grows, made.limit = flag("growing", self.growing), self.limit
        if flag("items", self.items):
            made.know_items()
        return made


class LinearBandit:
    """A contextual linear bandit over many users: the base class of `CLUB` and all other policies.

    It has the methods of `Policy`, `ListPolicy` and `PairPolicy`. Make one of its subclasses, such as
    `coterie.AutoCLUB`. The same seed, calls and rewards give the same arms, bit for bit. Any number of
    threads may use one policy; they take turns. Different policies run in parallel.

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    **arguments
        All other parameters of the subclass, by name.

    Raises
    ------
    ArgumentError
        By every method: if a user is unknown, a shape is wrong, a number is not finite, or a vector is longer
        than 10⁶ √ridge. If it is raised, the policy is unchanged.

    Notes
    -----
    You may subclass a policy to add or override methods. This does not change the algorithm: a compiled
    learner decides and learns, and it never calls Python methods. A subclass of your own can be copied and
    pickled if it takes the same parameters, but not saved: a snapshot names a class of Coterie, and loading
    one runs no other code. To write another algorithm, no base class is needed: any object with `recommend`
    and `update` is a `Policy`.

    Examples
    --------
    >>> import coterie
    >>> policy = coterie.AutoCLUB(n_users=3, dim=2)
    >>> arm = policy.recommend(0, [[1.0, 0.0], [0.0, 1.0]])
    >>> policy.update(0, [1.0, 0.0], 0.8)
    >>> policy.rounds, policy.pulls.tolist()
    (1, [1, 0, 0])
    """

    declared: ClassVar[Declaration]
    """Summary, tuning grid, style and cost of a subclass."""

    _plan: ClassVar[Callable[..., Plan]]
    """Takes the arguments of a policy by name, and says how its learner is made.

    `add_users` calls it again with more users: constants may depend on their number."""

    def __init__(self, n_users: int, dim: int, **arguments: Any) -> None:
        """Make a policy without data."""
        if type(self) is LinearBandit:
            raise TypeError("LinearBandit is a base class: make a policy, such as coterie.AutoCLUB(3, 2)")
        self._arguments = checked({"n_users": n_users, "dim": dim, **arguments})
        self._rng = stream(self._arguments["seed"], "policy")
        self._n_users: int = self._arguments["n_users"]
        self._dim: int = self._arguments["dim"]
        plan = self.plan_for(self._arguments)
        self._learner = plan.build(self._n_users, self._dim, self._arguments["ridge"], self._rng)
        self._lock = RLock()

    @classmethod
    def plan_for(cls, arguments: dict[str, Any]) -> Plan:
        """Say how the learner is made; `items`, which is the same for all policies, is no part of `_plan`.

        Parameters
        ----------
        arguments : dict of str to any
            Arguments of the policy by name, checked.

        Returns
        -------
        Plan
            Class, settings and schedule of the learner.
        """
        own = dict(arguments)
        items = own.pop("items", None)
        plan = cls._plan(**own)
        return plan if items is None else plan._replace(items=flag("items", items))

    @overload
    def recommend(
        self, user: int, arms: ArrayLike, *, items: ArrayLike | None = None, cautious: bool = False
    ) -> int: ...

    @overload
    def recommend(
        self,
        user: int,
        arms: Catalogue,
        *,
        k: None = None,
        exclude: ArrayLike | None = None,
        only: Only | None = None,
        cautious: bool = False,
    ) -> int: ...

    @overload
    def recommend(
        self,
        user: int,
        arms: Catalogue,
        *,
        k: int,
        exclude: ArrayLike | None = None,
        only: Only | None = None,
        cautious: bool = False,
    ) -> Ints: ...

    def recommend(
        self,
        user: int,
        arms: ArrayLike | Catalogue,
        *,
        items: ArrayLike | None = None,
        cautious: bool = False,
        k: int | None = None,
        exclude: ArrayLike | None = None,
        only: Only | None = None,
    ) -> int | Ints:
        """Choose an arm for a user. This learns nothing; ties go to the first arm.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        arms : array_like of shape (K, dim) or Catalogue
            Vectors of the arms on offer, one per row; or a catalogue, among all of whose items to choose.
        items : array_like of int, shape (K,), optional
            Ids of the arms: any whole numbers from 0 on, such as the row numbers of a catalogue, each once.
            Policies that learn effects of items know an item by its id, also when its vector changes;
            without ids, equal vectors are one item. Other policies check ids and ignore them.
        cautious : bool, default False
            Whether to take the arm of the largest lower confidence bound, `mean` − `width` of `scores`: the
            safe choice if nothing will be learnt from it, such as a single decision after `fit`. No random
            number is then drawn, not even in uniform rounds.
        k : int, optional
            Only with a catalogue: how many items to choose, as `recommend_list` does.
        exclude : array_like of int, optional
            Only with a catalogue: ids of items to leave out. Ids that are not in it are ignored.
        only : str, iterable of str or array_like of int, optional
            Only with a catalogue: a tag, several tags of which an item must have any, or ids of items.

        Returns
        -------
        int or array of int, shape (k,)
            Row number of the chosen arm. Of a catalogue, the id of the chosen item or, with `k`, the ids of
            the k best, best first.
        """
        if isinstance(arms, Catalogue):
            if items is not None:
                raise ArgumentError("items must not be given with a catalogue, which has ids of its own")
            chosen = self._recommend_from(user, arms, k, exclude, only, flag("cautious", cautious))
            return int(chosen[0]) if k is None else chosen
        if k is not None or exclude is not None or only is not None:
            raise ArgumentError("k, exclude and only need a catalogue; recommend_list ranks arms of a matrix")
        if flag("cautious", cautious):
            return int(self.recommend_list(user, arms, 1, items=items, cautious=True)[0])
        user = user_index(user, self._n_users)
        ids = None
        if items is not None:
            arms = arms_matrix(arms, self._dim)
            ids = item_ids(items, (len(arms),))
        try:
            with self._lock:
                arm = self._learner.recommend(user, arms, ids)
        except TypeError:  # no contiguous matrix of float64
            arms = arms_matrix(arms, self._dim)
            with self._lock:
                arm = self._learner.recommend(user, arms, ids)
        if arm < 0:
            raise self._too_long("arms", arms)
        return arm

    def _recommend_from(
        self,
        user: int,
        catalogue: Catalogue,
        k: int | None,
        exclude: ArrayLike | None,
        only: Only | None,
        cautious: bool,
    ) -> Ints:
        """Choose items of a catalogue; returns their ids."""
        user = user_index(user, self._n_users)
        self._check_dim(catalogue)
        with catalogue.reading():
            rows = catalogue.eligible(exclude, only)
            ids, vectors = catalogue.ids, catalogue.vectors
            n = len(ids) if rows is None else len(rows)
            length = 1 if k is None else whole("k", k, 1, n)
            if cautious:
                return self._safest_of(user, ids, vectors, rows, length)
            with self._lock:
                found = best_rows(self._learner, user, catalogue.compressed, vectors, ids, rows, length)
            if found is None:
                raise self._too_long("vectors of the catalogue", vectors)
            return ids[found]

    def _safest_of(self, user: int, ids: Ints, vectors: Floats, rows: Ints | None, k: int) -> Ints:
        """Choose items of a catalogue by their lower confidence bounds; returns their ids."""
        if rows is not None:
            ids, vectors = ids[rows], vectors[rows]
        return ids[self.recommend_list(user, vectors, k, items=ids, cautious=True)]

    def _check_dim(self, catalogue: Catalogue) -> None:
        """Refuse a catalogue whose vectors have another length."""
        if catalogue.dim != self._dim:
            raise ArgumentError(f"the catalogue must have vectors of length {self._dim}, got {catalogue.dim}")

    def recommend_many(
        self, users: ArrayLike, arms: ArrayLike, *, items: ArrayLike | None = None, cautious: bool = False
    ) -> Ints:
        """Choose an arm for each of several users, without learning in between.

        Parameters
        ----------
        users : array_like of int, shape (n,)
            Users; one may occur several times.
        arms : array_like of shape (K, dim) or (n, K, dim)
            Vectors of the arms on offer: the same for all users, or a set for each.
        items : array_like of int, shape (K,) or (n, K), optional
            Ids of the arms, as for `recommend`.
        cautious : bool, default False
            As for `recommend`.

        Returns
        -------
        array of int, shape (n,)
            Row numbers of the chosen arms.
        """
        served = users_array(users, self._n_users)
        stack = finite("arms", reals("arms", arms, "an array"))
        n, d = len(served), self._dim
        shared = stack.ndim == 2
        if (
            stack.ndim not in (2, 3)
            or stack.shape[-1] != d
            or stack.shape[-2] == 0
            or (not shared and len(stack) != n)
        ):
            raise ArgumentError(f"arms must have shape (K, {d}) or ({n}, K, {d}), got {stack.shape}")
        careful = flag("cautious", cautious)
        ids = None if items is None else item_ids(items, stack.shape[:-1])
        if n == 0:
            return np.empty(0, np.int64)
        with self._lock:
            if not self._learner.accepts(stack.reshape(-1, d)):
                raise self._too_long("arms", stack)
            choose = self._safest if careful else self._learner.recommend
            chosen = [
                choose(int(u), stack, ids)
                if shared
                else choose(int(u), stack[k], None if ids is None else ids[k])
                for k, u in enumerate(served)
            ]
        return np.array(chosen, np.int64)

    def recommend_list(
        self,
        user: int,
        arms: ArrayLike,
        k: int,
        *,
        items: ArrayLike | None = None,
        cautious: bool = False,
    ) -> Ints:
        """Choose k arms for a ranked list, best first; ties go to the lower row number.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        arms : array_like of shape (K, dim)
            Vectors of the arms on offer, one per row.
        k : int
            Length of the list, from 1 to K.
        items : array_like of int, shape (K,), optional
            Ids of the arms, as for `recommend`.
        cautious : bool, default False
            Whether to rank by lower confidence bounds, as for `recommend`.

        Returns
        -------
        array of int, shape (k,)
            Row numbers of the chosen arms.
        """
        user, matrix = user_index(user, self._n_users), arms_matrix(arms, self._dim)
        k = whole("k", k, 1, len(matrix))
        ids = None if items is None else item_ids(items, (len(matrix),))
        with self._lock:
            if flag("cautious", cautious) and self._learner.accepts(matrix):
                return self._safest_first(user, matrix, ids)[:k]
            found = None if cautious else self._learner.recommend_list(user, matrix, k, ids)
        if found is None:
            raise self._too_long("arms", matrix)
        return found

    def _safest(self, user: int, arms: Floats, ids: Ints | None) -> int:
        """Choose the arm of the largest lower confidence bound."""
        return int(self._safest_first(user, arms, ids)[0])

    def _safest_first(self, user: int, arms: Floats, ids: Ints | None) -> Ints:
        """Rank arms by their lower confidence bounds."""
        mean, width = self._learner.scores(user, arms, ids)
        # Policies that are always cautious (OffCLUB) return negative widths, hence `abs`.
        return np.argsort(np.abs(width) - mean, kind="stable")

    def update(self, user: int, x: ArrayLike | Catalogue, reward: float, *, item: int | None = None) -> None:
        """Absorb a reward, which may come late and in any order.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        x : array_like of shape (dim,) or Catalogue
            Vector of the arm that was shown; or the catalogue that has `item`, whose present vector counts.
        reward : float
            Reward that the user gave; True and False are 1 and 0. The defaults are meant for [−1, 1].
        item : int, optional
            Id of the arm that was shown, as for `recommend`; needed with a catalogue.
        """
        if isinstance(x, Catalogue):
            if item is None:
                raise ArgumentError("item must be the id of the item that was shown, got None")
            self._check_dim(x)
            x = x.vector(item)
        user, value = user_index(user, self._n_users), number("reward", reward)
        known = None if item is None else item_id(item)
        try:
            with self._lock:
                absorbed = self._learner.update(user, x, value, known)
        except TypeError:  # no contiguous vector of float64
            x = arm_vector(x, self._dim)
            with self._lock:
                absorbed = self._learner.update(user, x, value, known)
        if not absorbed:
            raise self._too_long("x", x)

    def update_many(
        self, users: ArrayLike, xs: ArrayLike, rewards: ArrayLike, *, items: ArrayLike | None = None
    ) -> None:
        """Absorb rewards row by row, exactly as single updates would; if a row is wrong, none is absorbed.

        Parameters
        ----------
        users : array_like of int, shape (n,)
            Users, in the order of their rewards.
        xs : array_like of shape (n, dim)
            Vectors of the arms that were shown.
        rewards : array_like of shape (n,)
            Rewards that the users gave.
        items : array_like of int, shape (n,), optional
            Ids of the arms that were shown.
        """
        self._absorb(users, xs, rewards, items, fitting=False)

    def fit(
        self: Self, users: ArrayLike, xs: ArrayLike, rewards: ArrayLike, *, items: ArrayLike | None = None
    ) -> Self:
        """Learn from a log: add all rewards, then apply the clustering rule once for every user.

        Use this for a warm start from rewards of decisions that another system made. `update_many` applies
        the clustering rule after every reward, with only the data up to that reward; `fit` applies it to the
        whole log. Policies whose result depends on the order of rewards (AutoCLUB, HierUCB, HierTS, CoDBand,
        DyClu, LOCB, CAB, COFIBA and FCLUBDC) absorb the log in its order, as `update_many` does. Earlier data
        is kept. If a row is invalid, no row is used.

        Parameters
        ----------
        users : array_like of int, shape (n,)
            Users, in the order of their rewards.
        xs : array_like of shape (n, dim)
            Vectors of the arms that were shown.
        rewards : array_like of shape (n,)
            Rewards that the users gave.
        items : array_like of int, shape (n,), optional
            Ids of the arms that were shown.

        Returns
        -------
        LinearBandit
            The policy itself.
        """
        self._absorb(users, xs, rewards, items, fitting=self._learner.FITS)
        return self

    def _absorb(
        self,
        users: ArrayLike,
        xs: ArrayLike,
        rewards: ArrayLike,
        items: ArrayLike | None,
        *,
        fitting: bool,
    ) -> None:
        """Absorb rewards, and let the rule act after each of them or, when fitting, at the end."""
        served = users_array(users, self._n_users)
        n, d = len(served), self._dim
        vectors = finite("xs", reals("xs", xs, f"an (n, {d}) array"))
        values = finite("rewards", reals("rewards", rewards, "a vector", kinds="fiub"))
        ids = None if items is None else item_ids(items, (n,), distinct=False)
        if n == 0 and vectors.size == 0 and values.size == 0:
            return
        if vectors.shape != (n, d) or values.shape != (n,):
            raise ArgumentError(
                f"users, xs and rewards must have shapes ({n},), ({n}, {d}) and ({n},), "
                f"got {served.shape}, {vectors.shape} and {values.shape}"
            )
        with self._lock:
            absorbed = self._learner.update_many(served, vectors, values, fitting, ids)
        if not absorbed:
            raise self._too_long("xs", vectors)

    def update_list(
        self, user: int, xs: ArrayLike, clicked: int | None, *, items: ArrayLike | None = None
    ) -> None:
        """Absorb the first click on a ranked list.

        Positions up to the click count as seen: they are absorbed as rewards 0, …, 0, 1 (all 0 without a
        click), and the clusters are reviewed once.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        xs : array_like of shape (k, dim)
            Vectors of the list that was shown, from the top.
        clicked : int or None
            Position of the first click, from 0; None if nothing was clicked.
        items : array_like of int, shape (k,), optional
            Ids of the arms of the list.
        """
        user, matrix = user_index(user, self._n_users), arms_matrix(xs, self._dim, name="xs")
        ids = None if items is None else item_ids(items, (len(matrix),))
        seen = len(matrix) if clicked is None else whole("clicked", clicked, 0, len(matrix) - 1) + 1
        rewards = np.zeros(seen)
        rewards[seen - 1] = clicked is not None
        with self._lock:
            absorbed = self._learner.update_list(
                user, matrix[:seen], rewards, None if ids is None else ids[:seen]
            )
        if not absorbed:
            raise self._too_long("xs", matrix)

    def add_users(self, n: int, *, labels: ArrayLike | None = None) -> Ints:
        """Add users, in the state that the algorithm gives to users without data.

        Parameters
        ----------
        n : int
            Number of new users, at least 1.
        labels : array_like of int, shape (n,), optional
            True clusters of the new users; required by the oracles, refused by others.

        Returns
        -------
        array of int, shape (n,)
            Numbers of the new users.
        """
        n = whole("n", n, 1, MOST_USERS)
        with self._lock:
            known = self._n_users
            arguments = grown(self._arguments, n, labels)
            plan = self.plan_for(arguments)
            check_graph(plan.learner, known + n, self._dim, plan.settings)
            self._learner.add_users(n, schedule=plan.schedule, **plan.settings)
            self._arguments, self._n_users = arguments, known + n
        return np.arange(known, known + n)

    def recommend_pair(
        self, user: int, arms: ArrayLike, *, items: ArrayLike | None = None
    ) -> tuple[int, int]:
        """Choose two arms for a user: the best by estimate, and its strongest challenger.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        arms : array_like of shape (K, dim)
            Vectors of the arms on offer, one per row.
        items : array_like of int, shape (K,), optional
            Ids of the arms. They are checked; duels neither teach effects of items nor use them.

        Returns
        -------
        tuple of int
            Row numbers of two arms: x₁ has the largest mean; x₂ maximizes its mean plus the bonus of the
            difference x₂ − x₁. Both may be the same. Ties go to the lower row number. In uniform rounds, two
            arms at random.
        """
        user, matrix = user_index(user, self._n_users), arms_matrix(arms, self._dim)
        if items is not None:
            item_ids(items, (len(matrix),))
        with self._lock:
            if not self._learner.accepts(matrix):
                raise self._too_long("arms", matrix)
            if len(matrix) > 1 and self._learner.exploring:
                drawn = self._learner.recommend_list(user, matrix, 2)
                return (0, 0) if drawn is None else (int(drawn[0]), int(drawn[1]))
            mean, _ = self._learner.scores(user, matrix, effects=0)
            best = int(np.argmax(mean))
            apart = matrix - matrix[best]
            if not self._learner.accepts(apart):
                raise self._too_long("differences of arms", apart)
            mean, width = self._learner.scores(user, apart, effects=0)
        return best, int(np.argmax(mean + width))

    def update_pair(
        self, user: int, winner: ArrayLike, loser: ArrayLike, *, items: ArrayLike | None = None
    ) -> None:
        """Absorb which of two arms a user preferred; the answer may come late and in any order.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        winner : array_like of shape (dim,)
            Vector of the preferred arm.
        loser : array_like of shape (dim,)
            Vector of the other arm. If both are equal nothing is learnt, but the duel counts.
        items : array_like of int, shape (2,), optional
            Ids of the preferred and of the other arm, as for `recommend_pair`.
        """
        user = user_index(user, self._n_users)
        if items is not None:
            item_ids(items, (2,), distinct=False)  # an arm may be shown against itself
        better = finite("winner", arm_vector(winner, self._dim, name="winner"))
        worse = finite("loser", arm_vector(loser, self._dim, name="loser"))
        z, share = oriented(better - worse)
        lost, won = self._learner.DUEL_REWARDS
        with self._lock:
            absorbed = self._learner.update(user, z, lost + share * (won - lost), NO_ITEM)
        if not absorbed:
            raise too_long("winner − loser", self._arguments["ridge"])

    # Inspection: nothing below learns.

    @property
    def name(self) -> str:
        """Name of the policy's class, such as 'CLUB'."""
        return type(self).__name__

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments that the policy was made with, by name; `n_users` is the present number."""
        return dict(self._arguments)

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self._n_users

    @property
    def dim(self) -> int:
        """Length d of an arm's vector."""
        return self._dim

    @property
    def rounds(self) -> int:
        """Number of rewards absorbed."""
        return self._learner.rounds

    @property
    def exploring(self) -> bool:
        """Whether the next decision is a uniformly random arm."""
        return bool(self._learner.exploring)

    @property
    def exploration(self) -> Schedule:
        """Schedule of the uniform rounds: `first`, `phase` and `growth`."""
        return self._learner.schedule

    @property
    def estimates(self) -> Floats:
        """Estimate θ̂ of each user, shape (n_users, dim), read-only.

        It is computed from the user's own data if the policy models users separately; otherwise it is the
        user's part of a joint model, or the estimate of all users that share a model (`LinUCBOne`).
        """
        with self._lock:
            return frozen(self._learner.estimates())

    @property
    def pulls(self) -> Ints:
        """Number T of rewards of each user, shape (n_users,), read-only."""
        with self._lock:
            return frozen(self._learner.pulls_of_users())

    @property
    def learner(self) -> Learner:
        """Compiled state, for the simulator and snapshots; hold `lock` while using it."""
        return self._learner

    @property
    def lock(self) -> RLock:
        """Lock held by whoever reads or changes the state."""
        return self._lock

    @property
    def generator(self) -> np.random.Generator:
        """Generator of random decisions."""
        return self._rng

    def scores(self, user: int, arms: ArrayLike, *, items: ArrayLike | None = None) -> Scores:
        """Score arms: estimated mean, bonus and their sum for each arm.

        Outside uniform rounds `recommend` takes the arm of the largest sum; LinTS draws a sample instead. The
        sums of CascadeLinUCB and CLUBCascade count as 1 at most.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        arms : array_like of shape (K, dim)
            Vectors of the arms on offer, one per row.
        items : array_like of int, shape (K,), optional
            Ids of the arms, as for `recommend`.

        Returns
        -------
        Scores
            `mean`, `width` and `ucb`, each of shape (K,).
        """
        user, matrix = user_index(user, self._n_users), arms_matrix(arms, self._dim)
        ids = None if items is None else item_ids(items, (len(matrix),))
        with self._lock:
            if not self._learner.accepts(matrix):
                raise self._too_long("arms", matrix)
            mean, width = self._learner.scores(user, matrix, ids)
            limit = self._learner.limit
        return Scores(mean, width, np.minimum(mean + width, limit))

    def memory(self) -> MemoryUse:
        """Count the bytes that the policy holds, by part.

        Returns
        -------
        MemoryUse
            `parts`, a dict of bytes, and `total`; `print` shows a line for each part.

        Notes
        -----
        Memory reserved for future users is counted. Pages of it that have not been written yet use no
        physical memory, so the resident memory of the process may be smaller.
        """
        with self._lock:
            return memory_use(self._learner, self._arguments)

    def to_frame(self) -> pl.DataFrame:
        """Return a table of all users, in polars; `to_pandas()` makes it one of pandas.

        Returns
        -------
        polars.DataFrame
            Columns `user`, `rewards` (how many it has given), `cluster` (as `labels` numbers it) and
            `estimate` (a list, as `estimates` has it).
        """
        need("polars", "a table of users")
        import polars as pl

        with self._lock:
            columns = {"rewards": self.pulls, "cluster": self.labels()}
            estimates = self.estimates
        users = pl.Series("user", np.arange(self.n_users))
        found = pl.Series("estimate", estimates.tolist(), pl.List(pl.Float64))
        return pl.DataFrame([users, *(pl.Series(name, values) for name, values in columns.items()), found])

    def labels(self) -> Ints:
        """Return the cluster number of each user; clusters are numbered in order of first appearance.

        Returns
        -------
        array of int, shape (n_users,)
            Labels 0, 1, …; where clusters overlap (PhaseUniCLUB), those of the connected components.
        """
        with self._lock:
            return by_appearance(self._learner.labels())

    def cluster_of(self, user: int) -> Ints:
        """List the users whose data counts for a user, itself included.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.

        Returns
        -------
        array of int
            Users, ascending.
        """
        user = user_index(user, self._n_users)
        with self._lock:
            return self._learner.cluster_of(user)

    def save(self, path: str | PathLike[str], *, progress: ByteProgress | None = None) -> None:
        """Write a snapshot, from which `coterie.load` continues with the very same next decision.

        Parameters
        ----------
        path : str or path
            File to write; it is whole or absent, never half written.
        progress : callable, optional
            Called as progress(done, total) with the number of bytes written so far and the total.

        Raises
        ------
        SnapshotError
            If the file cannot be written, or the class of the policy is not one of Coterie's.

        Notes
        -----
        Arrays are written straight from the policy's memory, a few megabytes at a time: saving takes no copy
        of them, and other threads wait for it.
        """
        save(self, path, progress=progress)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy through the arrays of a snapshot."""
        return revived, (type(self), captured(self))

    def __repr__(self) -> str:
        """Show the name, the size and the number of rounds."""
        clusters = len(np.unique(self.labels()))
        size = f"{counted(self.n_users, 'user')} in {counted(clusters, 'cluster')}, dim {self.dim}"
        return f"<{self.name}: {size}, {counted(self.rounds, 'round')}>"

    def _too_long(self, name: str, rows: ArrayLike) -> ArgumentError:
        """Make the error for a vector that is not finite, or too long for the inverse."""
        finite(name, np.asarray(rows, np.float64))
        return too_long(name, self._arguments["ridge"])


def checked(arguments: dict[str, Any]) -> dict[str, Any]:
    """Check and copy the arguments that all policies share."""
    own = dict(arguments)
    own["n_users"] = whole("n_users", own["n_users"], 1, MOST_USERS)
    own["dim"] = whole("dim", own["dim"], 1, MOST_DIM)
    own["ridge"] = positive("ridge", own["ridge"])
    own["seed"] = check_seed(own["seed"])
    for name, check in (("labels", label_vector), ("graph", user_graph)):
        if name in own:
            own[name] = check(own[name], own["n_users"])
    if "catalogue" in own:
        own["catalogue"] = _catalogue(own["catalogue"], own["dim"], own["ridge"])
    for name, value in own.items():
        if isinstance(value, np.ndarray):
            own[name] = frozen(value.copy())
    confidence = own.get("confidence")
    given = isinstance(confidence, Confidence) and not isinstance(confidence, type)
    if "confidence" in own and not given:
        wanted = "Theory(...), SmoothedTheory(...) or Tuned(...)"
        raise ArgumentError(f"confidence must be {wanted}, got {shown(confidence)}")
    return own


def _catalogue(catalogue: ArrayLike, dim: int, ridge: float) -> Floats:
    """Check the vectors of all items that a policy is made with."""
    vectors = finite("catalogue", arms_matrix(catalogue, dim, "catalogue"))
    if np.einsum("ki,ki->k", vectors, vectors).max() > LONGEST2 * ridge:
        raise too_long("vectors of the catalogue", ridge)
    return vectors


def grown(arguments: dict[str, Any], n: int, labels: ArrayLike | None) -> dict[str, Any]:
    """Extend the arguments of a policy by n users."""
    more = dict(arguments, n_users=arguments["n_users"] + n)
    if "labels" in arguments:
        if labels is None:
            raise ArgumentError(f"labels must be {n} whole numbers, the clusters of the new users, got None")
        more["labels"] = frozen(np.concatenate([arguments["labels"], label_vector(labels, n)]))
    elif labels is not None:
        raise ArgumentError("labels must not be given: this policy finds clusters itself")
    if "graph" in arguments:
        more["graph"] = frozen(np.pad(arguments["graph"], (0, n)))
    return more


def frozen(array: A) -> A:
    """Make an array read-only, and return it."""
    array.flags.writeable = False
    return array


def too_long(name: str, ridge: float) -> ArgumentError:
    """Make the error for a vector so long that rounding would destroy an inverse."""
    longest = np.sqrt(LONGEST2 * ridge)
    return ArgumentError(
        f"{name} must be shorter than {longest:.3g} (1e6·√ridge), or rounding destroys the inverse; "
        "scale the features down"
    )


def by_appearance(labels: Ints) -> Ints:
    """Renumber labels 0, 1, … in order of first appearance.

    >>> by_appearance(np.array([7, 7, 2, 7])).tolist()
    [0, 0, 1, 0]
    """
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def oriented(apart: Floats) -> tuple[Floats, float]:
    """Return (winner − loser, 1) or (loser − winner, 0): a difference of arms, and whether the first one won.

    Which arm comes first must not depend on the winner: if the winner always came first, a policy with an
    intercept would learn that the first arm always wins. A hash of the absolute values decides; it is the
    same for z and −z.

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
