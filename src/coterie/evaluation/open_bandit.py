"""Logs of the Open Bandit Pipeline (obp): its dict of arrays, and the files of the Open Bandit Dataset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from coterie.errors import ArgumentError
from coterie.evaluation.log import Log
from coterie.evaluation.service_export import MOST_OFFERED
from coterie.feature_hashing import action_vectors, hash_features
from coterie.types import Floats
from coterie.validation import reals

if TYPE_CHECKING:
    import polars as pl

NEEDED = ("item_id", "click", "propensity_score")
USER_FEATURE, ITEM_FEATURE = "user_feature", "item_feature"
ITEM_DIM = 64
"""Length of vectors that are hashed from features of items."""


def is_open_bandit(columns: Iterable[str]) -> bool:
    """Tell whether a table is a file of the Open Bandit Dataset, such as `men.csv`."""
    return set(NEEDED) <= set(columns)


def plain_table(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the events of the Open Bandit Dataset with our names of columns.

    It has no ids of users, so users with the same features are one.
    """
    import polars as pl

    features = [name for name in frame.columns if name.startswith(USER_FEATURE)]
    user = pl.concat_str(features, separator="/") if features else pl.lit("everyone")
    times = [frame["timestamp"].alias("time")] if "timestamp" in frame.columns else []
    return frame.select(
        user.alias("user"),
        pl.col("item_id").cast(pl.String).alias("item"),
        pl.col("click").alias("reward"),
        pl.col("propensity_score").alias("propensity"),
        *times,
    )


def item_vectors(frame: pl.DataFrame) -> tuple[pl.Series, Floats]:
    """Return the ids and vectors of the items of `item_context.csv`, hashed from their features."""
    import polars as pl

    features = [name for name in frame.columns if name.startswith(ITEM_FEATURE)]
    if "item_id" not in frame.columns or not features:
        raise ArgumentError(
            f"items must be the file item_context.csv, with item_id and {ITEM_FEATURE}_0, "
            f"got {', '.join(frame.columns)}"
        )
    ids = frame["item_id"].cast(pl.String)
    described = [
        hash_features({"id": item}, {name: _value(row[name]) for name in features})
        for item, row in zip(ids.to_list(), frame.iter_rows(named=True), strict=True)
    ]
    return ids, action_vectors(hash_features(), described, ITEM_DIM)


def _value(text: Any) -> Any:
    """Return a number as one: a CSV file has text only."""
    try:
        return float(text)
    except (TypeError, ValueError):
        return text


def log_from_obp(feedback: Mapping[str, Any], users: Sequence[int | str] | None = None) -> Log:
    """Return the log of a dict of `obtain_batch_bandit_feedback` of the Open Bandit Pipeline.

    Parameters
    ----------
    feedback : mapping
        With `action`, `reward`, `pscore`, `n_actions`, and perhaps `context` and `action_context`. Every
        action was on offer in every round. `action_context` are the vectors of the actions; without it, each
        action has a feature of its own.
    users : sequence, optional
        The user of each round. By default rounds with the same `context` are of one user.

    Returns
    -------
    Log
        The rounds, in their order.

    Raises
    ------
    ArgumentError
        If an array is missing, or contexts hardly ever come again, so that they do not tell users apart.

    Examples
    --------
    >>> feedback = {"n_actions": 2, "action": [0, 1], "reward": [1, 0], "pscore": [0.5, 0.5]}
    >>> log_from_obp(feedback, users=["ann", "bob"])
    <Log: 2 events of 2 users, 2 arms of dim 2 a round, propensities 0.5>
    """
    for name in ("n_actions", "action", "reward", "pscore"):
        if feedback.get(name) is None:
            raise ArgumentError(f"the feedback of obp must have {name!r}, got {', '.join(feedback)}")
    count, rounds = int(feedback["n_actions"]), len(feedback["action"])
    if rounds * count > MOST_OFFERED:
        raise ArgumentError(f"rounds were among more than {MOST_OFFERED:,} actions in all; give fewer")
    vectors = feedback.get("action_context")
    labels = _users_of(feedback.get("context"), rounds) if users is None else list(users)
    if len(labels) != rounds:
        raise ArgumentError(f"users must have one for each of the {rounds} rounds, got {len(labels)}")
    ids, numbers = np.unique(np.array([str(one) for one in labels]), return_inverse=True)
    return Log(
        user_ids=ids.tolist(),
        users=numbers,
        items=np.eye(count) if vectors is None else reals("action_context", vectors, "a matrix"),
        offers=np.tile(np.arange(count), rounds),
        starts=np.arange(rounds + 1) * count,
        chosen=np.asarray(feedback["action"]),
        propensities=np.asarray(feedback["pscore"], np.float64),
        rewards=np.asarray(feedback["reward"], np.float64),
        times=np.arange(rounds, dtype=np.float64),
        item_ids=range(count),
        item_of=np.arange(count),
    )


def _users_of(context: ArrayLike | None, rounds: int) -> list[str]:
    """Return a name for each round, the same where contexts are."""
    if context is None:
        raise ArgumentError("the feedback has no 'context' that tells users apart: give users")
    _, numbers = np.unique(reals("context", context, "a matrix"), axis=0, return_inverse=True)
    kinds = int(numbers.max()) + 1 if len(numbers) else 0
    if kinds > max(rounds // 2, 1):
        raise ArgumentError(
            f"context has {kinds:,} different rows in {rounds:,} rounds, which are no users: give users, "
            "such as labels of groups of contexts"
        )
    return [f"context {one}" for one in numbers.reshape(-1).tolist()]
