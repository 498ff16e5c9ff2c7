from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.datasets import lines
from coterie.datasets.sources import FileStream
from coterie.errors import DataError
from inspection import read_blocks_of

TEXTS = st.lists(st.sampled_from(["", "a", "bcd"]), max_size=20).map("\n".join)


@given(text=TEXTS, ends=st.booleans(), size=st.integers(min_value=4, max_value=30))
def test_blocks_keep_every_line_and_its_number(text: str, ends: bool, size: int) -> None:
    whole = (text + "\n" * ends).encode()
    with pytest.MonkeyPatch.context() as patch:
        read_blocks_of(size, patch)
        blocks = list(lines.blocks(FileStream(io.BytesIO(whole), len(whole), "x")))
    assert b"".join(block.data for block in blocks) == whole
    numbered = [pair for block in blocks for pair in block.numbered()]
    assert numbered == [(n, line) for n, line in enumerate(whole.split(b"\n"), start=1) if line]


def test_a_line_longer_than_a_block_is_malformed(monkeypatch: pytest.MonkeyPatch) -> None:
    read_blocks_of(10, monkeypatch)
    with pytest.raises(DataError, match="line 3 of x: longer than 10 bytes"):
        list(lines.blocks(FileStream(io.BytesIO(b"a\nb\n" + 50 * b"c"), 54, "x")))
