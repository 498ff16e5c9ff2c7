"""A policy is a class: what `isinstance`, `help`, copies and snapshots make of it, and its constants."""

from __future__ import annotations

import copy
import inspect
import pickle
from pathlib import Path
from typing import Any

import pytest

import coterie
from contracts.examples import ALL, changed, is_one_sentence, make, play
from coterie import ArgumentError, LinearBandit, SnapshotError, Tuned
from coterie.policies import REGISTRY

CONSTANTS = {"alpha": 1.5, "beta": 0.1, "explore": 30, "phase": 12, "growth": 1.5}
TUNABLE = [name for name, entry in REGISTRY.items() if "confidence" in entry.parameters]


def constants(name: str) -> dict[str, Any]:
    """The constants that a policy takes, with values."""
    return {key: value for key, value in CONSTANTS.items() if key in REGISTRY[name].parameters}


def maker(name: str) -> Any:
    """The class of a policy, whose arguments no type checker looks at."""
    return REGISTRY[name].make


class Louder(coterie.CLUB):
    """A class of somebody's own."""

    def volume(self) -> int:
        """How loud it is."""
        return 11


@pytest.mark.parametrize("example", ALL)
def test_a_policy_is_an_instance_of_the_class_of_its_name(example: str, tmp_path: Path) -> None:
    policy = make(example)
    kind = getattr(coterie, policy.name)
    assert type(policy) is kind
    assert issubclass(kind, LinearBandit)
    assert isinstance(policy, coterie.Policy)
    policy.save(tmp_path / "policy")
    for other in (
        copy.deepcopy(policy),
        pickle.loads(pickle.dumps(policy)),
        coterie.load(tmp_path / "policy"),
    ):
        assert type(other) is kind


@pytest.mark.parametrize("name", REGISTRY)
def test_signature_help_and_repr_are_those_of_a_class(name: str) -> None:
    kind = getattr(coterie, name)
    assert inspect.isclass(kind)
    assert list(inspect.signature(kind).parameters)[:2] == ["n_users", "dim"]
    assert kind.__doc__ != LinearBandit.__doc__
    policy = make(next(one for one in ALL if one.partition(" ")[0] == name))
    assert repr(policy).startswith(f"<{name}: ")


@pytest.mark.parametrize("name", TUNABLE)
def test_constants_may_be_given_directly(name: str) -> None:
    direct = maker(name)(6, 3, **constants(name), seed=7)
    composed = maker(name)(6, 3, confidence=Tuned(**constants(name)), seed=7)
    assert direct.arguments == composed.arguments
    assert play(direct, 200, seed=5) == play(composed, 200, seed=5)
    assert changed(direct, composed) == []


@pytest.mark.parametrize("name", TUNABLE)
def test_constants_and_a_confidence_are_not_both_taken(name: str) -> None:
    for key, value in constants(name).items():
        with pytest.raises(ArgumentError, match=rf"{name} takes {key} or confidence, not both") as caught:
            maker(name)(6, 3, confidence=Tuned(**constants(name)), **{key: value})
        assert is_one_sentence(caught.value)
        assert f"{name}(n_users, dim, alpha=1.5, beta=0.1" in str(caught.value)


@pytest.mark.parametrize("name", TUNABLE)
@pytest.mark.parametrize(
    ("missing", "sentence"), [(["alpha"], "alpha"), (["alpha", "beta"], "alpha and beta")]
)
def test_a_policy_without_its_constants_is_refused_with_an_example(
    name: str, missing: list[str], sentence: str
) -> None:
    left = {key: value for key, value in constants(name).items() if key not in missing}
    with pytest.raises(ArgumentError, match=rf"{name} needs {sentence}, such as {name}\(") as caught:
        maker(name)(6, 3, **left)
    assert is_one_sentence(caught.value)


@pytest.mark.parametrize("name", REGISTRY)
def test_a_constant_that_a_policy_does_not_use_is_refused(name: str) -> None:
    unused = [key for key in CONSTANTS if key not in REGISTRY[name].parameters]
    given = constants(name) if name in TUNABLE else {}
    for key in unused:
        with pytest.raises(TypeError, match=key):
            maker(name)(6, 3, **given, **{key: CONSTANTS[key]})


def test_methods_of_one_policy_are_on_its_class_alone() -> None:
    for name in REGISTRY:
        assert hasattr(getattr(coterie, name), "explain") == (name == "AutoCLUB")
        assert hasattr(getattr(coterie, name), "suspects") == (name == "RCLUBWCU")


def test_the_base_class_is_no_policy() -> None:
    with pytest.raises(TypeError, match=r"make a policy, such as coterie\.AutoCLUB"):
        LinearBandit(3, 2)


def test_a_class_of_ones_own_can_be_copied_but_not_saved(tmp_path: Path) -> None:
    policy = Louder(6, 3, alpha=1.5, beta=0.1)
    play(policy, 50, seed=5)
    other = pickle.loads(pickle.dumps(policy))
    assert isinstance(other, Louder)
    assert (other.name, other.volume()) == ("Louder", 11)
    assert changed(policy, other) == []
    with pytest.raises(SnapshotError, match="Louder is a class of your own and cannot be saved") as caught:
        policy.save(tmp_path / "policy")
    assert is_one_sentence(caught.value)
    assert not (tmp_path / "policy").exists()
