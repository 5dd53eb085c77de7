"""Broken files: whatever is done to one, a `PinloopError` or something usable comes of it.

Warnings are errors here, so an overflow or an invalid value is an escape, too. Other seeds are
tried by the campaign ``files`` of `tools.soak`.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import pinloop as pl

from ..broken_files import KINDS, draw, read
from ..robots_to_break import BESIDE
from .every_format import URDF_TREE

fuzz = settings(
    max_examples=200,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.parametrize("kind", KINDS)
@fuzz
@given(seed=st.integers(0, 2**32 - 1))
def test_damaged_files(kind: str, seed: int) -> None:
    read(draw(Random(seed), kind))


@fuzz
@given(junk=st.one_of(st.text(), st.binary(), st.text(alphabet="<>/ab=\"'&;!-[]?\n")))
def test_junk(junk: str | bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(pl.PinloopError, match=r"\S"):
        pl.load(junk)
    with pytest.raises(pl.PinloopError, match=r"\S"):
        pl.load(URDF_TREE, loops=junk)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "junk"])
def test_some_can_be_read_and_some_cannot(kind: str) -> None:
    """Else nothing but the first look at a file would be tried."""
    if kind == "xacro":
        pytest.importorskip("xacro")
    assert {read(draw(Random(seed), kind)) for seed in range(40)} == {True, False}


@pytest.mark.parametrize("key", [3, None, 1.5, True, "type!"])
def test_keys_that_are_no_names(key: object) -> None:
    robot = pl.load(URDF_TREE, loops=yaml.safe_load(BESIDE["gepetto"]) | {key: 1})
    assert any(f"key '{key}' is not read" in warning for warning in robot.warnings)
