from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.kernels.bits import component, components, drop, has, listed, lowest, meet, put, same
from coterie.policies.partition import complete, join_all
from coterie.types import Words

CASES = settings(deadline=None, derandomize=True, max_examples=100)
SIZES = st.sampled_from([1, 2, 63, 64, 65, 127, 128, 129, 200])


class Sets(NamedTuple):
    """Two sets of users out of n."""

    n: int
    a: set[int]
    b: set[int]


@st.composite
def two_sets(draw: st.DrawFn) -> Sets:
    n = draw(SIZES)
    members = st.sets(st.integers(0, n - 1), max_size=40)
    a = draw(members)
    return Sets(n, a, draw(st.one_of(members, st.just(set(a)))))


def row(members: set[int], n: int) -> Words:
    words = np.zeros((n + 63) // 64, np.uint64)
    for user in members:
        put(words, user)
    return words


@CASES
@given(two_sets())
def test_a_row_of_bits_is_a_set(sets: Sets) -> None:
    n, a, b = sets
    mine, other = row(a, n), row(b, n)
    assert listed(mine, n).tolist() == sorted(a)
    assert [has(mine, user) for user in range(n)] == [user in a for user in range(n)]
    assert meet(mine, other) == bool(a & b)
    assert same(mine, other) == (a == b)


@CASES
@given(two_sets())
def test_dropping_takes_out_what_is_there_and_nothing_else(sets: Sets) -> None:
    n, a, b = sets
    words = row(a, n)
    for user in b:
        drop(words, user)
        drop(words, user)
    assert listed(words, n).tolist() == sorted(a - b)


@CASES
@given(st.integers(1, 2**64 - 1))
def test_the_lowest_bit_is_where_the_word_stops_being_even(word: int) -> None:
    assert lowest(np.uint64(word)) == (word & -word).bit_length() - 1


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, set[tuple[int, int]]]:
    n = draw(SIZES)
    user = st.integers(0, n - 1)
    pairs = draw(st.sets(st.tuples(user, user), max_size=60))
    return n, {(i, j) for i, j in pairs if i != j}


def reachable(n: int, pairs: set[tuple[int, int]]) -> list[int]:
    """The lowest user that each user is connected to."""
    lowest_of = list(range(n))
    for _ in range(n):
        before = list(lowest_of)
        for i, j in pairs:
            lowest_of[i] = lowest_of[j] = min(lowest_of[i], lowest_of[j])
        if lowest_of == before:
            break
    return lowest_of


@CASES
@given(graphs())
def test_components_are_what_can_be_reached_in_order_of_the_lowest_user(
    graph: tuple[int, set[tuple[int, int]]],
) -> None:
    n, pairs = graph
    edges = np.zeros((n, (n + 63) // 64), np.uint64)
    for i, j in pairs:
        put(edges[i], j)
        put(edges[j], i)
    roots = reachable(n, pairs)
    labels = np.empty(n, np.int64)
    assert components(edges, labels) == len(set(roots))
    assert labels.tolist() == [sorted(set(roots)).index(root) for root in roots]
    for user in {0, n - 1, n // 2}:
        wanted = [other for other in range(n) if roots[other] == roots[user]]
        assert listed(component(edges, user), n).tolist() == wanted


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 128, 130])
def test_the_complete_graph_joins_all_but_a_user_with_itself(n: int) -> None:
    edges = complete(n)
    for user in range(n):
        assert listed(edges[user], n).tolist() == [other for other in range(n) if other != user]


@pytest.mark.parametrize(("known", "n"), [(1, 2), (3, 5), (60, 70), (63, 64), (64, 65), (64, 200)])
def test_newcomers_are_joined_to_all_and_old_edges_stay(known: int, n: int) -> None:
    edges = np.zeros((n, (n + 63) // 64), np.uint64)
    put(edges[0], known - 1)
    put(edges[known - 1], 0)
    join_all(edges, known, n)
    for user in range(known, n):
        assert listed(edges[user], n).tolist() == [other for other in range(n) if other != user]
    old = [[] if known == 1 else [known - 1], *([[]] * (known - 2)), [0]][:known]
    for user in range(1, known):
        assert listed(edges[user], n).tolist() == [*old[user], *range(known, n)]
