"""Logs of runs, and the policies of specs evaluated on a log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from coterie.errors import ArgumentError
from coterie.evaluation import Evaluation, Log, LoggingPolicy, evaluate
from coterie.experiments.results import labels_of
from coterie.experiments.run_plan import SharedParameters
from coterie.experiments.run_store import Run, naming_policy
from coterie.experiments.runner import DataFiles
from coterie.experiments.specs import EnvironmentSpec, PolicySpec
from coterie.policies.factories import find_factory, is_own
from coterie.progress import Progress
from coterie.simulation import Trace, simulate


def play_logged(
    run: Run, data: DataFiles, share: float, progress: Progress | None = None
) -> tuple[Log, Trace]:
    """Play a run with a share of uniform rounds; the draws depend on the seed of the run."""
    world = run.environment.make(data.dataset(run.environment), run.seed)
    with naming_policy(run.policy.name, run.seed):
        logger = LoggingPolicy(run.policy.make(world, run.seed), share, seed=run.seed)
        trace = simulate(logger, world, run.horizon, record=1, progress=progress)
    return logger.log(), trace


def specs_for_log(log: Log, policies: Sequence[PolicySpec], shared: SharedParameters) -> list[PolicySpec]:
    """The policies with parameters to start from, for which σ is the standard deviation of the rewards."""
    makers = [find_factory(one.name) for one in policies]
    shared.check_used(makers)
    for maker in makers:
        if not is_own(maker.name) and {"labels", "graph"} & set(maker.arguments):
            raise ArgumentError(f"{maker.name} needs the true clusters, and a log has none; leave it out")
        if not is_own(maker.name) and "catalogue" in maker.arguments:
            raise ArgumentError(f"{maker.name} needs a whole catalogue, and a log has none; leave it out")
    unit = EnvironmentSpec(noise=float(log.rewards.std()), n_users=log.n_users)
    return list(dict.fromkeys(shared.complete(one, unit) for one in policies))


class SpecMaker:
    """Makes the policy of a spec for a log, and remembers that it did."""

    def __init__(self, spec: PolicySpec) -> None:
        """Nothing is made yet."""
        self.spec, self.used = spec, False

    def __call__(self, log: Log, seed: int) -> Any:
        """A policy that has learnt nothing."""
        self.used = True
        return self.spec.make_for(log.n_users, log.dim, seed)


def evaluate_specs(
    log: Log,
    specs: Sequence[PolicySpec],
    estimators: Sequence[str],
    *,
    level: float,
    resamples: int,
    seed: int,
    advance: Callable[[int], object] | None = None,
) -> Evaluation:
    """Evaluate the policies; an exception of a policy of your own is raised with its name."""
    makers = {label: SpecMaker(spec) for label, spec in zip(labels_of(specs), specs, strict=True)}
    try:
        return evaluate(
            log, makers, estimators=estimators, level=level, resamples=resamples, seed=seed, advance=advance
        )
    except Exception:
        # Policies are made one after another, so the last one that was made is the one that failed.
        last = [maker.spec.name for maker in makers.values() if maker.used][-1:]
        with naming_policy("".join(last), seed):
            raise
