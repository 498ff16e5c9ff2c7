"""RunSettings come from a file and from options, and are checked once."""

from __future__ import annotations

from pathlib import Path

import pytest

from coterie.cli.config import assignments
from coterie.cli.run_settings import RunSettings, read_settings
from coterie.errors import ArgumentError, UnknownName


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "run.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_nothing_said_means_the_defaults() -> None:
    assert read_settings(None, {"horizon": None, "policies": None, "environment": []}) == RunSettings()


def test_each_name_goes_where_it_belongs(tmp_path: Path) -> None:
    file = written(tmp_path, "users = 9\nzipf = 2\nbeta = 0.2\nridge = 3\n[params]\nsize = 4\n")
    settings = read_settings(
        file, {"clusters": 3, "alpha": 1.5, "beta": 0.3, "params": ["kind=odd", "size=5"]}
    )
    assert settings.environment == {"n_users": 9, "zipf": 2, "n_clusters": 3}
    assert settings.constants == {"beta": 0.3, "ridge": 3, "alpha": 1.5}
    assert settings.params == {"size": 5, "kind": "odd"}


def test_an_option_is_above_the_file_whatever_it_is_called(tmp_path: Path) -> None:
    file = written(tmp_path, "[environment]\nn_users = 9\n")
    assert read_settings(file, {"users": 5}).environment == {"n_users": 5}
    assert read_settings(file, {"users": 5, "environment": ["n_users=6"]}).environment == {"n_users": 6}


def test_options_override_the_file(tmp_path: Path) -> None:
    options = 'policies = ["CLUB", "SCLUB:alpha=1"]\nhorizon = 100\nseeds = [3, 7]\n'
    file = written(tmp_path, f"{options}[environment]\nzipf = 1\n")
    settings = read_settings(file, {"horizon": 50, "environment": ["drift=0.1"]})
    assert settings.policies == ("CLUB", "SCLUB:alpha=1")
    assert (settings.horizon, settings.seeds) == (50, (3, 7))
    assert settings.environment == {"zipf": 1, "drift": 0.1}


@pytest.mark.parametrize(
    ("said", "meant"), [("3", (0, 1, 2)), (3, (0, 1, 2)), ("3,7", (3, 7)), ("7,", (7,)), ([5, 5, 6], (5, 6))]
)
def test_seeds_are_a_count_or_a_list(said: object, meant: tuple[int, ...]) -> None:
    assert read_settings(None, {"seeds": said}).seeds == meant


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("horizon = 100\npolicies = [\n", r"is not TOML: .*line 3"),
        ("horizon 100\n", r"is not TOML: .*line 1, column 9"),
        ("horizon = 1.5\n", "horizon must be a whole number, got 1.5"),
        ("horizon = true\n", "horizon must be a whole number, got True"),
        ("threshold = 'loud'\n", "threshold must be a number, got 'loud'"),
        ("engine = 3\n", "engine must be text, got 3"),
        ("policies = 3\n", "policies must be a list, got 3"),
        ("policies = [3]\n", "policies must be text, got \\[3\\]"),
        ("seeds = [-1]\n", "a seed must be a whole number of at least 0, got -1"),
        ("environment = 3\n", r"environment must be a table \[environment\], got 3"),
        ("params = 3\n", r"params must be a table \[params\], got 3"),
    ],
)
def test_a_bad_file_is_told_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ArgumentError, match=sentence):
        read_settings(written(tmp_path, text), {})


def test_an_unknown_key_suggests_the_right_one(tmp_path: Path) -> None:
    with pytest.raises(
        UnknownName, match=r"no option 'horizn'; did you mean 'horizon'\? It is in .*run\.toml"
    ):
        read_settings(written(tmp_path, "horizn = 3\n"), {})


def test_a_file_that_is_not_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ArgumentError, match="is not UTF-8 text"):
        read_settings(tmp_path / "run.toml", {})


def test_values_of_assignments_are_read_as_toml_and_bare_words_are_text() -> None:
    pairs = ["a=1", "b=0.5", "c=zipf", "d-e = 'x'", "f=true", "g=False", "h=.5", "i=1e-3", "j=[1]", "k=1-2"]
    found = assignments("--set", pairs)
    assert found == {
        "a": 1,
        "b": 0.5,
        "c": "zipf",
        "d_e": "x",
        "f": True,
        "g": False,
        "h": 0.5,
        "i": 0.001,
        "j": "[1]",
        "k": "1-2",
    }
    assert [type(found[name]) for name in "abfgh"] == [int, float, bool, bool, float]
