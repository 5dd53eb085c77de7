"""Modes: which joints are locked and which loops are open; the equations of motion of each.

Coordinates never change: a locked one stands still in the equations, and what holds it is the
reaction of a row. A loop that opens takes its rows along, and the regularization of the others is
done again without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from ..boundary.arguments import public
from ..boundary.marks import Array, Mask
from ..constraints.rows import Locked, Row, locked_columns
from ..dynamics import EquationsOfMotion, Formulation
from ..dynamics.equations import robot_equations
from ..dynamics.forces import Force, JointFriction
from ..dynamics.losses import AxisTorques, FrictionAxis, friction_axes, only_file_damping
from ..errors import BadValue
from ..linalg.dense import lapack
from ..model.mechanism import Mechanism
from ..model.workspace import remembered
from ..regularization.regularize import regularize
from ..regularization.sampled_redundancy import RowChooser, with_rows

__all__ = ["FREE", "Locked", "ModalSystem", "Mode", "RobotManifold", "locked_columns"]


class AxisFriction(NamedTuple):
    """What dry friction does at an axis in a mode.

    Args:
        joint: name of the joint.
        axis: name of the axis ("vx", "wz", ...) if the joint has several, else empty.
        slides: 0 if it sticks, else the sign of the motion that its friction resists.
    """

    joint: str
    axis: str
    slides: int

    @property
    def name(self) -> str:
        """Name for messages."""
        return f"{self.joint}.{self.axis}" if self.axis else self.joint

    @property
    def held(self) -> Locked:
        """What holds it while it sticks."""
        return Locked(self.joint, (self.axis,) if self.axis else (), by_friction=True)


@public
@dataclass(frozen=True, init=False)
class Mode:
    """What is locked, what is open, and which rows hold the loops.

    Args:
        locks: locked joints, or their names.
        opened: names of the loop joints that are open.
        rows: of a robot that was regularized with ``sampled=True``, the places of the rows that
            hold its loops, among those that motion groups leave; those that the robot carries if
            empty. A run puts in what it holds.
        friction: which axes with dry friction stick, and which way the others slide. A run decides
            that itself, whatever is given.
    """

    locks: tuple[Locked, ...]
    opened: frozenset[str]
    rows: tuple[int, ...]
    friction: tuple[AxisFriction, ...]

    def __init__(
        self,
        locks: str | Locked | Iterable[str | Locked] = (),
        opened: str | Iterable[str] = (),
        rows: Iterable[int] = (),
        friction: Iterable[AxisFriction] = (),
    ) -> None:
        given = [locks] if isinstance(locks, (str, Locked)) else locks
        if not isinstance(given, Iterable) or not isinstance(opened, Iterable):
            raise BadValue(f"a mode is made of joints and loops, not {given!r}, {opened!r}")
        held = tuple(rows) if isinstance(rows, Iterable) else (rows,)
        if not all(isinstance(row, (int, np.integer)) for row in held):
            raise BadValue(f"rows of a mode are {rows!r}; give the numbers of the rows to hold")
        locked = [entry if isinstance(entry, Locked) else Locked(entry) for entry in given]
        # Beside its lock, a joint with several axes may lie on end stops of others.
        names = [(lock.joint, *(lock.axes if lock.at_limit else ())) for lock in locked]
        for name in names:
            if names.count(name) > 1:
                raise BadValue(f"joint '{name[0]}' is locked twice")
        object.__setattr__(
            self, "locks", tuple(sorted(locked, key=lambda lock: (lock.joint, lock.axes)))
        )
        loops = [opened] if isinstance(opened, str) else opened
        object.__setattr__(self, "opened", frozenset(loops))
        object.__setattr__(self, "rows", tuple(map(int, held)))
        object.__setattr__(self, "friction", tuple(friction))

    def lock_of(self, joint: str) -> Locked | None:
        """The lock of a joint, or None; an end stop is none."""
        own = (lock for lock in self.locks if lock.joint == joint and not lock.at_limit)
        return next(own, None)

    @property
    def without_contacts(self) -> Mode:
        """The mode without the end stops that joints lie on, and without dry friction."""
        locks = tuple(lock for lock in self.locks if not lock.at_limit)
        return replace(self, locks=locks, friction=())

    @property
    def without_friction(self) -> Mode:
        """The mode as it is without dry friction."""
        return replace(self, friction=()) if self.friction else self

    @property
    def without_sliding(self) -> Mode:
        """The mode without axes that slide, whose friction is a torque."""
        friction = tuple(axis for axis in self.friction if axis.slides == 0)
        return self if friction == self.friction else replace(self, friction=friction)

    @property
    def sticking(self) -> tuple[str, ...]:
        """Names of the axes that dry friction holds."""
        return tuple(axis.name for axis in self.friction if axis.slides == 0)

    @property
    def held(self) -> tuple[Locked, ...]:
        """All that does not move: locks, end stops, axes that stick."""
        return (*self.locks, *(axis.held for axis in self.friction if axis.slides == 0))

    def holds(self, joint: str, axes: tuple[str, ...]) -> bool:
        """Whether a coordinate of a joint is locked or lies on an end stop.

        Args:
            joint: name of the joint.
            axes: name of the coordinate, if the joint has several.
        """
        return any(
            lock.joint == joint and (not lock.axes or not axes or axes[0] in lock.axes)
            for lock in self.locks
        )

    def __str__(self) -> str:
        parts = [lock.label for lock in self.locks] + [f"open:{n}" for n in sorted(self.opened)]
        parts += [f"sticks:{name}" for name in self.sticking]
        return ", ".join(parts) or "free"


FREE = Mode()
"""Nothing is locked, and all loops are closed."""


@remembered
def _curved(robot: Mechanism) -> Mask:
    """Mask of the velocity coordinates of joints that are no vector space, shape (nv,)."""
    curved = np.zeros(robot.nv, dtype=bool)
    for name in robot.joints:
        at = robot.coordinates(name)
        # Joints stored as cosine and sine (nq = 2) commute like a vector space.
        curved[at.v] = at.nq != at.nv and at.nv > 1
    curved.flags.writeable = False
    return curved


class RobotManifold:
    """Configurations of a robot: joint by joint a vector space, SO(3), SE(3), ...

    Attributes:
        curved: mask of the velocity coordinates of joints that are no vector space, shape (nv,).
        flat: whether none is.
    """

    def __init__(self, robot: Mechanism) -> None:
        self._robot, self._model = robot, robot.model
        self.curved = curved = _curved(robot)
        self.flat = not curved.any()
        curved_columns = np.flatnonzero(curved)
        # From the first to the last of them: between them lie columns of the identity.
        self._bent = (
            slice(0) if self.flat else slice(int(curved_columns[0]), int(curved_columns[-1]) + 1)
        )
        self._plain = robot.nq == robot.nv
        self._held = self._still = np.zeros(0, dtype=np.intp)

    def in_mode(self, mode: Mode) -> RobotManifold:
        """The group without the joints that are locked as a whole: they stay to the last bit."""
        whole = {lock.joint for lock in mode.held if not lock.axes}
        if not whole:
            return self
        held = [self._robot.coordinates(name) for name in self._robot.joints if name in whole]
        manifold = copy(self)
        manifold._held = np.array([k for at in held for k in range(at.q.start, at.q.stop)], np.intp)
        manifold._still = np.array(
            [k for at in held for k in range(at.v.start, at.v.stop)], np.intp
        )
        return manifold

    def integrate(self, q: Array, step: Array) -> Array:
        """Return ``q (+) step``."""
        moved: Array = q + step if self._plain else pin.integrate(self._model, q, step)
        return self._with_held(q, moved) if len(self._held) else moved

    def integrate_slopes(self, q: Array, step: Array) -> tuple[Array, Array]:
        """Derivatives of ``q (+) step`` by ``q`` and by ``step``, shape (nv, nv) each."""
        if self.flat:
            return np.eye(len(step)), np.eye(len(step))
        by_q, by_step = (
            np.array(pin.dIntegrate(self._model, q, step, which)) for which in (pin.ARG0, pin.ARG1)
        )
        return by_q, by_step

    def normalize(self, q: Array) -> Array:
        """``q`` with quaternions of unit length."""
        return q if self._plain else self._with_held(q, pin.normalize(self._model, q))

    def _with_held(self, q: Array, moved: Array) -> Array:
        if len(self._held):
            moved[self._held] = q[self._held]
        return moved

    def difference(self, q0: Array, q1: Array) -> Array:
        """The step that leads from one configuration to another."""
        if self._plain:
            return np.asarray(q1 - q0)
        step: Array = pin.difference(self._model, q0, q1)
        step[self._still] = 0.0  # of a quaternion and itself not to the last bit
        return step

    def dexp(self, q: Array, psi: Array, rate: Array) -> Array:
        """``dexp(-psi) rate``: the right Jacobian of the exponential map."""
        if self.flat:
            return rate
        at, v = self._bent, rate.copy()
        v[at] = pin.dIntegrate(self._model, q, psi, pin.ARG1)[at, at] @ rate[at]
        return v

    def dexp_inv(self, q: Array, psi: Array, v: Array) -> Array:
        """``dexpinv(-psi) v``: solve with the right Jacobian of the exponential map."""
        if self.flat:
            return v
        # The inverse Jacobian of the logarithm is the same up to half a turn, and wrong behind it.
        dexp = pin.dIntegrate(self._model, q, psi, pin.ARG1)
        at = self._bent
        rate = v.copy()
        rate[at] = lapack().dgesv(dexp[at, at], v[at])[2]
        return rate


_BUILT = ("_robots", "_chosen", "_equations", "_without_sliding")


@remembered
def _regularized(robot: Mechanism, opened: frozenset[str]) -> Mechanism:
    """The robot without some of its loops and without redundant rows.

    That takes longer than many a run, and the same robot is simulated again and again.
    """
    return regularize(robot.without_loops(opened) if opened else robot)


class BoundRow(NamedTuple):
    """A row whose reaction is at a bound, ``sign * reaction = bound``: what a guard's value knows.

    Args:
        equations: equations of motion to which it belongs.
        number: its place among the rows.
        sign: see above.
        axis: name of the axis whose dry friction is the bound; empty if the bound is zero.
    """

    equations: EquationsOfMotion
    number: int
    sign: float
    axis: str = ""


class ModalSystem:
    """The equations of motion of a robot in each of its modes, built when first needed."""

    def __init__(
        self,
        robot: Mechanism,
        *,
        rows: Sequence[Row] = (),
        forces: Sequence[Force] = (),
        formulation: Formulation | None = None,
        regularization: bool = True,
    ) -> None:
        self.robot = robot
        dry = [
            force for force in forces if isinstance(force, JointFriction) and force.speed is None
        ]
        self._rows, self._dry = tuple(rows), tuple(dry)
        self._forces = tuple(force for force in forces if force not in dry)
        self._formulation = formulation
        self._regularization = regularization
        self._robots: dict[frozenset[str], Mechanism] = {}
        self._chosen: dict[tuple[int, ...], Mechanism] = {}
        self._chooser: RowChooser | None = None
        self._equations: dict[tuple[Mode, tuple[Force, ...]], EquationsOfMotion] = {}
        self._without_sliding: dict[tuple[Mode, tuple[Force, ...]], EquationsOfMotion] = {}
        self._begun: dict[Mode, tuple[float, Array, Array]] = {}
        self._axes: tuple[FrictionAxis, ...] | None = None

    def __getstate__(self) -> dict[str, object]:
        """What is pickled: equations are built again when they are needed."""
        built: dict[str, object] = {name: {} for name in _BUILT}
        return self.__dict__ | built | {"_chooser": None, "_axes": None}

    @property
    def friction(self) -> tuple[FrictionAxis, ...]:
        """The axes with dry friction that is not smoothed."""
        if self._axes is None:
            self._axes = friction_axes(self.robot, self._dry)
        return self._axes

    @property
    def forces(self) -> tuple[Force, ...]:
        """What acts besides gravity, dry friction last."""
        return (*self._forces, *self._dry)

    def check(self, mode: Mode) -> None:
        """Check that the robot has what a mode names."""
        for lock in mode.held:
            locked_columns(self.robot, lock)
        for name in mode.opened:
            self.robot.loop(name)
        if mode.rows and mode.opened:
            raise BadValue(f"rows {list(mode.rows)} hold all loops; give none with open loops")

    def mechanism(self, opened: frozenset[str]) -> Mechanism:
        """The robot without its open loops, regularized if asked for."""
        if opened not in self._robots:
            robot = self.robot.without_loops(opened) if opened else self.robot
            if self._regularization and robot.loops and robot.regularization is None:
                robot = _regularized(self.robot, opened)
            self._robots[opened] = robot
        return self._robots[opened]

    @property
    def renews(self) -> bool:
        """Whether the rows that hold the loops may change between steps; see `renewed`."""
        report = self.robot.regularization
        return report is not None and report.held is not None

    def renewed(self, mode: Mode, q: Array) -> Mode:
        """The mode with the rows to hold at a configuration, if its robot holds sampled ones.

        The same mode as long as its rows are good; see `sampling`.
        """
        report = self.robot.regularization
        if report is None or report.held is None or mode.opened:
            return mode
        if self._chooser is None:
            self._chooser = RowChooser(self.robot)
        held = self._chooser.renewed(mode.rows or report.held, q)
        return mode if held == mode.rows else replace(mode, rows=held)

    def _holding(self, mode: Mode) -> Mechanism:
        """The robot in a mode, with the rows that hold its loops."""
        robot = self.mechanism(mode.opened)
        if not mode.rows:
            return robot
        if mode.rows not in self._chosen:
            self._chosen[mode.rows] = with_rows(robot, mode.rows)
        return self._chosen[mode.rows]

    def equations(self, mode: Mode, more: tuple[Force, ...] = ()) -> EquationsOfMotion:
        """Equations of motion of a mode; its lock rows come last.

        Args:
            mode: the mode.
            more: what acts besides the forces of the system.
        """
        key = mode, more
        if key not in self._equations:
            equations = self._held(mode.without_sliding, more)
            if self.friction:
                slides = {axis[:2]: axis.slides for axis in mode.friction}
                torques = tuple(
                    -axis.limit * slides.get((axis.joint, axis.axis), 0) for axis in self.friction
                )
                equations = equations.with_force(AxisTorques(self.friction, torques))
            self._equations[key] = equations
        return self._equations[key]

    def _held(self, mode: Mode, more: tuple[Force, ...]) -> EquationsOfMotion:
        """Equations of a mode without the friction of what slides, which many modes share."""
        key = mode, more
        if key not in self._without_sliding:
            self.check(mode)
            robot, forces = self._holding(mode), (*self._forces, *more)
            if self._rows or self._formulation is not None or not only_file_damping(forces):
                equations = EquationsOfMotion(
                    robot,
                    rows=self._rows,
                    locks=mode.held,
                    forces=forces,
                    formulation=self._formulation,
                )
            else:
                equations = robot_equations(robot, mode.held, forces)
            if mode in self._begun:
                t, q, v = self._begun[mode]
                equations.rows.begin(q, v)
                equations = equations.around(t, q)
            self._without_sliding[key] = equations
        return self._without_sliding[key]

    def near(self, mode: Mode, t: float, q: Array) -> EquationsOfMotion:
        """Equations of a mode without dry friction near where it may begin, see `begin`."""
        before = self._held(mode, ())
        self._without_sliding[mode, ()] = near = before.around(t, q)
        if near is not before:
            self._equations.pop((mode, ()), None)
        return self.equations(mode)

    def row_reaction(self, mode: Mode, label: str, t: float, q: Array, v: Array) -> float:
        """Torque or force of one row in a mode."""
        equations = self.equations(mode)
        motion = equations.motion(t, q, v)
        return float(motion.multipliers[equations.rows.labels.index(label)])

    def begin(self, mode: Mode, t: float, q: Array, v: Array) -> EquationsOfMotion:
        """Equations of motion of a mode from the state on at which it starts for the first time.

        Rows take what they need from that state, and it is what the rank of the rows is taken at.

        Args:
            mode: the mode.
            t: time [s].
            q: assembled configuration, shape (nq,).
            v: velocity, shape (nv,).
        """
        held = mode.without_sliding
        if held not in self._begun:
            self._begun[held] = t, q.copy(), v.copy()
            before = self._without_sliding.pop((held, ()), None)
            self._equations.pop((mode, ()), None)
            if before is not None and not self._rows:  # only rows of a user's begin somewhere
                self._without_sliding[held, ()] = before.around(t, q)
        return self.equations(mode)
