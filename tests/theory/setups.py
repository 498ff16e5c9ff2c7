"""Problems to try the theory on."""

from __future__ import annotations

from hypothesis import strategies as st

from coterie.theory import Setup

PAPER = Setup(n_users=50, dim=50, n_clusters=10, n_arms=100, horizon=100_000, gamma=0.5, lambda_x=0.017)
SMALL = Setup(
    n_users=8,
    dim=4,
    n_clusters=2,
    n_arms=10,
    horizon=1_000,
    gamma=0.5,
    lambda_x=0.25,
    ridge=2.0,
    norm=3.0,
    sigma=0.5,
    truncation=1.0,
)


@st.composite
def setups(draw: st.DrawFn) -> Setup:
    dim = draw(st.integers(1, 100))
    n_users = draw(st.integers(2, 1_000))
    norm = draw(st.floats(0.5, 5.0))
    return Setup(
        n_users=n_users,
        dim=dim,
        n_clusters=draw(st.integers(1, n_users)),
        n_arms=draw(st.integers(1, 200)),
        horizon=draw(st.integers(10, 10**9)),
        gamma=draw(st.floats(0.01, 2.0)),
        lambda_x=norm**2 / dim * draw(st.floats(0.01, 1.0)),
        ridge=draw(st.floats(0.1, 10.0)),
        norm=norm,
    )
