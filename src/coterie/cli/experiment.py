"""`coterie experiment`: is one policy of a running service better than another?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from coterie.cli.items import KeyOption, UrlOption, connected
from coterie.cli.options import CommandWithExamples, GroupWithExamples, Json, examples, show_help
from coterie.cli.output import console, print_note, print_table, write_json
from coterie.errors import ArgumentError

if TYPE_CHECKING:
    from coterie.service.messages import ExperimentAnswer

CREATE_EXPERIMENT = examples(
    ("half of the users each", "coterie experiment create spring default auto"),
    ("a tenth for the challenger", "coterie experiment create spring default=9 auto=1"),
    ("both learn from all rewards", "coterie experiment create spring default auto --learn all"),
)
EXPERIMENT_STATUS = examples(
    ("results so far; look as often as you like", "coterie experiment status spring"),
    ("all experiments, for a script", "coterie experiment status --json"),
)
STOP_EXPERIMENT = examples(
    ("one policy for all users from now on", "coterie experiment stop spring --keep auto")
)
app = typer.Typer(
    cls=GroupWithExamples,
    invoke_without_command=True,
    help="Experiments of a running service: create, status, stop.",
    epilog=CREATE_EXPERIMENT,
)
Name = Annotated[str, typer.Argument(help="The name of the experiment.")]


@app.callback()
def experiment(ctx: typer.Context) -> None:
    """Experiments of a running service: create, status, stop."""
    show_help(ctx)


@app.command(cls=CommandWithExamples, epilog=CREATE_EXPERIMENT)
def create(
    name: Name,
    policies: Annotated[
        list[str],
        typer.Argument(
            metavar="POLICY[=SHARE]...",
            help="Policies of the service, the champion first, with their shares.",
        ),
    ],
    learn: Annotated[
        str, typer.Option(metavar="own|all", help="What policies learn from: own users, or all.")
    ] = "own",
    alpha: Annotated[float, typer.Option(metavar="P", help="Probability that an interval is wrong.")] = 0.05,
    least_effect: Annotated[
        float | None, typer.Option(metavar="X", help="The smallest difference in reward that matters.")
    ] = None,
    url: UrlOption = None,
    key: KeyOption = None,
    as_json: Json = False,
) -> None:
    """Begin an experiment: users are shared among policies by a hash of their ids.

    The product then asks for decisions at /v1/experiments/NAME/decisions. A policy in mode shadow stands for
    what the product does now: the answer says so, and the reward names what was shown.
    """
    named = [_share(one) for one in policies]
    shares = dict(named)
    if len(shares) != len(named):
        raise ArgumentError(f"name each policy once, got {' '.join(policies)}")
    options = {"learn": learn, "alpha": alpha, "least_effect": least_effect}
    with connected(url, "default", key) as client:
        _show([client.create_experiment(name, shares, **options)], as_json)


def _share(text: str) -> tuple[str, float]:
    """Return a policy and its share."""
    policy, mark, share = text.partition("=")
    try:
        return policy, float(share) if mark else 1.0
    except ValueError:
        raise ArgumentError(f"a policy's share must be a number, got {text!r}") from None


@app.command(cls=CommandWithExamples, epilog=EXPERIMENT_STATUS)
def status(
    name: Annotated[str | None, typer.Argument(help="An experiment; all by default.")] = None,
    days: Annotated[int, typer.Option(metavar="N", help="Days to show, the last ones.", min=0)] = 14,
    url: UrlOption = None,
    key: KeyOption = None,
    as_json: Json = False,
) -> None:
    """Show what experiments have brought so far, and what that suggests.

    The intervals hold at all times at once: look as often as you like, and stop whenever you like.
    """
    with connected(url, "default", key) as client:
        found = client.experiments() if name is None else [client.describe_experiment(name)]
    if not found and not as_json:
        print_note("no experiments yet: coterie experiment create NAME POLICY POLICY")
    _show(found, as_json, days)


@app.command(cls=CommandWithExamples, epilog=STOP_EXPERIMENT)
def stop(
    name: Name,
    keep: Annotated[str, typer.Option(metavar="POLICY", help="The policy that decides from now on.")],
    url: UrlOption = None,
    key: KeyOption = None,
    as_json: Json = False,
) -> None:
    """End an experiment: decisions asked for through it go on, by one policy for all users."""
    with connected(url, "default", key) as client:
        _show([client.stop_experiment(name, keep)], as_json)


def _show(found: list[ExperimentAnswer], as_json: bool, days: int = 0) -> None:
    import msgspec

    if as_json:
        write_json(msgspec.to_builtins(found))
        return
    for one in found:
        _show_one(one, days)


def _show_one(one: ExperimentAnswer, days: int) -> None:
    percent = f"{100 * (1 - one.alpha):g} %"
    rows = [
        [
            arm.policy if arm.mode == "online" else f"{arm.policy} ({arm.mode})",
            f"{arm.users:,}",
            f"{arm.decisions:,}",
            _number(arm.reward),
            _number(arm.difference, "+.4f"),
            "" if arm.low is None else f"{_number(arm.low, '+.4f')} to {_number(arm.high, '+.4f')}",
            _number(arm.uplift, "+.1%"),
        ]
        for arm in one.policies
    ]
    columns = ["policy", "users", "decisions", "reward", "difference", f"{percent}, at all times", "uplift"]
    print_table(columns, rows, title=one.name)
    if one.days and days:
        names = [arm.policy for arm in one.policies[1:]]
        daily = [
            [day.day, f"{sum(day.decisions):,}", *[_number(value, "+.1%") for value in day.uplift[1:]]]
            for day in one.days[-days:]
        ]
        print_table(["day (UTC)", "decisions", *[f"uplift of {policy}" for policy in names]], daily)
    good = "as intended" if one.ratio_ok else "not as intended"
    console().print(f"numbers of users: {good} (p = {one.ratio_p:.2g})", soft_wrap=True)
    console().print(f"proposal: {one.proposal}", soft_wrap=True)


def _number(value: float | None, form: str = ".4f") -> str:
    return "" if value is None else format(value, form)
