"""The robots in MuJoCo: an MJCF text written from a scene, and runs of it.

Loop joints become ``connect`` constraints between sites: one point for a ball joint or a planar
loop, two points on the axis for a hinge. They are soft; as hard as MuJoCo allows is an impedance of
0.9999 and a time constant of two steps, or of one step where the integrator bears that. A spring is
a tendon between two sites.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from .scene import Line, Part, Poses, Scene, Tie

Array = NDArray[np.float64]

HARD = (0.9999, 0.9999, 0.001, 0.5, 2.0)
"""Impedance of constraints that are as hard as they can be."""


class MuJoCo:
    """A scene in MuJoCo.

    Args:
        scene: what to simulate.
        length: distance of the two points that hold a hinge [m].

    Raises:
        ModuleNotFoundError: MuJoCo is not installed.
    """

    def __init__(self, scene: Scene, length: float) -> None:
        self._module = import_module("mujoco")
        # Warnings are counted in the data, which `run` reads; without this they go to a log file.
        self._module.set_mju_user_warning(lambda text: None)
        self._scene = scene
        self.model = self._module.MjModel.from_xml_string(mjcf(scene, length))
        self.data = self._module.MjData(self.model)

    def prepare(self, integrator: str, step: float, constant: float, tolerance: float) -> None:
        """Choose how to integrate.

        Args:
            integrator: "EULER", "RK4" or "IMPLICITFAST".
            step: step [s].
            constant: time constant of the constraints, in steps.
            tolerance: at which the solver of the constraints ends its iterations.
        """
        model, module = self.model, self._module
        model.opt.integrator = getattr(module.mjtIntegrator, f"mjINT_{integrator}")
        model.opt.timestep, model.opt.tolerance = step, tolerance
        if constant < 2.0:
            model.opt.disableflags |= module.mjtDisableBit.mjDSBL_REFSAFE
        if model.neq:
            model.eq_solref[:] = [constant * step, 1.0]
            model.eq_solimp[:] = HARD
        self.reset()

    def reset(self) -> None:
        """Go back to the start."""
        self._module.mj_resetData(self.model, self.data)
        self.data.qpos[:] = self._coordinates()
        self.data.qvel[:] = self._velocities()
        self.data.qfrc_applied[:] = self._scene.torques

    def run(self, until: float) -> None:
        """Take steps until the end, in one call.

        Raises:
            RuntimeError: the simulation became unstable and MuJoCo started anew.
        """
        steps = round(until / self.model.opt.timestep)
        self._module.mj_step(self.model, self.data, nstep=steps)
        if np.any(self.data.warning.number):
            raise RuntimeError("the simulation is unstable")

    def poses(self) -> Poses:
        """Where the parts are."""
        self._module.mj_kinematics(self.model, self.data)
        return np.array(self.data.xpos[1:]), np.array(self.data.xmat[1:]).reshape(-1, 3, 3)

    def start_terms(self) -> tuple[Array, Array, Array]:
        """Mass matrix, bias forces and constraint Jacobian at the start."""
        self.reset()
        module, model, data = self._module, self.model, self.data
        module.mj_forward(model, data)
        full = np.zeros((model.nv, model.nv))
        module.mj_fullM(model, data, full)
        rows = np.array(data.efc_J).reshape(data.nefc, -1) if data.nefc else np.zeros((0, model.nv))
        return full, np.array(data.qfrc_bias), rows

    def _coordinates(self) -> Array:
        """Configuration at the start: quaternions are scalar first."""
        q, at, found = self._scene.q, 0, []
        for part in self._scene.parts:
            kind = part.motions[0][0]
            if kind == "free":  # the placement in the world, wherever the joint is
                found += [*part.pose.translation, *_quaternion(part.pose)]
                at += 7
            elif kind == "ball":
                found += [q[at + 3], *q[at : at + 3]]
                at += 4
            else:
                found += [*q[at : at + len(part.motions)]]
                at += len(part.motions)
        return np.array(found)

    def _velocities(self) -> Array:
        """Velocity at the start: the linear one of a free body is in the axes of the world."""
        v, at = self._scene.v.copy(), 0
        for part in self._scene.parts:
            kind = part.motions[0][0]
            if kind == "free":
                v[at : at + 3] = part.pose.rotation @ v[at : at + 3]
            at += {"free": 6, "ball": 3}.get(kind, len(part.motions))
        return v


def mjcf(scene: Scene, length: float) -> str:
    """The scene as an MJCF text."""
    children: dict[int, list[int]] = {}
    for index, part in enumerate(scene.parts):
        children.setdefault(part.parent, []).append(index)
    sites: dict[int, list[str]] = {}
    equalities = [_connect(k, tie, length, sites) for k, tie in enumerate(scene.ties)]
    tendons = [_spring(k, line, sites) for k, line in enumerate(scene.lines)]

    def body(index: int) -> str:
        inside = [*_joints(scene.parts[index]), _inertial(scene.parts[index])]
        inside += sites.get(index, []) + [body(child) for child in children.get(index, [])]
        return f"<body {_place(scene.parts[index].placement)}>{''.join(inside)}</body>"

    world = sites.get(-1, []) + [body(root) for root in children.get(-1, [])]
    return (
        f'<mujoco><compiler angle="radian"/><option gravity="{_text(scene.gravity)}" '
        'solver="Newton"><flag contact="disable" limit="disable"/></option>'
        f"<worldbody>{''.join(world)}</worldbody><tendon>{''.join(tendons)}</tendon>"
        f"<equality>{''.join(equalities)}</equality></mujoco>"
    )


def _spring(number: int, line: Line, sites: dict[int, list[str]]) -> str:
    """Sites and tendon of a spring."""
    for end, part, point in (("c", line.a, line.point_a), ("d", line.b, line.point_b)):
        sites.setdefault(part, []).append(f'<site name="{end}{number}" pos="{_text(point)}"/>')
    return (
        f'<spatial stiffness="{line.stiffness!r}" springlength="{line.length!r}">'
        f'<site site="c{number}"/><site site="d{number}"/></spatial>'
    )


def _connect(number: int, tie: Tie, length: float, sites: dict[int, list[str]]) -> str:
    """Sites and constraints of a loop joint."""
    made = []
    for k, offset in enumerate(tie.points(length)):
        for end, part, frame in (("a", tie.a, tie.frame_a), ("b", tie.b, tie.frame_b)):
            at = _text(frame.act(np.array([0.0, 0.0, offset])))
            sites.setdefault(part, []).append(f'<site name="{end}{number}_{k}" pos="{at}"/>')
        made.append(f'<connect site1="a{number}_{k}" site2="b{number}_{k}"/>')
    return "".join(made)


def _joints(part: Part) -> list[str]:
    kind = part.motions[0][0]
    if kind == "free":
        return ["<freejoint/>"]
    if kind == "ball":
        return ['<joint type="ball"/>']
    return [f'<joint type="{k}" axis="{_text(np.array(axis))}"/>' for k, axis in part.motions]


def _inertial(part: Part) -> str:
    inertia = part.inertia
    I = inertia.inertia  # noqa: E741
    full = _text(np.array([I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]))
    return (
        f'<inertial pos="{_text(inertia.lever)}" mass="{float(inertia.mass)!r}" '
        f'fullinertia="{full}"/>'
    )


def _place(at: pin.SE3) -> str:
    return f'pos="{_text(at.translation)}" quat="{_text(_quaternion(at))}"'


def _quaternion(at: pin.SE3) -> Array:
    """Rotation as a quaternion, scalar first."""
    turned: Any = pin.Quaternion(at.rotation)
    return np.array([turned.w, turned.x, turned.y, turned.z])


def _text(numbers: Array) -> str:
    return " ".join(repr(float(one)) for one in numbers)
