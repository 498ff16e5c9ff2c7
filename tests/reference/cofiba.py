"""COFIBA, as docs/algorithms/cofiba.md states it.

"Row n" is the n-th row of the table there. Nothing is kept but the samples of users and the graphs.
"""

import math

import numpy as np

from reference.users import Array, solve


class COFIBA:
    """Samples of users; a graph of items; a graph of users for each component, by the set of its items."""

    def __init__(
        self, n_users: int, dim: int, *, catalogue: Array, alpha: float, beta: float, ridge: float
    ) -> None:
        self.n_users, self.dim, self.catalogue = n_users, dim, catalogue
        self.alpha, self.beta, self.ridge = alpha, beta, ridge
        self.S, self.b = np.zeros((n_users, dim, dim)), np.zeros((n_users, dim))
        everything = frozenset(range(len(catalogue)))
        self.items = {k: set(everything - {k}) for k in everything}  # Row 1
        self.graphs = {everything: self.complete()}
        self.rounds = self.cuts = self.item_cuts = self.item_splits = self.shared = 0
        self.margin = math.inf

    def complete(self) -> dict[int, set[int]]:
        return {i: set(range(self.n_users)) - {i} for i in range(self.n_users)}

    def welcome(self, newcomers: int) -> None:
        """Newcomers are joined to everybody, in every graph. Row 1."""
        known, self.n_users = self.n_users, self.n_users + newcomers
        self.S = np.concatenate([self.S, np.zeros((newcomers, self.dim, self.dim))])
        self.b = np.concatenate([self.b, np.zeros((newcomers, self.dim))])
        for graph in self.graphs.values():
            for j in range(known, self.n_users):
                graph[j] = set(range(self.n_users)) - {j}
                for i in range(known):
                    graph[i].add(j)

    def cluster_of_item(self, item: int) -> frozenset[int]:
        return next(items for items in self.graphs if item in items)

    def neighbourhood(self, user: int, item: int | None) -> set[int]:
        """V; all users for an arm that is not in the catalogue. Row 2."""
        if item is None:
            return set(range(self.n_users))
        return component(self.graphs[self.cluster_of_item(item)], user)

    def scores(self, user: int, arms: Array, items: list[int | None]) -> Array:
        """Row 3."""
        found = []
        for x, item in zip(arms, items, strict=True):
            members = sorted(self.neighbourhood(user, item))
            M = self.ridge * np.eye(self.dim) + self.S[members].sum(axis=0)
            width = math.sqrt(float(x @ solve(M, x)) * math.log(self.rounds + 2))
            found.append(float(x @ solve(M, self.b[members].sum(axis=0))) + self.beta * width)
            self.shared += 1 < len(members) < self.n_users
        return np.array(found)

    def agree(self, i: int, j: int, x: Array) -> bool:
        """Do i and j agree on x?"""
        apart, widths = 0.0, 0.0
        for user, sign in ((i, 1), (j, -1)):
            M = self.ridge * np.eye(self.dim) + self.S[user]
            apart += sign * float(x @ solve(M, self.b[user]))
            widths += self.alpha * math.sqrt(float(x @ solve(M, x)) * math.log(self.rounds + 1))
        if i != j:
            self.margin = min(self.margin, abs(abs(apart) - widths))
        return abs(apart) <= widths

    def update(self, user: int, x: Array, reward: float, item: int | None) -> None:
        self.margin = math.inf
        self.rounds += 1
        self.S[user] += np.outer(x, x)  # Row 4
        self.b[user] += reward * x
        if item is not None:
            self.compare_users(user, item)
            self.compare_items(user, item)

    def compare_users(self, user: int, item: int) -> None:
        """Row 5."""
        graph = self.graphs[self.cluster_of_item(item)]
        for j in sorted(graph[user]):
            if not self.agree(user, j, self.catalogue[item]):
                graph[user].remove(j)
                graph[j].remove(user)
                self.cuts += 1

    def agreeing(self, user: int, item: int) -> set[int]:
        return {j for j in range(self.n_users) if self.agree(user, j, self.catalogue[item])}

    def compare_items(self, user: int, item: int) -> None:
        """Rows 6 and 7."""
        own, cluster = self.agreeing(user, item), self.cluster_of_item(item)
        for y in sorted(self.items[item]):
            if self.agreeing(user, y) != own:
                self.items[item].remove(y)
                self.items[y].remove(item)
                self.item_cuts += 1
        parts = {frozenset(component(self.items, y)) for y in cluster}
        if len(parts) > 1:
            self.item_splits += 1
            del self.graphs[cluster]
            self.graphs |= {part: self.complete() for part in parts}


def component(graph: dict[int, set[int]], start: int) -> set[int]:
    found, waiting = {start}, [start]
    while waiting:
        fresh = graph[waiting.pop()] - found
        found |= fresh
        waiting += fresh
    return found
