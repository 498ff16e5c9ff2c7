"""Who is alike, a picture of clusters, and a table of users."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

import coterie
from coterie.policies.segments import Segmented

mpl.use("agg")
GROUPS = np.arange(60) % 3


def taught(make: type[Segmented], **options: Any) -> Segmented:
    """Sixty users in three groups with 30 rewards each, and one who has given none."""
    rng = np.random.default_rng(5)
    users = np.tile(np.arange(60), 30)
    xs = rng.normal(size=(1800, 3))
    rewards = xs[np.arange(1800), GROUPS[users]] + 0.05 * rng.normal(size=1800)
    policy: Any = make(61, 3, **options)
    found: Segmented = policy.fit(users, xs, rewards)
    return found


@pytest.mark.parametrize("make", [coterie.AutoCLUB, coterie.HierUCB, coterie.HierTS])
def test_the_most_similar_are_those_of_the_same_group(make: type[Segmented]) -> None:
    policy = taught(make)
    for user in range(60):
        found = policy.similar(user, k=3)
        assert GROUPS[found.users].tolist() == [GROUPS[user]] * 3
        assert user not in found.users
        assert np.all(np.diff(found.distances) >= 0)
    everybody = policy.similar(0, k=100)
    assert sorted(everybody.users.tolist()) == list(range(1, 60))  # of user 60 nothing is known


def test_distances_are_differences_of_expected_rewards() -> None:
    policy = taught(coterie.HierUCB, intercept=False)
    xs = np.random.default_rng(5).normal(size=(1800, 3))
    found = policy.similar(0, k=1)
    one, other = (policy.scores(user, xs).mean for user in (0, int(found.users[0])))
    expected = one - other
    assert found.distances[0] == pytest.approx(np.sqrt(np.mean(expected**2)), rel=1e-6)


@pytest.mark.parametrize(("user", "k"), [(61, 1), (-1, 1), (0, 0), (0, 1.5)])
def test_what_is_no_user_or_no_number_is_refused(user: int, k: Any) -> None:
    with pytest.raises(coterie.ArgumentError):
        taught(coterie.HierUCB).similar(user, k)


@pytest.mark.parametrize("make", [coterie.AutoCLUB, coterie.HierUCB])
def test_every_user_with_rewards_is_a_point_of_its_group(make: type[Segmented]) -> None:
    axes = taught(make).plot_clusters()
    drawn = [np.asarray(one.get_offsets()) for one in axes.collections]
    assert sorted(map(len, drawn)) == [20, 20, 20]
    assert [str(one.get_label()).split(" ", 1)[1] for one in axes.collections] == ["(20 users)"] * 3
    centres = [points.mean(axis=0) for points in drawn]
    inside = max(float(np.ptp(points, axis=0).max()) for points in drawn)
    between = min(float(np.linalg.norm(a - b)) for a in centres for b in centres if a is not b)
    assert between > 3 * inside


def test_a_picture_goes_where_it_is_told_and_without_rewards_is_empty() -> None:
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    policy = coterie.AutoCLUB(2, 1)
    assert policy.plot_clusters(ax=axes) is axes
    assert not axes.collections
    policy.update(0, [1.0], 1.0)
    policy.update(1, [1.0], 0.0)
    assert sum(len(np.asarray(one.get_offsets())) for one in policy.plot_clusters(ax=axes).collections) == 2


def test_the_table_of_users_has_what_the_policy_has() -> None:
    policy = taught(coterie.AutoCLUB)
    table = policy.to_frame()
    assert table.columns == ["user", "rewards", "cluster", "estimate"]
    assert table["rewards"].to_list() == [30] * 60 + [0]
    assert table["cluster"].to_list() == policy.labels().tolist()
    assert np.array_equal(np.array(table["estimate"].to_list()), policy.estimates)
    assert len(coterie.LinUCBInd(3, 2, beta=0.1).to_frame()) == 3
