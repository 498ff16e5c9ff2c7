"""From what was typed to estimates: the log, the policies with their parameters, the passes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coterie.cli.output import print_note
from coterie.cli.progress import event_progress
from coterie.cli.run_plan import DEFAULT_POLICIES, check_used, complete_spec, parse_policy
from coterie.cli.settings import RunSettings, assignments
from coterie.errors import ArgumentError
from coterie.evaluation import Evaluation, Log, evaluate, read_log
from coterie.evaluation.estimates import passes
from coterie.evaluation.estimators import uniform_play
from coterie.experiments.results import labels_of
from coterie.experiments.run_store import naming_policy
from coterie.experiments.specs import EnvironmentSpec, PolicySpec
from coterie.policies.makers import find_maker, is_own

CENTRED = 0.1
"""Standard deviations by which the mean reward of uniform play may be away from 0."""

INTERCEPT = "rewards are not centred: a feature that is 1 was added, and --no-intercept leaves it out"


def open_log(
    path: Path, columns: str | None, items: Path | None, *, uniform: bool, intercept: bool | None
) -> Log:
    """The log, with an intercept where it was asked for or rewards are not centred."""
    pairs = [pair for pair in (columns or "").split(",") if pair.strip()]
    names = {ours: str(theirs) for ours, theirs in assignments("--columns", pairs).items()}
    log = read_log(path, columns=names, items=items, uniform=uniform)
    if intercept is None:
        intercept = not log.has_intercept and is_off_centre(log)
        if intercept:
            print_note(f"coterie: {INTERCEPT}")
    return log.with_intercept() if intercept else log


def is_off_centre(log: Log) -> bool:
    """Is the mean reward of uniform play clearly more than a tenth of a standard deviation from 0?"""
    found = uniform_play(log)
    margin = CENTRED + 3.0 / max(found.effective, 1.0) ** 0.5
    return bool(abs(found.value) > margin * float(log.rewards.std()))


def plan_policies(log: Log, words: Sequence[str], params: Sequence[str]) -> tuple[PolicySpec, ...]:
    """The policies, with parameters to start from: for σ stands the standard deviation of the rewards."""
    settings = RunSettings(params=assignments("--param", params))
    named = [parse_policy(word) for word in words or DEFAULT_POLICIES]
    makers = [find_maker(one.name) for one in named]
    check_used(settings, makers)
    for maker in makers:
        if not is_own(maker.name) and {"labels", "graph"} & set(maker.arguments):
            raise ArgumentError(f"{maker.name} is told the true clusters, and a log has none; leave it out")
    world = EnvironmentSpec(noise=float(log.rewards.std()), n_users=log.n_users)
    return tuple(dict.fromkeys(complete_spec(one, settings, world) for one in named))


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
) -> Evaluation:
    """Evaluate the policies, with progress; an exception of somebody's own policy is told with its name."""
    makers = {label: SpecMaker(spec) for label, spec in zip(labels_of(specs), specs, strict=True)}
    with event_progress("evaluating", len(log) * len(specs) * passes(estimators)) as advance:
        try:
            return evaluate(
                log,
                makers,
                estimators=estimators,
                level=level,
                resamples=resamples,
                seed=seed,
                advance=advance,
            )
        except Exception:
            last = [maker.spec.name for maker in makers.values() if maker.used][-1:]
            with naming_policy("".join(last), seed):
                raise
