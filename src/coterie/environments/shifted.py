"""Environments whose rewards have an offset, with or without an intercept feature."""

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
    """Rounds of another environment, with a constant added to every reward, and an intercept feature.

    Without an intercept, a linear model has to explain the offset by unrelated features: an offset of 5
    multiplies regret by ten to thirty. With an intercept, the offset is one more coordinate to learn. The
    intercept is 5 rather than 1, because with a ridge of 1 a per-user policy would learn a large offset
    slowly. Everything else is as in the base.

    Parameters
    ----------
    base : Environment
        Any environment of single arms, such as `Stochastic(...)`.
    offset : float, default 0.0
        Constant added to every reward.
    intercept : bool, default True
        Whether to append the coordinate 5 to every arm.

    Raises
    ------
    ArgumentError
        If the base is not an environment, or its rewards are 0 or 1 and there is an offset.

    Examples
    --------
    >>> import coterie
    >>> from coterie.environments import Stochastic
    >>> data = coterie.datasets.load("synthetic", dim=5, n_users=20, n_items=100)
    >>> env = Shifted(Stochastic(data, 8, 2, 10), offset=5.0)
    >>> env.dim, env.block(0).items.shape
    (6, (100, 6))
    """

    def __init__(self, base: Environment, offset: float = 0.0, *, intercept: bool = True) -> None:
        """Shift the rewards of an environment."""
        if not hasattr(base, "block"):
            raise ArgumentError(f"base must be an Environment such as Stochastic(...), got {shown(base)}")
        self.base, self.offset = base, number("offset", offset)
        self.intercept = flag("intercept", intercept)
        if self.offset and base.block(0).binary:
            raise ArgumentError("offset must be 0 if rewards are 0 or 1, which cannot have an offset")
        self._lasting: tuple[Floats, Floats] | None = None

    def __getattr__(self, name: str) -> Any:
        """Return the attribute of the base."""
        if name == "base":
            raise AttributeError(name)
        return getattr(self.base, name)

    def __repr__(self) -> str:
        """Show the base, the offset and the intercept."""
        return f"<Shifted by {self.offset:g}{', with an intercept' if self.intercept else ''}: {self.base!r}>"

    @property
    def dim(self) -> int:
        """Length of an arm's vector."""
        return self.base.dim + self.intercept

    def block(self, number: int) -> Block:
        """Generate rounds number·256 to number·256 + 255 of the base, with the offset.

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
        """Append the intercept to the vectors; those of lasting items are computed once."""
        if not self.intercept:
            return block.items
        if block.lasting and self._lasting is not None and self._lasting[0] is block.items:
            return self._lasting[1]
        longer: Floats = np.column_stack([block.items, np.full(len(block.items), INTERCEPT)])
        longer.flags.writeable = False
        if block.lasting:
            self._lasting = (block.items, longer)
        return longer
