"""Broken files: whatever is done to a robot, only a `PinloopError` may come of it.

A mutant that still loads must be usable: its residual can be computed and is finite. Warnings are
errors in the tests, so an overflow or an invalid value is an escape, too.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import pinloop as pl

from ..mutations import break_bytes, break_data, break_lines, break_xml
from ..robots_to_break import BESIDE, PIECES, TABLES, XML
from .every_format import URDF_TREE

fuzz = settings(
    max_examples=200,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
seeds = st.integers(0, 2**32 - 1)


def survive(load: Callable[[], pl.Mechanism]) -> None:
    """Load; what comes must be a mechanism that works, or a `PinloopError`."""
    try:
        robot = load()
    except pl.PinloopError as error:
        assert str(error).strip()
        return
    residual = pl.Constraints(robot).residual(robot.neutral)
    assert np.all(np.isfinite(residual))
    assert all(isinstance(warning, str) for warning in robot.warnings)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that turn out to be paths must not hit anything."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", XML)
@fuzz
@given(seed=seeds)
def test_elements_and_attributes_out_of_place(name: str, seed: int) -> None:
    random = Random(seed)
    donor = random.choice([None, PIECES, *XML.values()])
    text = break_xml(random, XML[name], donor)
    flags = {key: random.random() < 0.2 for key in ("floating_base", "kinematics_only")}
    survive(lambda: pl.load(text, **flags))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [*XML, *TABLES])
@fuzz
@given(seed=seeds)
def test_bytes_out_of_place(name: str, seed: int) -> None:
    content = break_bytes(Random(seed), {**XML, **TABLES}[name].encode())
    survive(lambda: pl.load(content))


@pytest.mark.parametrize("name", TABLES)
@fuzz
@given(seed=seeds)
def test_tables_out_of_shape(name: str, seed: int) -> None:
    random = Random(seed)
    if random.random() < 0.5:
        text = break_lines(random, TABLES[name]) + "\n"
        survive(lambda: pl.load(text))
    else:
        data = break_data(random, TABLES[name])
        survive(lambda: pl.load(data if isinstance(data, dict) else {"bodies": data}))


def broken_loops(random: Random, name: str) -> Any:
    """A broken loops file, Gepetto file or SRDF, as text, bytes or data."""
    text = BESIDE[name]
    if random.random() < 0.3:
        return break_bytes(random, text.encode())
    if name == "srdf":
        return break_xml(random, text, random.choice([None, PIECES]))
    return break_data(random, text) if random.random() < 0.5 else break_lines(random, text) + "\n"


@pytest.mark.parametrize("name", BESIDE)
@fuzz
@given(seed=seeds)
def test_loops_out_of_shape(name: str, seed: int) -> None:
    random = Random(seed)
    loops = broken_loops(random, name)
    survive(lambda: pl.load(URDF_TREE, loops=loops))


@pytest.mark.parametrize("key", [3, None, 1.5, True, "type!"])
def test_keys_that_are_no_names(key: object) -> None:
    robot = pl.load(URDF_TREE, loops=yaml.safe_load(BESIDE["gepetto"]) | {key: 1})
    assert any(f"key '{key}' is not read" in warning for warning in robot.warnings)


@pytest.mark.parametrize("suffix", ["urdf", "sdf", "xml", "yaml"])
@fuzz
@given(seed=seeds)
def test_files_with_everything_broken(suffix: str, seed: int, tmp_path: Path) -> None:
    """A robot and what lies beside it, which may include itself."""
    random = Random(seed)
    name = random.choice([*XML])
    content = break_xml(random, XML[name], PIECES).encode()
    if random.random() < 0.3:
        content = break_bytes(random, content)
    path = tmp_path / f"robot.{suffix}"
    path.write_bytes(content)
    beside = random.choice([*BESIDE])
    other = {"loops": "robot.loops.yaml", "gepetto": "robot.yaml", "srdf": "robot.srdf"}[beside]
    extra = broken_loops(random, beside)
    if not isinstance(extra, (str, bytes)):
        extra = yaml.dump(extra, default_flow_style=random.random() < 0.5)
    if other != path.name:
        (tmp_path / other).write_bytes(extra if isinstance(extra, bytes) else extra.encode())
    survive(lambda: pl.load(path))


@fuzz
@given(junk=st.one_of(st.text(), st.binary(), st.text(alphabet="<>/ab=\"'&;!-[]?\n")))
def test_junk(junk: str | bytes) -> None:
    survive(lambda: pl.load(junk))
    survive(lambda: pl.load(URDF_TREE, loops=junk))
