"""What a policy or a confidence cannot be made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from contracts.examples import ALL, SMOOTHED, THEORY, TUNED, is_one_sentence, make, ring
from coterie import (
    CLUB,
    SCLUB,
    ArgumentError,
    GOBLin,
    GraphUCB,
    LinUCBInd,
    LinUCBOne,
    LinUCBOracle,
    PhaseUniCLUB,
    SmoothedTheory,
    Theory,
    Tuned,
    UniCLUB,
    UniSCLUB,
)


def loosely(maker: object) -> Any:
    """A maker whose arguments no type checker looks at."""
    return maker


ANY: Any = None
NAN, INF = np.nan, np.inf

ASYMMETRIC = ring(3)
ASYMMETRIC[0, 2] = 1.0
MADE: dict[str, Callable[[], object]] = {
    "no users": lambda: LinUCBOne(0, 2),
    "users as float": lambda: loosely(LinUCBOne)(2.0, 2),
    "users as bool": lambda: LinUCBOne(True, 2),
    "no dimension": lambda: LinUCBInd(2, 0),
    "dimension as string": lambda: loosely(LinUCBInd)(2, "2"),
    "seed negative": lambda: LinUCBOne(2, 2, seed=-1),
    "seed float": lambda: loosely(LinUCBOne)(2, 2, seed=1.5),
    "ridge a matrix": lambda: loosely(LinUCBOne)(2, 2, ridge=np.eye(2)),
    "ridge too small to divide by": lambda: LinUCBOne(2, 2, ridge=5e-324),
    "beta negative": lambda: LinUCBOne(2, 2, beta=-0.1),
    "beta nan": lambda: LinUCBInd(2, 2, beta=NAN),
    "beta inf": lambda: LinUCBOracle(2, 2, labels=[0, 1], beta=INF),
    "labels too few": lambda: LinUCBOracle(3, 2, labels=[0, 1]),
    "labels too many": lambda: LinUCBOracle(3, 2, labels=[0, 1, 0, 1]),
    "labels as floats": lambda: LinUCBOracle(2, 2, labels=[0.0, 1.0]),
    "labels as bools": lambda: LinUCBOracle(2, 2, labels=[False, True]),
    "labels as a matrix": lambda: LinUCBOracle(2, 2, labels=[[0, 1]]),
    "labels ragged": lambda: LinUCBOracle(2, 2, labels=[[0], [0, 1]]),
    "labels none": lambda: LinUCBOracle(2, 2, labels=ANY),
    "graph not symmetric": lambda: GOBLin(3, 2, graph=ASYMMETRIC),
    "graph not symmetric for GraphUCB": lambda: GraphUCB(3, 2, graph=ASYMMETRIC),
    "graph of the wrong size": lambda: GOBLin(3, 2, graph=ring(4)),
    "graph not square": lambda: GraphUCB(3, 2, graph=np.zeros((3, 2))),
    "graph with loops": lambda: GOBLin(2, 2, graph=np.eye(2)),
    "graph with negative weights": lambda: GOBLin(2, 2, graph=[[0, -1], [-1, 0]]),
    "graph nan": lambda: GOBLin(2, 2, graph=[[0, NAN], [NAN, 0]]),
    "graph ragged": lambda: GOBLin(2, 2, graph=[[0, 1], [1]]),
    "graph none": lambda: GraphUCB(2, 2, graph=ANY),
    "alpha negative": lambda: GOBLin(2, 2, graph=ring(2), alpha=-1.0),
    "delta zero": lambda: GraphUCB(2, 2, graph=ring(2), delta=0.0),
    "delta one": lambda: GraphUCB(2, 2, graph=ring(2), delta=1.0),
    "arrivals zero": lambda: SCLUB(2, 2, confidence=TUNED, arrivals=0.0),
    "arrivals negative": lambda: SCLUB(2, 2, confidence=TUNED, arrivals=-1.0),
    "theory delta one": lambda: Theory(horizon=10, lambda_x=0.1, delta=1.0),
    "theory delta zero": lambda: Theory(horizon=10, lambda_x=0.1, delta=0.0),
    "theory delta nan": lambda: Theory(horizon=10, lambda_x=0.1, delta=NAN),
    "theory delta negative": lambda: Theory(horizon=10, lambda_x=0.1, delta=-0.5),
    "theory horizon one": lambda: Theory(horizon=1, lambda_x=0.1),
    "theory horizon float": lambda: loosely(Theory)(horizon=1e5, lambda_x=0.1),
    "theory lambda zero": lambda: Theory(horizon=10, lambda_x=0.0),
    "theory gamma zero": lambda: Theory(horizon=10, lambda_x=0.1, gamma=0.0),
    "theory norm zero": lambda: Theory(horizon=10, lambda_x=0.1, norm=0.0),
    "theory norm inf": lambda: Theory(horizon=10, lambda_x=0.1, norm=INF),
    "smoothed delta two": lambda: SmoothedTheory(horizon=10, sigma=0.1, n_arms=5, truncation=1.0, delta=2.0),
    "smoothed sigma zero": lambda: SmoothedTheory(horizon=10, sigma=0.0, n_arms=5, truncation=1.0),
    "smoothed no arms": lambda: SmoothedTheory(horizon=10, sigma=0.1, n_arms=0, truncation=1.0),
    "smoothed truncation zero": lambda: SmoothedTheory(horizon=10, sigma=0.1, n_arms=5, truncation=0.0),
    "smoothed constant zero": lambda: SmoothedTheory(horizon=10, sigma=0.1, n_arms=5, truncation=1.0, c1=0.0),
    "smoothed horizon one": lambda: SmoothedTheory(horizon=1, sigma=0.1, n_arms=5, truncation=1.0),
    "tuned alpha negative": lambda: Tuned(alpha=-1.0, beta=0.1),
    "tuned beta nan": lambda: Tuned(alpha=1.0, beta=NAN),
    "tuned explore negative": lambda: Tuned(alpha=1.0, beta=0.1, explore=-1),
    "tuned explore float": lambda: loosely(Tuned)(alpha=1.0, beta=0.1, explore=1.5),
    "tuned phase negative": lambda: Tuned(alpha=1.0, beta=0.1, phase=-1),
    "tuned growth zero": lambda: Tuned(alpha=1.0, beta=0.1, growth=0.0),
    "no gap for UniCLUB": lambda: UniCLUB(2, 2, confidence=Theory(horizon=10, lambda_x=0.1)),
    "no gap for UniSCLUB": lambda: UniSCLUB(2, 2, confidence=Theory(horizon=10, lambda_x=0.1)),
    "smoothed for UniCLUB": lambda: UniCLUB(2, 2, confidence=SMOOTHED),
    "smoothed for PhaseUniCLUB": lambda: PhaseUniCLUB(2, 2, confidence=SMOOTHED),
    "gap too small to square": lambda: UniCLUB(
        2, 2, confidence=Theory(horizon=10, lambda_x=0.1, gamma=1e-200)
    ),
    "exploration beyond 64 bits": lambda: (
        UniCLUB(2, 2, confidence=Tuned(alpha=1.0, beta=0.1, explore=10**30)).exploring
    ),
    "no confidence": lambda: CLUB(2, 2, confidence=ANY),
}


@pytest.mark.parametrize("wish", sorted(MADE))
def test_what_cannot_be_made_is_refused_by_one_sentence(wish: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        MADE[wish]()
    assert is_one_sentence(caught.value), str(caught.value)


@pytest.mark.parametrize("ridge", [0.0, -1.0, NAN, INF, "1", None, True, 1j])
@pytest.mark.parametrize("example", ALL)
def test_a_ridge_that_is_not_positive_is_refused(example: str, ridge: Any) -> None:
    with pytest.raises(ArgumentError, match="ridge must") as caught:
        make(example, ridge=ridge)
    assert is_one_sentence(caught.value), str(caught.value)


def test_t0_without_the_gap_says_to_give_gamma_but_others_do_not_need_it() -> None:
    unknown_gap = Theory(horizon=1000, lambda_x=0.1)
    with pytest.raises(ArgumentError, match=r"gamma=0\.5"):
        unknown_gap.exploration(6, 3)
    assert CLUB(6, 3, confidence=unknown_gap).rounds == 0
    assert PhaseUniCLUB(6, 3, confidence=unknown_gap).exploring
    assert UniCLUB(6, 3, confidence=THEORY).exploring
