"""A forked process neither hangs nor touches the store of its parent."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import os, sys, threading
from coterie import Recommender, StoreError
one = Recommender(items={"tea": [1.0, 0.0]}, store=sys.argv[1])
one.decide("alice", decision_id="d1")
busy = threading.Thread(target=lambda: [one.decide("bob") for _ in range(200)])
busy.start()
child = os.fork()
if not child:
    try:
        one.decide("alice")
    except StoreError as error:
        print(error, flush=True)
    sys.exit(7)  # with all that happens at the end of a process
status = os.waitpid(child, 0)[1]
busy.join()
one.reward("d1", 1.0)
one.close()
made = Recommender(store=sys.argv[1]).summary.events["decision"]
print(os.waitstatus_to_exitcode(status), made, flush=True)
"""


@pytest.mark.parametrize("attempt", range(3))
def test_a_forked_process_refuses_and_ends(attempt: int, where: str) -> None:
    command = [sys.executable, "-c", SCRIPT, where]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert told.stdout.splitlines() == [
        "this process was forked, and its parent has the store: open a store of your own",
        "7 201",
    ], told.stderr
