"""What the documentation says of Pinocchio and Crocoddyl holds.

A test that fails here says that upstream has mended it: take the report, or the trap of
docs/pinocchio_users.md or docs/optimal_control.md, away.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray

from ..pages import blocks

Array = NDArray[np.float64]

DOCS = Path(__file__).parents[2] / "docs"
ERRORS = {"moving_axes": 0.7, "point_contacts": 2.9, "shared_data": 4.7}


@pytest.mark.parametrize("report", ERRORS)
def test_a_report_for_pinocchio_holds(report: str) -> None:
    (block,) = blocks((DOCS / "upstream" / f"{report}.md").read_text(encoding="utf-8"))
    names: dict[str, Any] = {}
    exec(block.body, names)
    assert names["error"] == pytest.approx(ERRORS[report], rel=0.2), "mended: take the report away"


def test_all_reports_are_tested() -> None:
    assert {page.stem for page in (DOCS / "upstream").glob("*.md")} == {*ERRORS}


# -- traps --------------------------------------------------------------------------------------

Q, V = np.array([0.3, np.pi / 2 - 0.3, 0.3]), np.array([1.0, -1.0, 1.0])
"""A state of `parallelogram` that its loop allows."""


def at(x: float, y: float) -> pin.SE3:
    return pin.SE3(np.eye(3), np.array([x, y, 0.0]))


def parallelogram(tilt: pin.SE3 | None = None) -> tuple[pin.Model, Any]:
    """A planar linkage without weight, whose point contact has three rows of rank two."""
    model, tilt = pin.Model(), tilt or pin.SE3.Identity()
    model.gravity = pin.Motion.Zero()
    for name, parent, place in (
        ("crank", 0, tilt),
        ("coupler", 1, at(1, 0)),
        ("rocker", 0, tilt * at(0, 1)),
    ):
        index = model.addJoint(parent, pin.JointModelRZ(), place, name)
        body = pin.Inertia(1.0, np.array([0.5, 0.0, 0.0]), 0.1 * np.eye(3))
        model.appendBodyToJoint(index, body, pin.SE3.Identity())
    ties = pin.StdVec_RigidConstraintModel()
    ends = (2, at(1, 0), 3, at(1, 0), pin.LOCAL)
    ties.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, *ends))
    return model, ties


def accelerations(mu: float, tilt: pin.SE3 | None = None) -> Array:
    model, ties = parallelogram(tilt)
    data, memory = model.createData(), pin.StdVec_RigidConstraintData()
    memory.append(ties[0].createData())
    settings, tau = pin.ProximalSettings(1e-14, mu, 50), np.array([1.0, 0.0, 0.0])
    pin.initConstraintDynamics(model, data, ties, memory)
    return np.array(pin.constraintDynamics(model, data, Q, V, tau, ties, memory, settings))


def test_redundant_constraints_need_a_mu() -> None:
    # All three bodies turn by one angle or not at all: 0.35 + 0.35 + 1.0 kg m2 at 1 N m.
    wanted = np.array([1.0, -1.0, 1.0]) / 1.7
    assert np.isnan(accelerations(0.0)).all()
    rng = np.random.default_rng(0)
    tilts = [pin.SE3(pin.exp3(rng.normal(size=3)), rng.normal(size=3)) for _ in range(8)]
    for tilt in tilts:
        assert accelerations(1e-8, tilt) == pytest.approx(wanted, rel=1e-6)
    wrong = [not np.allclose(accelerations(0.0, tilt), wanted, rtol=0.1) for tilt in tilts]
    assert sum(wrong) >= 4  # without a warning


def test_impulses_ignore_the_second_joint_of_a_constraint() -> None:
    model, ties = parallelogram()
    data, memory = model.createData(), pin.StdVec_RigidConstraintData()
    memory.append(ties[0].createData())
    pin.initConstraintDynamics(model, data, ties, memory)
    before, settings = np.array([1.0, 0.0, -0.5]), pin.ProximalSettings(1e-14, 1e-8, 50)
    after = np.array(pin.impulseDynamics(model, data, Q, before, ties, memory, 0.0, settings))

    def gap(s: float) -> Array:
        pin.forwardKinematics(model, data, Q + s * after)
        tips = [data.oMi[joint].act(np.array([1.0, 0.0, 0.0])) for joint in (2, 3)]
        return np.asarray(tips[0] - tips[1])

    # The rocker's 0.5 m/s are left over.
    speed = np.linalg.norm(gap(1e-5) - gap(-1e-5)) / 2e-5
    assert speed == pytest.approx(0.5, rel=1e-6)


def test_aba_knows_no_losses_and_no_rotors() -> None:
    model, _ = parallelogram()
    plain = np.array(pin.aba(model, model.createData(), Q, V, np.zeros(3)))
    model.damping[:], model.upperDryFrictionLimit[:] = 5.0, 3.0
    model.rotorInertia[:], model.rotorGearRatio[:] = 7.0, 10.0
    assert np.array_equal(pin.aba(model, model.createData(), Q, V, np.zeros(3)), plain)
    model.armature[:] = 1.0
    assert not np.allclose(pin.aba(model, model.createData(), Q, V, np.zeros(3)), plain)


def test_a_link_with_two_parents_counts_twice_and_loops_are_ignored() -> None:
    def link(name: str, mass: float) -> str:
        inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
        return f'<link name="{name}"><inertial><mass value="{mass}"/>{inertia}</inertial></link>'

    def joint(name: str, parent: str, child: str) -> str:
        ends = f'<parent link="{parent}"/><child link="{child}"/>'
        return f'<joint name="{name}" type="continuous">{ends}<axis xyz="0 0 1"/></joint>'

    loop = '<loop_joint name="tip" type="fixed"><link1 link="a"/><link2 link="b"/></loop_joint>'
    parts = [link("a", 1.0), link("b", 2.0), joint("j1", "base", "a"), joint("j2", "a", "b")]
    text = "".join(['<robot name="twice"><link name="base"/>', *parts, "{more}</robot>"])
    tree = pin.buildModelFromXML(text.format(more=loop))
    assert (tree.njoints, pin.computeTotalMass(tree)) == (3, 3.0)
    twice = pin.buildModelFromXML(text.format(more=joint("j3", "base", "b")))
    assert (twice.njoints, pin.computeTotalMass(twice)) == (4, 5.0)


CROCODDYL = """
import crocoddyl, numpy as np, pinocchio as pin
model = pin.buildSampleModelManipulator()
state = crocoddyl.StateMultibody(model)
costs = crocoddyl.CostModelSum(state, model.nv)
frame, target = model.nframes - 1, pin.SE3.Identity()
residual = crocoddyl.ResidualModelFramePlacement(state, frame, target, model.nv)
costs.addCost("tool", crocoddyl.CostModelResidual(state, residual), 2.0)
dynamics = crocoddyl.DifferentialActionModelFreeFwdDynamics(
    state, crocoddyl.ActuationModelFull(state), costs
)
data, x = dynamics.createData(), np.append(pin.neutral(model), np.zeros(model.nv))
dynamics.calc(data, x, np.zeros(model.nv))
place = model.createData()
pin.framesForwardKinematics(model, place, x[: model.nq])
wanted = np.sum(pin.log6(place.oMf[frame]).vector ** 2)
print("right" if abs(data.cost - wanted) < 1e-9 * wanted else "wrong")
"""


def test_crocoddyl_misreads_what_pinocchio_computes() -> None:
    """Its wheel was built with other headers; it returns nonsense or ends with the process."""
    done = subprocess.run(
        [sys.executable, "-c", CROCODDYL], check=False, capture_output=True, text=True, timeout=120
    )
    assert done.stdout != "right\n", "mended: give DifferentialActionModelLooped a pin.Data again"
    assert done.returncode < 0 or done.stdout == "wrong\n", done.stderr
