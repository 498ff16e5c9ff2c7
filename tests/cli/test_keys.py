from __future__ import annotations

from pathlib import Path

import pytest

from cli.conftest import Call


def test_keys_are_made_listed_and_revoked(coterie: Call, tmp_path: Path) -> None:
    store = str(tmp_path / "a.db")
    key = coterie("keys", "create", "writer", "--label", "shop", "--store", store).output.split()[0]
    key_id = key.split("_")[1]
    listed = coterie("keys", "list", "--store", store).output
    assert key_id in listed
    assert key not in listed
    coterie("keys", "revoke", key_id, "--store", store)
    assert key_id not in coterie("keys", "list", "--json", "--store", store).output
    assert (
        "role must be one of reader, writer, admin"
        in coterie("keys", "create", "king", "--store", store).output
    )
    assert "no key 'nothing'" in coterie("keys", "revoke", "nothing", "--store", store).output


@pytest.mark.parametrize("command", [("serve",), ("keys", "list"), ("store", "compact")])
def test_a_store_of_an_unknown_kind_is_refused(
    coterie: Call, command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = coterie(*command, "--store", "mysql://127.0.0.1/shop")
    assert refused.exit_code == 2
    assert refused.output == (
        "coterie: --store must be the path of a SQLite file, sqlite:///PATH or postgresql://…, "
        "got 'mysql://127.0.0.1/shop'\n"
    )
    assert [one.name for one in tmp_path.iterdir() if one.name != "cache"] == []
