"""`coterie explain`: the decisions of a saved policy for one user."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.options import Json, examples
from coterie.cli.output import print_note, print_table, write_json
from coterie.errors import ArgumentError

if TYPE_CHECKING:
    from coterie.policies.autoclub.explanations import ScoreParts, UserExplanation
    from coterie.policies.base import LinearBandit

SHOWN = 10
"""Arms whose scores are shown, unless --top says otherwise."""

EPILOG = examples(
    ("the users that user 7 of a saved policy learns from", "coterie explain policy.npz 7"),
    ("the terms of the scores of some arms", "coterie explain policy.npz 7 --arms arms.npy"),
    ("of the 50 best of them", "coterie explain policy.npz 7 --arms arms.npy --top 50"),
)


def explain(
    snapshot: Annotated[Path, typer.Argument(help="File that `policy.save` wrote.", dir_okay=False)],
    user: Annotated[int, typer.Argument(help="Number of the user.", min=0)],
    arms: Annotated[
        Path | None, typer.Option(help="A .npy file with the vector of one arm in each row.", dir_okay=False)
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="With --arms: how many arms are shown. Default: 10."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Explain the decisions of a saved policy for a user.

    For AutoCLUB: the user's cluster, how certain it is, and how much is learnt from others; with --arms, the
    terms of the scores of the best arms, the best first. --json has those of all arms, in their order.
    """
    from coterie.policies.autoclub.autoclub import AutoCLUB

    if top is not None and (arms is None or as_json):
        raise ArgumentError("--top is for the table of --arms: leave it out")
    policy = _loaded(snapshot)
    if not isinstance(policy, AutoCLUB):
        raise ArgumentError(
            f"{snapshot} holds a policy of type {policy.name}; `coterie explain` supports only AutoCLUB"
        )
    found = policy.explain(user, None if arms is None else _vectors(arms))
    if as_json:
        write_json(_record(found))
        return
    print(found)
    if found.scores is not None:
        _print_best(found.scores, SHOWN if top is None else top)


def _print_best(scores: ScoreParts, top: int) -> None:
    """Print the terms of the best arms, and how many others there are."""
    rows = [(str(arm), *parts, sum(parts)) for arm, parts in enumerate(zip(*scores, strict=True))]
    best = sorted(rows, key=lambda row: -row[-1])[:top]
    table = [(arm, *(f"{part:.4g}" for part in parts)) for arm, *parts in best]
    print_table(("arm", *scores._fields, "score"), table)
    if len(rows) > len(best):
        print_note(f"coterie: the best {len(best):,} of {len(rows):,} arms; --top N shows more")


def _loaded(path: Path) -> LinearBandit:
    """The policy of a snapshot, with a bar if that takes long."""
    from coterie.policies.snapshots import load
    from coterie.progress import progress_bar

    before = 0
    with progress_bar(path.stat().st_size if path.exists() else 0, "B", label="reading") as advance:

        def show(done: int, total: int) -> None:
            nonlocal before
            advance(done - before)
            before = done

        return load(path, progress=show)


def _vectors(path: Path) -> Any:
    """The rows of a .npy file; nothing in it is executed."""
    import numpy as np

    from coterie.errors import DataError

    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path} is not a .npy file of numbers: {error}") from error


def _record(found: UserExplanation) -> dict[str, Any]:
    parts = None if found.scores is None else {k: v.tolist() for k, v in found.scores._asdict().items()}
    plain = {k: getattr(v, "tolist", lambda v=v: v)() for k, v in asdict(found).items() if k != "scores"}
    return {**plain, "scores": parts}
