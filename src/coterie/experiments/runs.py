"""A run: one policy in one environment with one seed, and the name that everything about it gives."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from threading import Event

from coterie.datasets.dataset import Dataset
from coterie.experiments.fingerprint import fingerprint
from coterie.experiments.makers import blamed
from coterie.experiments.specs import EnvironmentSpec, PolicySpec
from coterie.progress import Progress
from coterie.simulation import Trace, simulate
from coterie.validation import whole


@dataclass(frozen=True, kw_only=True)
class Run:
    """All that determines a result; `data` is the sha256 of the dataset's file, None where there is none.

    >>> policy = PolicySpec("LinUCBInd", {"beta": 0.1})
    >>> len(Run(environment=EnvironmentSpec(), policy=policy, horizon=1000, seed=0).id)
    64
    """

    environment: EnvironmentSpec
    policy: PolicySpec
    horizon: int
    seed: int
    record: int = 200
    data: str | None = None

    def __post_init__(self) -> None:
        """Refuse a run that cannot be played."""
        whole("seed", self.seed, 0)
        whole("horizon", self.horizon, 1)
        whole("record", self.record, 1)

    @cached_property
    def description(self) -> str:
        """Everything that determines the result, as JSON of one form."""
        facts = {
            "environment": asdict(self.environment),
            "policy": {"name": self.policy.name, "params": dict(self.policy.params)},
            "horizon": self.horizon,
            "seed": self.seed,
            "record": self.record,
            "data": self.data,
            "fingerprint": fingerprint(self.policy.name, self.environment.dataset),
        }
        return json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)

    @cached_property
    def id(self) -> str:
        """The sha256 of the description: the name of the file that holds the result."""
        return sha256(self.description.encode()).hexdigest()

    def play(self, dataset: Dataset, *, stop: Event | None = None, progress: Progress | None = None) -> Trace:
        """Play it: the same trace on every thread, process and machine, but for `seconds`."""
        world = self.environment.make(dataset, self.seed)
        with blamed(self.policy.name, self.seed):
            policy = self.policy.make(world, self.seed)
            return simulate(policy, world, self.horizon, record=self.record, stop=stop, progress=progress)


def read_description(text: str) -> Run:
    """The run that a description tells of; its id may differ where the code has changed since.

    >>> policy = PolicySpec("LinUCBInd", {"beta": 0.1})
    >>> run = Run(environment=EnvironmentSpec(), policy=policy, horizon=1000, seed=0)
    >>> read_description(run.description) == run
    True
    """
    facts = json.loads(text)
    facts.pop("fingerprint")
    environment, policy = EnvironmentSpec(**facts.pop("environment")), PolicySpec(**facts.pop("policy"))
    return Run(environment=environment, policy=policy, **facts)
