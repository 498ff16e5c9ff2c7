from __future__ import annotations

from pathlib import Path

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
