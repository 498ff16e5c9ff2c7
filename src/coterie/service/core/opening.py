"""How a recommender comes to its policy: it is in the store already, or it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coterie.errors import ArgumentError
from coterie.service.core.engine import PolicyEngine
from coterie.service.core.live_policy import LivePolicy
from coterie.service.settings import CHANGEABLE, PolicySettings


def open_policy(
    engine: PolicyEngine, name: str, told: dict[str, Any], items: Mapping[str, ArrayLike] | None
) -> LivePolicy:
    """The policy of this name in the store, if it is what was asked for, or a new one; with these items."""
    known = engine.policies.get(name)
    if known is None:
        live = engine.create(name, PolicySettings(**{**told, "dim": given_dim(told["dim"], items)}))
    else:
        live = known
        live.configure(**changes_to(known, told))
    if items is not None:
        live.change_items(items)
    engine.wait()
    return live


def changes_to(known: LivePolicy, told: dict[str, Any]) -> dict[str, Any]:
    """What is to change of a policy that is there; another one than was asked for is refused."""
    kept = known.state.settings
    given = {option: value for option, value in told.items() if value is not None or option in CHANGEABLE}
    wanted = replace(kept, **given)
    if not wanted.same_policy(kept):
        raise ArgumentError(
            f"{known.name!r} in this store is {kept.policy} with dim {kept.dim}, params {dict(kept.params)} "
            f"and seed {kept.seed}; open it so, or choose another name"
        )
    return {option: getattr(wanted, option) for option in CHANGEABLE}


def given_dim(dim: int | None, items: Mapping[str, ArrayLike] | None) -> int:
    """The length of vectors, as said or as the items have it."""
    if dim is not None:
        return dim
    if not items:
        raise ArgumentError("dim must be given: the length of an item's vector; or items that tell it")
    return int(np.size(np.asarray(next(iter(items.values())))))
