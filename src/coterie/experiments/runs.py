"""A run: one contender in one world with one seed, and the name that everything about it gives."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from threading import Event

from coterie.datasets.dataset import Dataset
from coterie.errors import ArgumentError
from coterie.experiments.contenders import Contender
from coterie.experiments.versions import algorithm
from coterie.experiments.worlds import World
from coterie.progress import Progress
from coterie.seeding import check_seed
from coterie.simulation import simulate
from coterie.traces import Trace


@dataclass(frozen=True, kw_only=True)
class Run:
    """All that determines a result; `data` is the sha256 of the dataset's file, None where there is none.

    >>> run = Run(world=World(), contender=Contender(policy="LinUCBInd", beta=0.1), horizon=1000, seed=0)
    >>> len(run.id)
    64
    """

    world: World
    contender: Contender
    horizon: int
    seed: int
    record: int = 200
    data: str | None = None

    def __post_init__(self) -> None:
        """Refuse a run that cannot be played."""
        check_seed(self.seed)
        if self.horizon < 1 or self.record < 1:
            raise ArgumentError(
                f"horizon and record must be at least 1, got {self.horizon!r} and {self.record!r}"
            )

    @cached_property
    def algorithm(self) -> str:
        """The version of the code that plays it."""
        return algorithm(self.contender.policy, self.world.setting, self.world.dataset)

    @cached_property
    def description(self) -> str:
        """Everything that determines the result, as JSON of one form."""
        facts = {**asdict(self), "algorithm": self.algorithm}
        return json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)

    @cached_property
    def id(self) -> str:
        """The sha256 of the description: the name of the file that holds the result."""
        return sha256(self.description.encode()).hexdigest()

    def play(self, dataset: Dataset, *, stop: Event | None = None, progress: Progress | None = None) -> Trace:
        """Play it: the same trace on every thread, process and machine, but for `seconds`."""
        world = self.world.environment(dataset, self.seed)
        policy = self.contender.make(world, self.seed)
        return simulate(policy, world, self.horizon, record=self.record, stop=stop, progress=progress)


def read_description(text: str) -> Run:
    """The run that a description tells of; its id may differ where the algorithm has changed since.

    >>> run = Run(world=World(), contender=Contender(policy="LinUCBInd", beta=0.1), horizon=1000, seed=0)
    >>> read_description(run.description) == run
    True
    """
    facts = json.loads(text)
    facts.pop("algorithm")
    world, contender = World(**facts.pop("world")), Contender(**facts.pop("contender"))
    return Run(world=world, contender=contender, **facts)
