"""The result of a stop is a value: reading it changes nothing, and other processes take it."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from joblib import Parallel, delayed

import pinloop as pl
from pinloop.dynamics import EquationsOfMotion
from pinloop.model.workspace import WorkSpace
from pinloop.safety.stopping.export import columns_of
from pinloop.safety.stopping.simulation import StopSimulation
from pinloop.safety.stopping.stop_equations import StopEquations

from ...states import URDF
from ...states import robot as loaded
from .robots_to_stop import lift_with_beam, on_axis, wheel

Result = pl.StopResult
Case = Callable[[], Result]


def palletizer(category: Any = 0, **options: Any) -> Result:
    by, robot = URDF / "palletizer.brakes.yaml", loaded("palletizer")
    q = pl.assemble(robot, {"shoulder": 0.4})
    v = pl.consistent_velocity(robot, q, {"shoulder": 1.0, "elbow": 0.5})
    return pl.stop(robot, q, v, brakes=by, category=category, **options)


def recorded() -> Result:
    t = np.linspace(0.0, 2.0, 41)
    motion = pl.safety.JointTrajectory(("axis",), t, np.sin(t)[:, None])
    by = on_axis(dynamic_torque=4.0, deceleration=5.0, drive_torque=20.0)
    return pl.stop(
        wheel(), brakes=by, trigger=pl.safety.Trigger(motion, 0.5),
        category=pl.safety.Category1(on_path=True),
    )  # fmt: skip


def tooth() -> Result:
    by = on_axis(kind="tooth", pitch=0.3, gear_ratio=10.0, rotor_inertia=1e-3, efficiency=0.8)
    return pl.stop(wheel(), [0.0], [2.0], brakes=by, payload=None)


def sliding() -> Result:
    robot = lift_with_beam(4.0, 2.0, 0.5, 0.7)
    return pl.stop(robot, robot.neutral, [0.5, 1.0], brakes=pl.Brakes.template(robot))


CASES: dict[str, Case] = {
    "loops": palletizer,
    "on the path, with a payload": lambda: palletizer(
        pl.safety.Category1(on_path=True), payload=2.0
    ),
    "end stops": lambda: palletizer(2, limits="end stop"),
    "recorded motion": recorded,
    "tooth": tooth,
    "sliding": sliding,
}
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def readings(result: Result, folder: Path) -> dict[str, Callable[[], object]]:
    """Every public method and property of a result and of its run, as calls without arguments."""
    given: dict[str, tuple[Any, ...]] = {
        "save_json": (folder / "stop.json",),
        "to_csv": (folder / "stop.csv",),
        "save_html": (folder / "stop.html",),
        "clearance": (pl.Obstacle.box("crate", (0.1, 0.1, 0.1), (5.0, 0.0, 0.0)),),
    }
    options: dict[str, dict[str, Any]] = {
        name: {"thickness": 0.01} for name in ("clearance", "self_collisions", "swept_volume")
    }

    def read(name: str) -> object:
        value = getattr(result, name)
        return value(*given.get(name, ()), **options.get(name, {})) if callable(value) else value

    names = [name for name in dir(type(result)) if not name.startswith("_")]
    run = result.run
    return {name: partial(read, name) for name in (*names, "__repr__", "__str__")} | {
        "run at a time": lambda: run(float(run.t[-1]) / 2),
        "run.energy": run.energy,
        "run.warnings": lambda: run.warnings,
        "run.momentum": run.momentum,
        "run.closure": run.closure,
        "run.columns": run.columns,
        "history.moving": lambda: result.history.moving,
        "robot": lambda: [result.robot.coordinates(name) for name in result.robot.joints],
    }


@cases
def test_reading_a_result_changes_nothing(case: Case, tmp_path: Path) -> None:
    result = case()
    before = pickle.dumps(result)
    for name, call in readings(result, tmp_path).items():
        call()
        assert pickle.dumps(result) == before, name


@cases
def test_a_copy_says_the_same(case: Case) -> None:
    result = case()
    fresh, here = pickle.loads(pickle.dumps(result)), result
    there = Parallel(n_jobs=2)(delayed(_read)(one) for one in (result, result))
    for other in (_read(fresh), _read(copy.copy(result)), _read(copy.deepcopy(result)), *there):
        assert other == _read(here)


def _read(result: Result) -> tuple[str, str, bytes, dict[str, Any]]:
    """What somebody sees of a result; arrays to the last bit."""
    columns = b"".join(values.tobytes() for values in columns_of(result, 0.01).values())
    return str(result.table()), repr(result), columns, dict(result.as_dict())


@cases
def test_no_machine_is_inside(case: Case) -> None:
    """Nothing that computes is reachable from the fields of a result."""
    result = case()
    forbidden = (pin.Data, WorkSpace, StopSimulation, StopEquations, EquationsOfMotion)
    seen: list[type] = []

    class Looking(pickle.Pickler):
        def reducer_override(self, value: Any) -> Any:
            seen.append(value if isinstance(value, type) else type(value))
            return NotImplemented

    Looking(io.BytesIO()).dump(result)
    assert not [kind for kind in seen if issubclass(kind, forbidden)]


def test_a_failed_stop_goes_to_another_process() -> None:
    """`StopFailed` carries the result up to where it failed."""
    with pytest.raises(pl.StopFailed) as caught:
        palletizer(method=pl.MuntheKaas("dopri5", rtol=1e-14, atol=1e-14, smallest=1e-2))
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert repr(again.result) == repr(caught.value.result)
