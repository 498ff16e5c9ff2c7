"""COFIBA: clusters of items, and clusters of users on each of them."""

from __future__ import annotations

from numpy.typing import ArrayLike

from coterie.policies.base import LinearBandit, Plan, by_appearance
from coterie.policies.declarations import Declaration, Grid, Style
from coterie.policies.items.item_clusters import ItemClusters
from coterie.types import Floats, Ints
from coterie.validation import nonnegative, user_index, whole


class COFIBA(LinearBandit):
    """Clusters of items, and clusters of users on each of them (Li et al. 2016).

    Items are similar if the same users agree about them. For each cluster of items there is a graph of users
    as that of `CLUB`, whose components share data; it loses edges between users who disagree on an item.

    Parameters
    ----------
    n_users : int
        Number of users, at least 1. They are numbered 0 to n_users − 1; `add_users` adds more later.
    dim : int
        Length d of an arm's vector, at least 1.
    catalogue : array_like of shape (n_items, dim)
        Vectors of all items, known from the start. The number of its row is an item's id, by which
        `recommend(..., items=ids)` and `update(..., item=id)` name it; without ids an item is known by its
        vector. Memory is about 16 n_users · n_items bytes: keep that product below 10⁷.
    alpha : float, default 1.0
        Factor α of the widths by which two users are compared, at least 0, in the unit of rewards. Start with
        the standard deviation σ of the noise; larger parts users and items later.
    beta : float, default 0.5
        Factor β of the bonus, at least 0, in the unit of rewards. Start with σ/2: the bonus also grows with
        √ln(t + 1).
    ridge : float, default 1.0
        λ of the ridge regressions, positive. Keep 1 for vectors of about unit length; scale it with ‖x‖².
    seed : int, default 0
        Seed of the policy's random numbers, at least 0; COFIBA draws none.

    Raises
    ------
    ArgumentError
        If a value is outside its range.

    Notes
    -----
    With CB_j(x) = α √(xᵀM_j⁻¹x · ln(t + 1)), users i and j agree on x if

        |xᵀθ̂ᵢ − xᵀθ̂_j| ≤ CBᵢ(x) + CB_j(x).

    The score of an arm is xᵀθ̂_V + β √(xᵀM_V⁻¹x · ln(t + 1)), where V is the component of the user in the
    graph of the arm's cluster of items. After a reward of the user i for x, i loses its edges in that graph
    to all who disagree with it on x, and x loses its edges to all items on which other users agree with i.
    If a cluster of items comes apart, each part starts with a complete graph of users. An arm that is not in
    the catalogue is scored by the data of all users, and its rewards part nobody.

    References
    ----------
    Li, Karatzoglou and Gentile, *Collaborative filtering bandits*, SIGIR 2016.

    Examples
    --------
    >>> policy = COFIBA(n_users=2, dim=2, catalogue=[[1.0, 0.0], [0.0, 1.0]], alpha=0.1)
    >>> for _ in range(9):
    ...     policy.update(0, [1.0, 0.0], 1.0, item=0)
    ...     policy.update(1, [1.0, 0.0], -1.0, item=0)
    >>> policy.item_labels().tolist()
    [0, 1]
    >>> policy.cluster_on(0, item=1).tolist()
    [0, 1]
    """

    declared = Declaration(
        summary="clusters items too: users are clustered anew on each cluster of items",
        use_when="a catalogue is small and known, and which users are similar depends on the kind of item",
        style=Style("COFIBA", "#332288", "X", "-."),
        grid=Grid(alpha=(0.0, 0.02, 0.1, 0.5, 1.0, 2.0), beta=(0.1, 0.25, 0.5, 1.0)),
        cost=300.0,
        figures=("field",),
    )

    _learner: ItemClusters

    def __init__(
        self,
        n_users: int,
        dim: int,
        *,
        catalogue: ArrayLike,
        alpha: float = 1.0,
        beta: float = 0.5,
        ridge: float = 1.0,
        seed: int = 0,
    ) -> None:
        """Make the policy, before its first round."""
        super().__init__(n_users, dim, catalogue=catalogue, alpha=alpha, beta=beta, ridge=ridge, seed=seed)

    @staticmethod
    def _plan(
        n_users: int, dim: int, *, catalogue: Floats, alpha: float, beta: float, ridge: float, seed: int
    ) -> Plan:
        settings = {
            "catalogue": catalogue,
            "alpha": nonnegative("alpha", alpha),
            "beta": nonnegative("beta", beta),
        }
        return Plan(ItemClusters, settings)

    def item_labels(self) -> Ints:
        """Find the cluster of every item of the catalogue.

        Returns
        -------
        array of int, shape (n_items,)
            Labels 0, 1, … in order of first appearance.
        """
        with self._lock:
            return by_appearance(self._learner.labels_of_items())

    def cluster_on(self, user: int, item: int) -> Ints:
        """Find the users whose data count for a user on an item.

        Parameters
        ----------
        user : int
            User, from 0 to n_users − 1.
        item : int
            Item, from 0 to n_items − 1.

        Returns
        -------
        array of int
            Users, ascending, the user itself included.
        """
        item = whole("item", item, 0, len(self._arguments["catalogue"]) - 1)
        with self._lock:
            return self._learner.cluster_on(user_index(user, self._n_users), item)
