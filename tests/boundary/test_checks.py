"""What users hand over by mistake is refused where it comes in, in a sentence with a way out."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.boundary.files import not_written

from ..screw_tables import Array

URDF = Path(__file__).parents[2] / "urdf"
BRAKES = URDF / "planar_3r.brakes.yaml"

TEXT: Any = "arm.urdf"
NAN = float("nan")


@pytest.fixture(scope="module")
def robot() -> pl.Mechanism:
    return pl.load(URDF / "planar_3r.urdf")


@pytest.mark.parametrize(
    "call",
    [
        pl.diagnose,
        pl.regularize,
        pl.assemble,
        pl.view,
        pl.Brakes.template,
        lambda robot: pl.regularize(robot, cut="elbow"),
        lambda robot: pl.view(robot, np.zeros(3)),
        lambda robot: pl.save_html(robot, "never.html"),
        lambda robot: pl.consistent_velocity(robot, np.zeros(3), {}),
        lambda robot: pl.simulate(robot, np.zeros(3), until=1.0),
        lambda robot: pl.stop(robot, np.zeros(3), np.zeros(3), brakes="never.yaml"),
        lambda robot: pl.study(robot, "never.yaml", search=False),
    ],
)
def test_the_name_of_a_file_is_no_robot(call: Callable[[Any], Any]) -> None:
    with pytest.raises(pl.BadValue, match=r"robot is 'arm.urdf' \(str\); load it first: .*pl.load"):
        call(TEXT)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"brakes": None}, r"brakes is None .*pl\.Brakes\.template\(robot\)"),
        ({"payload": "5kg"}, r"payload is '5kg' \(str\); give a mass in kg"),
        ({"until": "soon"}, r"until is 'soon' \(str\); give a time in seconds"),
    ],
)
def test_stops(robot: pl.Mechanism, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(pl.BadValue, match=message):
        pl.stop(
            robot, np.zeros(3), np.zeros(3), **{"brakes": pl.Brakes.template(robot), **arguments}
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"space": 3}, r"space is 3 \(int\); give a pl\.safety\.Space"),
        ({"sampling": 16}, r"sampling is 16 \(int\); give for example pl\.safety\.Sobol\(64\)"),
        ({"sampling": "sobol"}, r"sampling is 'sobol' \(str\)"),
    ],
)
def test_studies(robot: pl.Mechanism, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(pl.BadValue, match=message):
        pl.study(robot, pl.Brakes.template(robot), **arguments, search=False)
    with pytest.raises(pl.BadValue, match=r"study is 3 \(int\); give what pl\.study"):
        pl.worst_case(3)  # type: ignore[arg-type]


def test_forces_are_a_list(robot: pl.Mechanism) -> None:
    with pytest.raises(pl.BadValue, match=r"forces is .*; give a list of forces"):
        pl.simulate(robot, np.zeros(3), until=1.0, forces=pl.forces.JointDamping())  # type: ignore[arg-type]


STRANGE: dict[str, tuple[Callable[[Array], Any], str]] = {
    "short": (lambda x: x[:-1], r"{} has shape \(5,\); it needs \(6,\)"),
    "long": (lambda x: np.append(x, 0.0), r"{} has shape \(7,\); it needs \(6,\)"),
    "column": (lambda x: x[:, None], r"{} has shape \(6, 1\); it needs \(6,\)"),
    "table": (lambda x: np.zeros((2, 3, 4)), r"{} has shape \(2, 3, 4\); it needs \(6,\)"),
    "number": (lambda x: 1.0, r"{} is 1.0 \(float\); .* needs an array of numbers"),
    "list": (list, r"{} is \[.*\(list\); .* needs an array of numbers"),
    "complex": (lambda x: x + 0j, r"{} is of kind complex128; it needs real numbers"),
    "objects": (lambda x: x.astype(object), r"{} is .*"),
    "nan": (lambda x: x * np.nan, r"{} is not finite|infinite|not finite"),
    "text": (lambda x: "x", r"{} is 'x' \(str\); .* needs an array of numbers"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Casting complex")
@pytest.mark.parametrize("kind", STRANGE)
@pytest.mark.parametrize("formulation", [None, pl.Augmented(), pl.ODCA()])
def test_states_of_another_shape(kind: str, formulation: Any) -> None:
    """What can go wrong inside is told by the names of the arguments; the rest does no harm."""
    arm = pl.load(URDF / "six_axis_arm.urdf")
    equations = pl.EquationsOfMotion(arm, formulation=formulation)
    q, make, message = np.linspace(0.1, 0.6, 6), *STRANGE[kind]
    for method in (
        "acceleration", "motion", "jump", "body_motion", "closed", "terms", "force", "energies",
        "powers", "dampings", "system", "mass", "residual", "closure", "around",
    ):  # fmt: skip
        call = getattr(equations, method)
        names = [name for name in inspect.signature(call).parameters if name != "t"]
        more = () if method == "mass" else (0.0,)
        for k, name in enumerate(names):
            state = [q] * len(names)
            state[k] = make(q)
            try:
                call(*more, *state)
            except pl.PinloopError as error:
                if "formulation=pl.ODCA()" not in str(error):
                    wanted = message.format(name) + "|configuration"
                    assert re.search(wanted, str(error)), str(error)


def test_tables_of_joints_and_arrays(robot: pl.Mechanism) -> None:
    with pytest.raises(pl.BadValue, match=r"values is \[1, 2\] .*give them by joint"):
        robot.configuration([1, 2])  # type: ignore[arg-type]
    with pytest.raises(pl.BadValue, match=r"rates is 3 \(int\); give them by joint"):
        robot.velocity(3)  # type: ignore[arg-type]
    with pytest.raises(pl.BadValue, match=r"array, not a table of joints; .*robot\.configuration"):
        pl.simulate(robot, {"joint_1": 1.0}, until=1.0)  # type: ignore[arg-type]
    with pytest.raises(pl.BadValue, match=r"array, not a table of joints; .*robot\.velocity"):
        pl.simulate(robot, np.zeros(3), {"joint_1": 1.0}, until=1.0)  # type: ignore[arg-type]


def test_files_that_are_not_written(robot: pl.Mechanism, tmp_path: Path) -> None:
    run = pl.simulate(robot, np.zeros(3), until=1e-3)
    nowhere = tmp_path / "nowhere"
    for write, name in (
        (run.save, "run.npz"), (run.to_csv, "run.csv"), (run.save_html, "run.html"),
        (robot.save, "robot.urdf"), (pl.Brakes.template(robot).to_yaml, "x.brakes.yaml"),
    ):  # fmt: skip
        with pytest.raises(pl.BadValue) as caught:
            write(nowhere / name)
        assert str(caught.value) == (
            f"{nowhere / name} cannot be written: there is no folder '{nowhere}'; make it first"
        )
    assert not nowhere.exists()
    full = not_written(tmp_path / "x", OSError(28, "No space left on device"))
    assert str(full) == f"{tmp_path / 'x'} cannot be written: no space left on device"


def test_poses_of_a_study_stay_within_limits() -> None:
    arm = pl.load(URDF / "six_axis_arm.urdf")
    brakes = pl.Brakes.template(arm)
    upper = float(arm.model.upperPositionLimit[4])  # of joint_5
    message = r"pose of 'joint_5' goes from 0 to 90 rad, beyond its limits of -3\.4034 to 0\.5236"
    with pytest.raises(pl.BadValue, match=message):
        pl.safety.Space(pose={"joint_5": (0.0, 90.0)}).variables(arm, brakes)
    for pose in (-3.5, (-3.5, 0.0), (0.0, 0.6)):
        with pytest.raises(pl.BadValue, match="beyond its limits"):
            pl.safety.Space(pose={"joint_5": pose}).variables(arm, brakes)
    assert pl.safety.Space(pose={"joint_5": (0.0, upper)}).variables(arm, brakes)[4].high == upper
