"""Features in JSON become vectors of one length, the same on every machine and in every process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.errors import ArgumentError
from coterie.feature_hashing import MOST_PAIRS, HashedFeatures, action_vectors, hash_features
from reference.feature_hashing import vector

leaves = st.text(max_size=5) | st.booleans() | st.none() | st.floats(-1e6, 1e6) | st.integers(-99, 99)
features = st.dictionaries(
    st.text(max_size=4),
    leaves | st.lists(leaves, max_size=3) | st.dictionaries(st.text(), leaves),
)


@given(context=st.lists(features, max_size=2), action=st.lists(features, max_size=2), dim=st.integers(1, 40))
def test_a_vector_is_the_one_of_the_reference(context: list[Any], action: list[Any], dim: int) -> None:
    found = action_vectors(hash_features(*context), [hash_features(*action)], dim)
    assert found.shape == (1, dim)
    np.testing.assert_allclose(found[0], vector(context, action, dim), rtol=1e-12, atol=1e-12)


def test_vectors_never_change_from_one_release_to_the_next() -> None:
    """A policy has learnt from them."""
    context, tea = hash_features({"time": "morning"}), hash_features({"id": "tea", "grams": [2, 5]})
    expected = [0.67, 0.0, 0.418, 0.29, 0.541, 0.0, 0.0, 0.0]
    assert action_vectors(context, [tea], 8).round(3)[0].tolist() == expected


def test_a_context_changes_vectors_and_tells_actions_apart() -> None:
    tea, coffee = hash_features({"id": "tea"}), hash_features({"id": "coffee"})
    morning = action_vectors(hash_features({"time": "morning"}), [tea, coffee], 32)
    evening = action_vectors(hash_features({"time": "evening"}), [tea, coffee], 32)
    assert np.linalg.norm(morning, axis=1) == pytest.approx([1.0, 1.0])
    assert not np.allclose(morning[0], morning[1])
    assert not np.allclose(morning[0], evening[0])


def test_unlike_actions_are_nearly_orthogonal_where_there_is_room() -> None:
    actions = [hash_features({"id": str(n)}) for n in range(200)]
    vectors = action_vectors(hash_features({"time": "morning", "weather": "sunny"}), actions, 4_096)
    products = vectors @ vectors.T - np.eye(200)
    assert np.abs(products).mean() < 0.005


def test_too_many_pairs_are_refused() -> None:
    many = HashedFeatures(np.zeros(2**11, np.uint64), np.ones(2**11))
    action_vectors(many, [HashedFeatures(many.hashes[:512], many.values[:512])], 4)
    with pytest.raises(ArgumentError, match=r"at most 1,048,576 pairs .*, got 1,050,624"):
        action_vectors(many, [HashedFeatures(many.hashes[:513], many.values[:513])], 4)
    assert MOST_PAIRS == 2**20


def test_what_has_no_features_has_no_direction() -> None:
    assert action_vectors(hash_features(), [hash_features({"_hidden": 1, "null": None})], 3).tolist() == [
        [0.0, 0.0, 0.0]
    ]
    assert action_vectors(hash_features(), [], 3).shape == (0, 3)
