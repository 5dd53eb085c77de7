"""Steps of a run by the native kernel: what `Stepper` and `Projector` do, as far as they are sure.

What would have to be decided anew ends a call of the kernel, and they do it: other dependent
coordinates or rows, a step near a bifurcation, one that shrinks to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .. import tolerances
from ..boundary.marks import Array
from ..constraints.relative_motion import JointMotion, Place
from ..dynamics import EquationsOfMotion
from ..dynamics.forces import PD, Damper, Force, JointSpring, PointForce, Spring, Torque
from ..dynamics.independence import INFINITE
from ..dynamics.kernel_tables import HAS_KERNEL, frame_numbers, link_of, tables_of_rows
from ..dynamics.losses import AxisTorques, JointDamping, file_losses
from ..dynamics.pinocchio_solver import HeldRows, standing
from ..dynamics.right_hand_side import RightHandSide
from ..integrate import MANY, TURN, MuntheKaas, Segment, State, StepControl
from ..model.mechanism import Mechanism
from ..model.workspace import remembered
from ..tolerances import Regularity
from .modes import RobotManifold
from .stabilization import CURVED, Projector

if HAS_KERNEL:
    from .._kernel import Steps

S = TypeVar("S", bound="Steps")
_SETTINGS = "CONTRADICTION", "GRAM_NOISE", "GUARD_BAND", "LEAST_ERROR", "STEP_INSTANT", "TIME_SUM"
_NUMBERS = {
    **{name: getattr(tolerances, name) for name in _SETTINGS},
    **{name: getattr(Regularity, name) for name in ("NEAR", "WORSE", "WORST")},
    "CURVED": CURVED,
    "INFINITE": INFINITE,
    "TURN": TURN,
    "FIRST_ERROR": StepControl.FIRST_ERROR,
}


class NativeSteps:
    """The kernel for the steps of a run in one mode.

    Args:
        along: accelerations along the run.
        equations: equations of motion that they are of; the kernel has `EquationsOfMotion.tables`.
        method: integrator, explicit.
        manifold: configuration group, which may hold joints.
        projector: what projects states; None if nothing does.
    """

    def __init__(
        self,
        along: RightHandSide,
        equations: EquationsOfMotion,
        method: MuntheKaas,
        manifold: RobotManifold,
        projector: Projector | None,
    ) -> None:
        robot, locked = equations.robot, equations.rows.locked
        self._along, self._manifold, self._projector = along, manifold, projector
        self._held: HeldRows | None = None
        self._armature = standing(robot.model, equations.rows.locked).armature
        # With forces the kernel is not given to anybody else.
        projection = _projection(equations, projector)
        self._idle = _idle_steps(robot, method, tuple(locked.tolist()), projection)
        if self._idle and not equations.given_forces:
            self._steps = self._idle.pop()
        else:
            assert equations.tables is not None
            marks = np.bincount(locked, minlength=robot.nv).tolist()
            make = partial(Steps, equations.tables, locked=marks)
            self._steps = create_kernel(make, equations, method, projector)
            if equations.given_forces:
                self._idle = []
        self._steps.dynamics.hold([], [], [], self._armature)

    def release(self) -> None:
        """Give the kernel back at the end of the mode."""
        self._idle.append(self._steps)

    @classmethod
    def of(
        cls,
        along: RightHandSide,
        equations: EquationsOfMotion,
        method: MuntheKaas,
        manifold: RobotManifold,
        projector: Projector | None,
    ) -> NativeSteps | None:
        """The kernel, if it takes such steps."""
        tableau, robot = method.tableau, equations.robot
        chooses = projector is None or projector.chooses
        explicit = not tableau.implicit and len(tableau.errors) <= 2
        if not (explicit and chooses and robot.nv > 0):
            return None
        rows = tables_of_rows(robot, whole=False)
        if equations.tables is None or rows is None:
            return None
        if not (forces := equations.given_forces):
            return cls(along, equations, method, manifold, projector)
        loads = native_loads(robot, forces)
        if loads is None:
            return None
        native = cls(along, equations, method, manifold, projector)
        native._steps.load(*loads)
        return native

    def take(
        self,
        start: tuple[float, float, float, float, float],
        state: State,
        times: list[float],
        asked: list[int],
    ) -> Segment | None:
        """See `ManySteps`."""
        held, steps = self._along.held, self._steps
        if held is None and self._along.solver is not None:
            return None
        if held is not None and held is not self._held:
            limits = held.stale.tolist(), held.bad.tolist()
            steps.dynamics.hold(held.chosen.tolist(), *limits, self._armature)
            self._held = held
        kernel = Kernel(steps, self._projector, self._manifold)
        return take_steps(kernel, start, state, times, asked, MANY)


class Kernel(NamedTuple):
    """A kernel that takes steps.

    Args:
        steps: the kernel.
        projector: what knows how to project; None if nothing does.
        manifold: configuration group.
        inside: number of second derivatives inside a step that the kernel writes.
        events: what has happened where the last step ends, asked afterwards; None if it does not
            look for that.
    """

    steps: Steps
    projector: Projector | None
    manifold: RobotManifold
    inside: int = 0
    events: Callable[[], tuple[Any, ...]] | None = None


def take_steps(
    kernel: Kernel,
    start: tuple[float, float, float, float, float],
    state: State,
    times: list[float],
    asked: list[int],
    most: int,
) -> Segment | None:
    """Let a kernel take so many steps at most; see `ManySteps`."""
    steps, projector, manifold, inside, events = kernel
    # The state that is given is the first one.
    t, notes, counts = np.empty(most + 1), np.empty((most, 5)), np.empty((most, 3), np.int64)
    q, v, a = (np.empty((most + 1, len(x))) for x in state)
    psi, before = np.empty((2, most, len(state[1])))
    inner = np.empty((most, inside, len(state[1])))
    t[0], q[0], v[0], a[0] = start[0], *state
    rooms = q[1:], v[1:], a[1:], psi, before
    asked = [k for k in asked if k < most]
    if projector is not None:
        steps.recall(projector.known)
    count = steps.take(start, state, times, asked, (notes, counts), rooms, inner)
    if count == 0:
        return None
    if projector is not None:
        regularity, best = notes[count - 1, 3:].tolist()
        projector.remember(regularity, best, steps.block())
    t[1:] = notes[:, 0]
    last = count + 1
    return Segment(
        manifold,
        *(t[:last], q[:last], v[:last], a[:last]),
        *(psi[:count], before[:count], notes[:count, 1:], counts[:count]),
        inner=inner[:count] if inside else None,
        events=events and events(),
    )


@remembered
def _idle_steps(
    robot: Mechanism,
    method: MuntheKaas,
    locked: tuple[int, ...],
    projection: tuple[float, int] | None,
) -> list[Steps]:
    """Kernels for such steps that nobody is using; several threads may take and give them back."""
    return []


def _projection(
    equations: EquationsOfMotion, projector: Projector | None
) -> tuple[float, int] | None:
    """Tolerance of a projection, and how many rows are independent, -1 if that is unknown."""
    if projector is None:
        return None
    rank = equations.rank
    return projector.tol, -1 if rank is None else rank - len(equations.rows.locked)


def create_kernel(
    make: Callable[[tuple[Array, Array, Array], dict[str, float], Array], S],
    equations: EquationsOfMotion,
    method: MuntheKaas,
    projector: Projector | None,
) -> S:
    """A kernel that takes steps as `Stepper` does, and projects them as a `Projector`.

    Args:
        make: makes it from a tableau, from all that steps are compared with, and from the unit of
            each velocity.
        equations: equations of motion of the robot.
        method: integrator, explicit.
        projector: what projects states; None if nothing does.
    """
    robot, tableau = equations.robot, method.tableau
    unit = np.where(robot.is_translation, robot.length, 1.0)
    alpha, beta = StepControl.exponents(tableau)
    settings = _NUMBERS | {"alpha": alpha, "beta": beta}
    settings |= {name: getattr(method, name) for name in ("rtol", "atol", "smallest", "largest")}
    steps = make((tableau.a, tableau.b, tableau.error_weights), settings, unit)
    if projection := _projection(equations, projector):
        settings["tol"], settings["rank"] = projection
        rows = tables_of_rows(robot, whole=False)
        assert rows is not None
        armature = standing(robot.model, equations.rows.locked).armature
        steps.project(rows, settings, unit, armature)
    return steps


def native_loads(robot: Mechanism, forces: Sequence[Force]) -> tuple[Array, ...] | None:
    """Forces as the kernel has them, see `Steps.load`; None if it does not have one of them."""
    terms, lines, pushes = np.zeros((3, robot.nv)), list[Array](), list[list[float]]()
    axes = list[list[float] | None]()
    constant, _, damping = terms
    for force in forces:
        if isinstance(force, (Spring, Damper)):
            lines.append(_line(robot, force))
        elif isinstance(force, AxisTorques):
            for axis, torque in zip(force.axes, force.torques, strict=True):
                if axis.column is not None:
                    constant[axis.column] += torque
                elif torque:
                    axes.append(_axis(robot, axis.motion, axis.place, torque))
        elif isinstance(force, JointDamping) and force.coefficients is None:
            for motion, coefficients in file_losses(robot, "damping"):
                if motion is None:
                    damping += coefficients
                    continue
                for place, c in enumerate(coefficients):
                    axes.append(_axis(robot, motion, place, 0.0, 0.0, c))
        elif isinstance(force, PointForce) and not callable(force.force):
            pushes.append(_push(robot, force))
        else:
            for joint, numbers in _at_joints(force).items():
                at = robot.coordinates(joint) if joint in robot.joints else None
                if not joint or any(map(callable, numbers)) or (at and not at.nv == at.nq == 1):
                    return None
                if at is None:
                    near = force.rest if isinstance(force, JointSpring) else 0.0
                    motion = JointMotion(robot, joint)
                    one = len(motion.axes) == 1
                    axes.append(_axis(robot, motion, 0, *numbers, near) if one else None)
                    continue
                terms[:, at.v] += np.array(numbers, dtype=float)[:, None]
    known = [axis for axis in axes if axis is not None]
    if len(known) < len(axes):
        return None
    shapes = (lines, 11), (pushes, 8), (known, 37)
    return terms, *(np.array(rows, dtype=float).reshape(-1, size) for rows, size in shapes)


def _push(robot: Mechanism, given: PointForce) -> list[float]:
    """Joint and point, force in the axes of the world or of the joint, which of both."""
    place, force = given.frame, np.ravel(np.asarray(given.force, dtype=float))
    if given.local:
        name = place if isinstance(place, str) else place[0]
        force = robot.model.frames[robot.frame_id(name)].placement.rotation @ force
    return [*_end(robot, place), *force, given.local]


def _axis(
    robot: Mechanism,
    motion: JointMotion,
    place: int,
    constant: float,
    stiffness: float = 0.0,
    damping: float = 0.0,
    near: float = 0.0,
) -> list[float] | None:
    """An axis of a joint that closes a loop; None if the kernel does not have it."""
    if motion.loop_axes is None or (stiffness and motion.is_screw):
        return None
    frames, rates = motion.loop_axes
    ends = [robot.model.frames[frame] for frame in frames]
    numbers = [x for end in ends for x in (link_of(robot, end), *frame_numbers(end.placement))]
    turns = not motion.is_translation[place]
    return [*numbers, *rates[place], turns, near, constant, stiffness, damping]


def _line(robot: Mechanism, force: Spring | Damper) -> Array:
    """Joints and points of both ends, stiffness, length, damping."""
    ends: list[float] = []
    for place in (force.frame_a, force.frame_b):
        ends += _end(robot, place)
    if isinstance(force, Damper):
        return np.array([*ends, 0.0, 0.0, force.damping])
    return np.array([*ends, force.stiffness, force.length, 0.0])


def _end(robot: Mechanism, place: Place) -> list[float]:
    """Link that carries a point, and its place there."""
    name, point = (place, np.zeros(3)) if isinstance(place, str) else place
    frame = robot.model.frames[robot.frame_id(name)]
    return [link_of(robot, frame), *(frame.placement * np.asarray(point, dtype=float))]


def _at_joints(force: Force) -> dict[str, tuple[Any, float, float]]:
    """Constant, stiffness and damping at joints; joint "" stands for any other force."""
    if isinstance(force, JointDamping):
        return {joint: (0.0, 0.0, c) for joint, c in (force.coefficients or {}).items()}
    if isinstance(force, Torque):
        return {force.joint: (force.value, 0.0, 0.0)}
    if isinstance(force, JointSpring):
        return {force.joint: (force.stiffness * force.rest, force.stiffness, 0.0)}
    if isinstance(force, PD) and not (callable(force.target) or callable(force.rate)):
        push = force.stiffness * force.target + force.damping * force.rate
        return {force.joint: (push, force.stiffness, force.damping)}
    return {"": (None, 0.0, 0.0)}
