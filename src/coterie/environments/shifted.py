"""Environments whose rewards are not centred, with or without an intercept among the features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.datasets.item_vectors import INTERCEPT
from coterie.environments.blocks import Block
from coterie.errors import ArgumentError
from coterie.types import Floats
from coterie.validation import flag, number, shown

if TYPE_CHECKING:
    from coterie.environments.blocks import Environment


class Shifted:
    """Environment like another one, with a number added to every reward, and an intercept.

    Without an intercept a linear model has to explain the offset by directions that have nothing to do with
    it: an offset of 5 multiplies regret by ten to thirty. With one, it is one more coordinate to learn. That
    is 5 rather than 1, since a ridge of 1 would make a policy for each user learn a large offset slowly.
    Everything else is as the base has it.

    Parameters
    ----------
    base : Environment
        Any environment of single arms, such as `Stochastic(...)`.
    offset : float, default 0.0
        Number added to every reward.
    intercept : bool, default True
        Whether to append the coordinate 5 to every arm.

    Raises
    ------
    ArgumentError
        If the base is no environment, or its rewards are 0 or 1 and there is an offset.

    Examples
    --------
    >>> import coterie
    >>> from coterie.environments import Stochastic
    >>> data = coterie.datasets.load("synthetic", dim=5, n_users=20, n_items=100)
    >>> world = Shifted(Stochastic(data, 8, 2, 10), offset=5.0)
    >>> world.dim, world.block(0).items.shape
    (6, (100, 6))
    """

    def __init__(self, base: Environment, offset: float = 0.0, *, intercept: bool = True) -> None:
        """Shift the rewards of a world."""
        if not hasattr(base, "block"):
            raise ArgumentError(f"base must be a world such as Stochastic(...), got {shown(base)}")
        self.base, self.offset = base, number("offset", offset)
        self.intercept = flag("intercept", intercept)
        if self.offset and base.block(0).binary:
            raise ArgumentError("rewards of 0 and 1 are probabilities: they cannot have an offset")
        self._lasting: tuple[Floats, Floats] | None = None

    def __getattr__(self, name: str) -> Any:
        """Pass on the attributes of the base environment."""
        if name == "base":
            raise AttributeError(name)
        return getattr(self.base, name)

    def __repr__(self) -> str:
        """The base, and what was added."""
        return f"<Shifted by {self.offset:g}{', with an intercept' if self.intercept else ''}: {self.base!r}>"

    @property
    def dim(self) -> int:
        """Length of an arm's vector."""
        return self.base.dim + self.intercept

    def block(self, number: int) -> Block:
        """Draw rounds number·256 to number·256 + 255 of the base, shifted.

        Parameters
        ----------
        number : int
            Number of the block, from 0.

        Returns
        -------
        Block
            The rounds.
        """
        block = self.base.block(number)
        return block._replace(
            items=self._items(block), means=block.means + self.offset if self.offset else block.means
        )

    def _items(self, block: Block) -> Floats:
        """The vectors, with the intercept appended; those of lasting items are made once."""
        if not self.intercept:
            return block.items
        if block.lasting and self._lasting is not None and self._lasting[0] is block.items:
            return self._lasting[1]
        longer: Floats = np.column_stack([block.items, np.full(len(block.items), INTERCEPT)])
        longer.flags.writeable = False
        if block.lasting:
            self._lasting = (block.items, longer)
        return longer
