from __future__ import annotations

import multiprocessing

import pytest

from coterie import Recommender
from coterie.service.core.imports import import_log
from coterie.service.core.live_policy import IMPORTED_AT_ONCE
from inspection import live_of, store_of
from service import crash_child
from service.crash_child import CrashPoint, arm
from service.crashing import torture
from service.shops import ITEMS, same_state, shop

CYCLES = 24


def test_nothing_acknowledged_is_lost_when_the_process_is_killed(where: str) -> None:
    tally = torture(where, CYCLES, seed=1, longest=0.2)
    assert len(tally.decisions) > CYCLES
    assert len(tally.rewards) > CYCLES
    assert tally.parts


def _remove(where: str, statement: str, when: str) -> None:
    recommender = Recommender(store=where)
    arm(store_of(recommender), CrashPoint(when, statement, 1))
    recommender.remove_user("bob")


def _taught(**options: object) -> Recommender:
    one = shop(policy="LinUCBOne", **options)
    for user, item in zip(("alice", "bob") * 6, list(ITEMS) * 4, strict=True):
        one.feedback(user, 1.0, item=item)
    return one


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("statement", "done"),
    [("DELETE FROM log", False), ("DELETE FROM snapshot", False), ("COMMIT", True)],
)
def test_a_user_is_removed_wholly_or_not_at_all(statement: str, done: bool, when: str, where: str) -> None:
    _taught(store=where).close()
    context = multiprocessing.get_context("forkserver")
    process = context.Process(target=_remove, args=(where, statement, when))
    process.start()
    process.join()
    assert process.exitcode == -9
    expected = _taught()
    if done and when == "after":
        expected.remove_user("bob")
    with Recommender(store=where) as again:
        assert same_state(again, expected)
        assert ("bob" in again.users) == bool(store_of(again).history("default", "bob", 1))


LINE = '{"user": "u%d", "reward": 1, "x": [1, 0], "decision_id": "i%d"}'


def _import(where: str, point: CrashPoint) -> None:
    recommender = Recommender(store=where)
    arm(store_of(recommender), point)
    import_log(live_of(recommender), "\n".join(LINE % (n, n) for n in range(2_000)).encode())


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("statement", "nth", "done"),
    [
        ("INSERT INTO meta", 1, False),
        ("INSERT INTO log", 1, False),
        ("INSERT INTO log", 13, False),
        ("COMMIT", 1, False),
        ("COMMIT", 14, False),
        ("DELETE FROM meta", 1, False),
        ("COMMIT", 2 + 2_000 // IMPORTED_AT_ONCE, True),  # of the mark, of all pieces, then without the mark
    ],
)
def test_an_import_counts_all_its_lines_or_none(
    statement: str, nth: int, done: bool, when: str, where: str
) -> None:
    shop(store=where).close()
    point = CrashPoint(when, statement, nth)
    process = multiprocessing.get_context("forkserver").Process(target=_import, args=(where, point))
    process.start()
    process.join()
    assert process.exitcode == -9
    with Recommender(store=where) as again:
        counted = 2_000 if done and when == "after" else 0
        assert again.policy.rounds == len(again.users) == counted
        lines = "\n".join(LINE % (n, n) for n in range(2_000)).encode()
        assert import_log(live_of(again), lines) == (2_000 - counted, counted)


def test_every_point_of_the_child_is_a_statement_that_a_store_performs() -> None:
    import inspect

    from coterie.service.storage import event_store as store

    performed = inspect.getsource(store)
    assert all(statement in performed for _, statement in crash_child.POINTS)
