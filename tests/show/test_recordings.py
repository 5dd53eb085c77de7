"""What all recordings of runs have in common, and the run that the tests of each record."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import pinloop as pl

WRITERS = {"to_mcap": "run.mcap", "to_rerun": "run.rrd", "to_gltf": "run.glb"}


@cache
def locked_run() -> pl.Trajectory:
    """A palletizer whose shoulder locks on the way."""
    robot = pl.regularize(pl.example("palletizer"))
    q = pl.assemble(robot, {"shoulder": 0.4})
    v = pl.consistent_velocity(robot, q, {"elbow": 0.5})
    lock = pl.lock("shoulder", at=0.123)
    return pl.simulate(robot, q, v, until=0.3, events=[lock])


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), 1e9])
@pytest.mark.parametrize("writer", WRITERS)
def test_rates_are_positive_and_few(writer: str, rate: float, tmp_path: Path) -> None:
    if writer == "to_rerun":
        pytest.importorskip("rerun")
    with pytest.raises(pl.PinloopError, match="rate"):
        getattr(locked_run(), writer)(tmp_path / WRITERS[writer], rate=rate)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("writer", "module", "extra"),
    [("to_mcap", "mcap_ros2.writer", "mcap"), ("to_rerun", "rerun", "rerun")],
)
def test_without_the_library_it_is_named(writer: str, module: str, extra: str) -> None:
    program = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "import pinloop as pl\n"
        "robot = pl.example('planar_3r')\n"
        "run = pl.simulate(robot, robot.neutral, [0.0] * 3, until=0.01)\n"
        f"try:\n    run.{writer}('{WRITERS[writer]}')\n"
        "except pl.PinloopError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert f"pip install 'pinloop[{extra}]'" in done.stdout
