"""`coterie run --log`: one policy plays, an ε of its rounds uniformly, and everything is written down."""

from __future__ import annotations

from pathlib import Path
from tempfile import NamedTemporaryFile

import msgspec

from coterie.cli.output import write_json
from coterie.cli.progress import event_progress
from coterie.cli.run_plan import DEFAULT_POLICIES, plan_runs
from coterie.cli.settings import RunSettings
from coterie.errors import ArgumentError
from coterie.evaluation import Log, LoggingPolicy
from coterie.experiments.run_store import Run, naming_policy
from coterie.experiments.runner import DataFiles
from coterie.simulation import Trace, simulate
from coterie.validation import counted

SHARE = 0.1
"""The share of uniform play unless told."""


def write_log(settings: RunSettings, *, as_json: bool) -> None:
    """Play one policy on the first seed, write the log, and say what is in it."""
    if settings.log is None:
        raise ArgumentError("--log-share is the share of uniform play of a log: give --log FILE too")
    path = writable_parquet(settings.log)
    share = SHARE if settings.log_share is None else settings.log_share
    one_policy = settings.policies or DEFAULT_POLICIES[:1]
    plan = plan_runs(msgspec.structs.replace(settings, policies=one_policy, seeds=settings.seeds[:1]))
    if len(plan.runs) > 1:
        raise ArgumentError(f"--log takes one policy, got {len(plan.runs)}: {', '.join(plan.labels)}")
    log, trace = play(plan.runs[0], plan.data, share)
    log.save(path)
    shares = {"share": share, "policy": str(plan.policies[0]), "seed": plan.runs[0].seed}
    size = path.stat().st_size
    if as_json:
        facts = {"events": len(log), "users": log.n_users, "dim": log.dim, "bytes": size}
        write_json({"log": str(path), **shares, **facts, "mean_reward": float(log.rewards.mean())})
        return
    print(
        f"{path}: {counted(len(log), 'event')} of {counted(log.n_users, 'user')} by {plan.policies[0]} with "
        f"{share:g} of uniform play, seed {plan.runs[0].seed}; mean reward {log.rewards.mean():.4g}, "
        f"regret {trace.regret[-1]:,.1f}, {size / 1e6:.1f} MB"
    )


def play(run: Run, data: DataFiles, share: float) -> tuple[Log, Trace]:
    """Play a run with a share of uniform rounds; the draws depend on the seed of the run."""
    world = run.environment.make(data.dataset(run.environment), run.seed)
    with naming_policy(run.policy.name, run.seed):
        logger = LoggingPolicy(run.policy.make(world, run.seed), share, seed=run.seed)
        with event_progress("logging", run.horizon) as advance:
            trace = simulate(logger, world, run.horizon, record=1, progress=lambda rounds, _: advance(rounds))
    return logger.log(), trace


def writable_parquet(name: str) -> Path:
    """The file of a log, known to be writable before anything is played."""
    path = Path(name).expanduser()
    if path.suffix.lower() not in (".parquet", ".pq"):
        raise ArgumentError(f"--log must be a .parquet file, got {name!r}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise ArgumentError(
            f"--log must be a file that can be written, got {name!r}: {error.strerror}"
        ) from None
    return path
