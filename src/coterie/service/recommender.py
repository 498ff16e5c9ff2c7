"""`Recommender`: a policy for users and items with names, whose decisions and rewards survive anything."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from numpy.typing import ArrayLike

from coterie.errors import ArgumentError, MissingData
from coterie.policies.base import LinearBandit
from coterie.service.core.decisions import Decision, RewardResult
from coterie.service.core.engine import PolicyEngine
from coterie.service.core.ids import listed
from coterie.service.core.imports import learn_rows
from coterie.service.core.known_items import Tags
from coterie.service.core.live_policy import LivePolicy
from coterie.service.core.queries import (
    Explanation,
    SimilarUser,
    Summary,
    UserEvent,
    explain,
    history,
    plot_clusters,
    similar,
    summary,
    user_table,
)
from coterie.service.item_tables import (
    DataFrame,
    Ids,
    ItemSource,
    ItemTable,
    Progress,
    item_table,
    log_rows,
    named_arms,
    saying_what_was_put,
)
from coterie.service.limits import Limits
from coterie.service.settings import CHANGEABLE, Changes, PolicySettings
from coterie.service.storage.event_store import EventStore
from coterie.service.storage.location import open_store
from coterie.service.storage.sqlite import SQLiteStore

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

LIMITS = Limits(user_limit=10**8, item_limit=10**8)
"""Users and items come from the program itself, not from clients: only memory limits them."""


class Recommender:
    """Recommend items to users by name, and learn from rewards that come late, twice or never.

    Parameters
    ----------
    dim : int, optional
        The length d of an item's vector. May be left out if the store has this recommender already, or with
        `items`.
    policy : str, optional
        A name of the registry, AutoCLUB by default; `coterie policies` lists all.
    params : mapping, optional
        What the policy takes, such as `{"alpha": 1.5, "beta": 0.1}` for CLUB.
    items : mapping, data frame or array_like, optional
        The catalogue to begin with, as `put_items` takes it: a vector for each item's id.
    store : str, path or EventStore, optional
        The path of a SQLite file, `sqlite:///PATH`, or `postgresql://…`: everything survives the end of the
        process, and a call returns only when what it did is on the disk. Without it, everything is in memory.
    name : str
        The name in the store, which may hold several recommenders, one open at a time.
    users : sequence of str
        Users known from the start; all others join when they first come.
    seed : int, optional
        Seed of everything random, 0 by default.
    snapshot_every : int
        Events after which the state is written, so that the next start reads less of the log.
    **changes
        reward_wait, default_reward, late, learn_parts, uniform_share and mode, as `PolicySettings` explains
        them. What is not given stays as it is in the store.

    Notes
    -----
    State is the last snapshot and the log since, replayed through the same `update`. After a crash the next
    decision is the very same as that of a process that was not interrupted. All methods may be called by any
    thread; they take turns, and their commits are grouped.

    Examples
    --------
    >>> shop = Recommender(items={"tea": [1.0, 0.0], "coffee": [0.0, 1.0]})
    >>> decision = shop.decide("alice")
    >>> decision.chosen
    'tea'
    >>> shop.reward(decision.id, 0.0).status
    'counted'
    >>> shop.reward(decision.id, 0.0).status  # the same once more counts once
    'duplicate'
    >>> shop.decide("alice").chosen
    'coffee'
    """

    def __init__(
        self,
        dim: int | None = None,
        policy: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        items: ItemSource | None = None,
        store: str | os.PathLike[str] | EventStore | None = None,
        name: str = "default",
        users: Sequence[str] = (),
        seed: int | None = None,
        snapshot_every: int = 50_000,
        **changes: Unpack[Changes],
    ) -> None:
        """Open the recommender of this name, or make it."""
        given = {"policy": policy, "params": params, "users": tuple(users) or None, "seed": seed}
        options = {option: value for option, value in given.items() if value is not None}
        found = open_store(os.fspath(store) if isinstance(store, os.PathLike) else store)
        engine = PolicyEngine(found, snapshot_every=snapshot_every, limits=LIMITS)
        self._attach(engine, lambda: open_policy(engine, name, {**options, "dim": dim, **changes}, items))

    def _attach(self, engine: PolicyEngine, opened: Callable[[], LivePolicy]) -> None:
        """Take over an engine, or close it again."""
        try:
            self._engine, self._live = engine, opened()
        except BaseException:
            engine.close()
            raise
        # At exit, or when this object is collected, whichever comes first; `close` calls it earlier.
        self._closing = weakref.finalize(self, engine.close)

    def decide(
        self,
        user: str,
        items: Sequence[str] | None = None,
        *,
        arms: Mapping[str, ArrayLike] | DataFrame | ArrayLike | None = None,
        exclude: Sequence[str] | None = None,
        only: str | Sequence[str] | None = None,
        k: int = 1,
        decision_id: str | None = None,
    ) -> Decision:
        """Choose an item for a user, or a list of k; a user who was never seen joins.

        Parameters
        ----------
        user : str
            The user's id.
        items : sequence of str, optional
            Items of the catalogue that may be shown now; all of them by default.
        arms : mapping, data frame or array_like, optional
            Instead of items: vectors by id, a table as `put_items` takes it, or a matrix whose rows are
            called "0", "1" and so on. An id of the catalogue must have the vector that it has there.
        exclude : sequence of str, optional
            Ids of items to leave out, such as those that the user has seen; they may have been removed since.
        only : str or sequence of str, optional
            A tag, or several: only items that have one of them.
        k : int
            How many items to rank.
        decision_id : str, optional
            An id of your own: the same request with the same id gets the same answer.

        Returns
        -------
        Decision
            With `id`, which the reward names, and `chosen`.

        Raises
        ------
        Conflict, StoreError
            If `decision_id` was used for another request; if the decision could not be made durable, in which
            case asking again with the same `decision_id` is safe.
        """
        return self._engine.settle(
            self._live.decide(
                user,
                items=None if items is None else listed("items", items),
                arms=named_arms(arms),
                exclude=None if exclude is None else listed("exclude", exclude),
                only=only if only is None or isinstance(only, str) else listed("only", only, "tags"),
                k=k,
                decision_id=decision_id,
            )
        )

    def reward(
        self,
        decision_id: str,
        reward: float,
        *,
        part: str | None = None,
        item: str | None = None,
        x: ArrayLike | None = None,
    ) -> RewardResult:
        """Give the reward of a decision, or one part of it; the same twice is counted once.

        Parameters
        ----------
        decision_id : str
            The id of the decision.
        reward : float
            What came back, about from −1 to 1. For a list: 1 and the `item` clicked, or 0.
        part : str, optional
            A name of your own, such as "click" or "order-17": rewards of one decision with different names
            add up. Their sum is learnt when `reward_wait` is over, or as `learn_parts` says.
        item, x : str, array_like, optional
            In shadow mode, what was shown instead: an item of the catalogue, or its vector.

        Returns
        -------
        RewardResult
            `status` is "counted", "added" (to a sum that is learnt later), "duplicate", "late" or, if the
            policy does not learn from it, "recorded".

        Raises
        ------
        UnknownName, Conflict
            If there is no such decision; if another reward was given for it.

        Examples
        --------
        >>> shop = Recommender(items={"tea": [1.0, 0.0]})
        >>> visit = shop.decide("alice").id
        >>> shop.reward(visit, 0.1, part="click").status
        'added'
        >>> shop.reward(visit, 1.0, part="purchase").status  # both count as 1.1 after a day
        'added'
        """
        return self._engine.settle(self._live.reward(decision_id, reward, part=part, item=item, x=x))

    def feedback(
        self,
        user: str,
        reward: float,
        *,
        item: str | None = None,
        x: ArrayLike | None = None,
        feedback_id: str | None = None,
    ) -> RewardResult:
        """Give a reward for something that this recommender did not choose.

        Parameters
        ----------
        user : str
            The user's id; a user who was never seen joins.
        reward : float
            What came back, about from −1 to 1.
        item, x : str, array_like
            What was shown: an item of the catalogue, or a vector; or both, for an item that is not in the
            catalogue, or had this vector when it was shown.
        feedback_id : str, optional
            An id of your own: the same feedback with the same id is counted once; another is a `Conflict`.

        Returns
        -------
        RewardResult
            `status` is "counted", "duplicate" or, if the policy is frozen, "recorded".

        Examples
        --------
        >>> shop = Recommender(items={"tea": [1.0, 0.0]})
        >>> shop.feedback("alice", 1.0, item="tea", feedback_id="order-17").status
        'counted'
        """
        return self._engine.settle(self._live.feedback(user, reward, item=item, x=x, feedback_id=feedback_id))

    def fit(self, log: DataFrame | Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]]) -> Recommender:
        """Learn from rewards of the past, in their order: all of them, or none if one is wrong.

        Parameters
        ----------
        log : data frame, mapping of columns, or sequence of mappings
            A row for each reward: `user`, `item` (of the catalogue), `reward`, and perhaps `feedback_id`, an
            id of your own that makes a reward count once.

        Returns
        -------
        Recommender
            Itself.

        Raises
        ------
        ArgumentError
            If a row cannot be used; the sentence names it, counted from 0.

        Examples
        --------
        >>> shop = Recommender(items={"tea": [1.0, 0.0], "coffee": [0.0, 1.0]})
        >>> log = {"user": ["alice", "alice"], "item": ["tea", "coffee"], "reward": [0, 1]}
        >>> shop.fit(log).decide("alice").chosen
        'coffee'
        """
        learn_rows(self._live, log_rows(log))
        return self

    def put_items(
        self,
        items: ItemSource,
        *,
        ids: Ids | None = None,
        tags: Tags | None = None,
        replace_all: bool = False,
        progress: Progress | None = None,
    ) -> None:
        """Add items to the catalogue, or change their vectors; what is known of an item stays.

        Parameters
        ----------
        items : mapping, data frame or array_like
            A vector of length dim for each id; or a table of pandas or polars with columns `id`, `x` (lists)
            or columns of numbers, and perhaps `tags`; or an array with a row for each item.
        ids : sequence, optional
            Ids of the rows of an array; their numbers by default.
        tags : mapping, optional
            A list of tags for the ids of some of these items; the others keep the tags that they have.
        replace_all : bool
            Whether to remove all other items, after these were put.
        progress : callable, optional
            Called as progress(done, total) after each batch.

        Raises
        ------
        ArgumentError
            If an id or a vector cannot be used.

        Notes
        -----
        Many items are put in batches of at most 10,000, each of which is durable as a whole: an interruption
        leaves the first ones.

        Examples
        --------
        >>> shop = Recommender(items={"tea": [1.0, 0.0]})
        >>> shop.put_items({"coffee": [0.0, 1.0]}, tags={"coffee": ["strong"]})
        >>> shop.decide("alice", only="strong").chosen
        'coffee'
        """
        table = item_table(items, ids=ids, tags=tags)
        put_table(self._engine, self._live, table, replace_all=replace_all, progress=progress)

    def remove_items(self, items: Sequence[str]) -> None:
        """Remove items from the catalogue; decisions that chose them still take their rewards.

        Parameters
        ----------
        items : sequence of str
            Ids of the catalogue; if one is unknown, none is removed.

        Examples
        --------
        >>> shop = Recommender(items={"tea": [1.0, 0.0], "coffee": [0.0, 1.0]})
        >>> shop.remove_items(["tea"])
        """
        self._engine.settle(self._live.change_items(remove=listed("items", items)))

    def configure(self, **changes: Any) -> None:
        """Change settings while the recommender runs.

        Parameters
        ----------
        **changes
            New values of reward_wait, default_reward, late, learn_parts, uniform_share or mode, which
            `coterie.service.settings.PolicySettings` explains; the others stay as they are.

        Examples
        --------
        >>> shop = Recommender(items={"tea": [1.0, 0.0]})
        >>> shop.configure(reward_wait=3600.0, uniform_share=0.05)
        >>> shop.summary.settings["uniform_share"]
        0.05
        """
        self._engine.settle(self._live.configure(**changes))

    def expire(self) -> int:
        """Count the default reward where time is over, as happens by itself twice a second; how many."""
        return self._engine.settle(self._live.expire())

    def remove_user(self, user: str) -> None:
        """Forget a user: id, history and statistics. The policy learns anew from what remains.

        Parameters
        ----------
        user : str
            The user's id; one who was never seen is an `UnknownName`.

        Examples
        --------
        >>> shop = Recommender(items={"tea": [1.0, 0.0]}, users=["alice", "bob"])
        >>> shop.remove_user("alice")
        >>> shop.users
        ('bob',)
        """
        self._engine.forget_user(self._live.name, user)

    def explain(self, user: str, items: Sequence[str] | None = None) -> Explanation:
        """Explain who a user learns from, and how items score for it now.

        Parameters
        ----------
        user : str
            The user's id; one who was never seen is an `UnknownName`.
        items : sequence of str, optional
            Items of the catalogue to score; all of them by default.

        Returns
        -------
        Explanation
            Its `cluster`, `learns_from`, `estimate`, and `scores` of items, the best first.

        Examples
        --------
        >>> shop = Recommender(items={"tea": [1.0, 0.0]}, users=["alice", "bob"])
        >>> shop.explain("alice").learns_from
        ['bob']
        """
        return explain(self._live, user, items)

    def similar(self, user: str, k: int = 10) -> list[SimilarUser]:
        """Find the users whose expected rewards differ least from those of a user.

        Parameters
        ----------
        user : str
            The user's id; one who was never seen is an `UnknownName`.
        k : int
            How many users to find; fewer are found if fewer have given rewards.

        Returns
        -------
        list of SimilarUser
            Each with `user` and `distance`, the nearest first.

        Examples
        --------
        >>> shop = Recommender(items={"tea": [1.0], "water": [0.1]})
        >>> tastes = {"alice": 1.0, "bob": 0.9, "carol": 0.0}
        >>> log = [(user, "tea", taste) for user, taste in tastes.items()] * 3
        >>> _ = shop.fit([dict(zip(("user", "item", "reward"), row)) for row in log])
        >>> shop.similar("alice", k=1)[0].user
        'bob'
        """
        return similar(self._live, user, k)

    def plot_clusters(self, *, ax: Axes | None = None) -> Axes:
        """Draw users as points, coloured by cluster; see `coterie.AutoCLUB.plot_clusters`.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a figure of its own by default.

        Returns
        -------
        matplotlib.axes.Axes
            Where it was drawn.
        """
        return plot_clusters(self._live, ax)

    def to_frame(self) -> pl.DataFrame:
        """Return a table of all users in polars: `user`, `rewards`, `cluster` and `estimate`."""
        return user_table(self._live)

    def history(self, user: str, limit: int = 100) -> list[UserEvent]:
        """List the latest decisions and rewards of a user.

        Parameters
        ----------
        user : str
            The user's id.
        limit : int
            How many events at most; the latest, in the order in which they happened.

        Examples
        --------
        >>> shop = Recommender(items={"tea": [1.0, 0.0]})
        >>> _ = shop.reward(shop.decide("alice").id, 1.0)
        >>> [(event.kind, event.item, event.reward) for event in shop.history("alice")]
        [('decision', 'tea', None), ('reward', None, 1.0)]
        """
        return history(self._live, user, limit)

    @property
    def summary(self) -> Summary:
        """Settings, users, clusters, rounds, and how many decisions wait."""
        return summary(self._live)

    @property
    def users(self) -> tuple[str, ...]:
        """The ids of all users, in the order in which they came."""
        return self._live.state.users.ids

    @property
    def items(self) -> tuple[str, ...]:
        """The ids of the catalogue."""
        return tuple(self._live.state.items.ids)

    @property
    def policy(self) -> LinearBandit:
        """The policy itself, to look at; the number of a user is its place in `users`."""
        return self._live.state.policy

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, whole or absent: a store that `load` and `store=` read.

        Parameters
        ----------
        path : str or path
            The file; one that is there is replaced. `load` has an example.
        """
        if not isinstance(self._engine.store, SQLiteStore):
            raise ArgumentError("save copies a SQLite store; back PostgreSQL up with pg_dump")
        self._engine.journal.run(lambda: None)
        self._engine.store.copy_to(Path(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, name: str = "default") -> Recommender:
        """Go on in memory from what `save` wrote, with the very same next decision.

        Parameters
        ----------
        path : str or path
            A file that `save` wrote, or a SQLite store; it is not changed. None there is `MissingData`.
        name : str
            The name in the store.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     Recommender(items={"tea": [1.0, 0.0]}).save(f"{folder}/shop.db")
        ...     Recommender.load(f"{folder}/shop.db").items
        ('tea',)
        """
        if not Path(path).is_file():
            raise MissingData(f"there is no saved recommender at {os.fspath(path)!r}")
        engine = PolicyEngine(SQLiteStore.copied(Path(path)))
        made = cls.__new__(cls)
        made._attach(engine, lambda: engine.find(name))
        return made

    def close(self) -> None:
        """Write what is not written yet and release the store, as happens by itself at exit."""
        self._closing()

    def __enter__(self) -> Recommender:
        """Close at the end of a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def __repr__(self) -> str:
        """The policy, and how many items and waiting decisions there are."""
        state = self._live.state
        return f"<Recommender: {state.policy!r}, {len(state.items)} items, {len(state.waiting)} waiting>"


def put_table(
    engine: PolicyEngine,
    live: LivePolicy,
    table: ItemTable,
    *,
    replace_all: bool = False,
    progress: Progress | None = None,
) -> None:
    """Put items in batches; what is in one batch is put, and replaces all others, in one step."""
    batches = list(table.batches())
    done = 0
    with saying_what_was_put(lambda: done):
        for batch in batches:
            engine.settle(live.change_items(batch, replace_all=replace_all and len(batches) == 1))
            done += len(batch)
            if progress is not None:
                progress(done, len(table))
        if replace_all and len(batches) > 1:
            kept = set(table.ids)
            with live.reading() as state:
                others = [one for one in state.items.ids if one not in kept]
            engine.settle(live.change_items(remove=others))


def open_policy(
    engine: PolicyEngine, name: str, options: dict[str, Any], items: ItemSource | None
) -> LivePolicy:
    """Return the policy of this name, which is made unless the store has it; add these items."""
    table = None if items is None else item_table(items)
    if name in engine.policies or name in engine.quarantined:
        live = engine.find(name)
        engine.settle(live.configure(**changes_to(live, options)))
    else:
        settings = PolicySettings(**{**options, "dim": given_dim(options["dim"], table)})
        live = engine.settle(engine.create(name, settings))
    if table is not None:
        put_table(engine, live, table)
    return live


def changes_to(known: LivePolicy, options: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of an existing policy that change; refuse another policy than the one wanted."""
    kept = known.state.settings
    given = {option: value for option, value in options.items() if value is not None or option in CHANGEABLE}
    wanted = replace(kept, **given)
    if not wanted.same_policy(kept):
        raise ArgumentError(
            f"{known.name!r} in this store is {kept.policy} with dim {kept.dim}, params {dict(kept.params)} "
            f"and seed {kept.seed}; open it so, or choose another name"
        )
    return {option: getattr(wanted, option) for option in CHANGEABLE}


def given_dim(dim: int | None, items: ItemTable | None) -> int:
    """Return the length of vectors, as given or as the items have it."""
    if dim is not None:
        return dim
    if not items:
        raise ArgumentError("dim must be given: the length of an item's vector; or give items")
    return int(items.vectors.shape[1])
