"""What accelerations and reactions can be differentiated by, besides the state and the torques.

A parameter is a value that a user writes down. Inertias enter the equations linearly, those of
forces through the forces alone; where a joint sits is a coordinate like others, of a free joint
that stands still there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ..boundary.arguments import checked, flat_numbers, public
from ..boundary.marks import Array
from ..constraints.rows import InertiaSlopes
from ..errors import BadValue, UnknownName
from ..linalg.dense import slope, slopes
from ..model.mechanism import Mechanism, build
from ..model.tree import coordinate_order
from ..regularization.regularize import regularize
from ..tolerances import SLOPE_STEP
from .equations import EquationsOfMotion
from .forces import Force

__all__ = [
    "Armature",
    "BodyInertia",
    "ForceParameter",
    "Parameter",
    "Placement",
    "PointMass",
    "with_parameters",
]

_MOMENTS = (("xx", 0, 0), ("xy", 0, 1), ("yy", 1, 1), ("xz", 0, 2), ("yz", 1, 2), ("zz", 2, 2))


@public
class Parameter(ABC):
    """One or several numbers on which the motion of a robot depends."""

    @abstractmethod
    def labels(self, robot: Mechanism) -> tuple[str, ...]:
        """A name for each number."""

    def units(self, robot: Mechanism) -> tuple[str, ...]:
        """Unit of each number; empty if it is not known."""
        return tuple("" for _ in self.labels(robot))

    @property
    def places(self) -> tuple[str, ...]:
        """Joints and frames that the numbers move; then `loads` is not asked."""
        return ()

    def loads(self, equations: EquationsOfMotion, t: float, q: Array, v: Array, a: Array) -> Array:
        """Derivatives of ``M a + nle - tau`` at fixed ``a``, shape (nv, numbers)."""
        return np.zeros((equations.robot.nv, len(self.labels(equations.robot))))

    def row_slopes(
        self, equations: EquationsOfMotion, state: tuple[Array, Array, Array]
    ) -> InertiaSlopes | None:
        """Derivatives of all rows but those of locks at q, v and a; None if there are none."""
        return None

    def value_slopes(self, equations: EquationsOfMotion) -> Array:
        """Derivatives of ``b`` in ``J v = b`` of all rows but those of locks."""
        return np.zeros((equations.rows.unlocked, len(self.labels(equations.robot))))

    def energy_slopes(self, equations: EquationsOfMotion, t: float, q: Array, v: Array) -> Array:
        """Derivatives of kinetic, potential and stored energy together, shape (numbers,) [J]."""
        raise BadValue(f"derivatives of energies by {self!r} are not available")

    def of_robot(self, robot: Mechanism, values: Array) -> Mechanism:
        """The robot with other values, shape (numbers,)."""
        raise BadValue(f"{type(self).__name__} has no of_robot, which gives a robot other values")


@public
def with_parameters(
    robot: Mechanism, values: Iterable[tuple[Parameter, ArrayLike]], forces: Sequence[Force] = ()
) -> tuple[Mechanism, tuple[Force, ...]]:
    """The robot, and the forces on it, with other values of parameters.

    Args:
        robot: the mechanism.
        values: parameters, with as many numbers each as it has labels: what is to be there instead
            of what the file says; of places by how much they are moved and turned.
        forces: what acts on it.
    """
    acting = [*forces]
    for parameter, given in values:
        labels = parameter.labels(robot)
        numbers = flat_numbers(given, f"the value of parameter '{labels[0]}'", len(labels))
        if isinstance(parameter, ForceParameter):
            place = next((k for k, force in enumerate(forces) if force == parameter.force), None)
            if place is None:
                raise UnknownName("force", repr(parameter.force), map(repr, forces))
            acting[place] = parameter.of_force(acting[place], float(numbers[0]))
        else:
            robot = parameter.of_robot(robot, numbers)
    return robot, tuple(acting)


def _edited(
    robot: Mechanism, part: str, name: str, edit: Callable[[Any], Any], *, moves: bool = False
) -> Mechanism:
    """The robot with something else for what has a name among the bodies or joints of its file."""
    parts = getattr(robot.description, part)
    if name not in {item.name for item in parts}:
        raise UnknownName(part, name, [item.name for item in parts], robot.name)
    items = tuple(edit(item) if item.name == name else item for item in parts)
    changes: dict[str, Any] = {part: items}
    changed = build(replace(robot.description, **changes), kinematics_only=True)
    if not moves:  # then the same rows hold its loops
        return replace(changed, regularization=robot.regularization, given_length=robot.length)
    return changed if robot.regularization is None else regularize(changed)


@public
class _Inertial(Parameter):
    """Numbers of the inertia of what a joint carries, in which all is linear by its regressors."""

    @property
    @abstractmethod
    def carrier(self) -> str:
        """Body or frame."""

    @abstractmethod
    def dynamic_slopes(self, robot: Mechanism) -> Array:
        """Derivatives of the dynamic parameters of what the joint carries, shape (numbers, 10)."""

    def loads(self, equations: EquationsOfMotion, t: float, q: Array, v: Array, a: Array) -> Array:
        """By the regressor of the joint torques."""
        with equations.robot.workspace() as data:
            whole = pin.computeJointTorqueRegressor(equations.robot.model, data, q, v, a)
        # For one coordinate Pinocchio gives a vector.
        return self._by_regressor(equations.robot, np.array(whole).reshape(len(v), -1))

    def row_slopes(
        self, equations: EquationsOfMotion, state: tuple[Array, Array, Array]
    ) -> InertiaSlopes | None:
        """Of rows that depend on masses, which those of loops do not."""
        rows, robot = equations.rows, equations.robot
        if len(rows.loops) == rows.unlocked:
            return None
        slopes = self.dynamic_slopes(robot)
        return rows.inertia_slopes(state, self._joint(robot), slopes.T)

    def _joint(self, robot: Mechanism) -> int:
        """The joint that carries it; zero is the ground."""
        return int(robot.model.frames[robot.frame_id(self.carrier)].parentJoint)

    def energy_slopes(self, equations: EquationsOfMotion, t: float, q: Array, v: Array) -> Array:
        """By the regressors of the energies."""
        model = equations.robot.model
        with equations.robot.workspace() as data:
            kinetic = np.array(pin.computeKineticEnergyRegressor(model, data, q, v))
            whole = kinetic + np.array(pin.computePotentialEnergyRegressor(model, data, q))
        return np.asarray(self._by_regressor(equations.robot, whole[None])[0])

    def _by_regressor(self, robot: Mechanism, whole: Array) -> Array:
        """What a regressor of all bodies makes of the numbers; of the ground nothing."""
        slopes = self.dynamic_slopes(robot)
        joint = self._joint(robot)
        if joint == 0:
            return np.zeros((len(whole), len(self.labels(robot))))
        return np.asarray(whole[:, 10 * (joint - 1) : 10 * joint] @ slopes.T)


@public
@checked
@dataclass(frozen=True)
class BodyInertia(_Inertial):
    """Mass, centre of mass and moments of inertia of a body, as its file has them.

    Ten numbers: the mass [kg], the centre of mass in the body's frame [m], the moments about it
    [kg m^2].

    Args:
        body: name of the body.
    """

    body: str

    def labels(self, robot: Mechanism) -> tuple[str, ...]:
        """What each number is."""
        moments = (f"inertia {name}" for name, *_ in _MOMENTS)
        names = ("mass", "com x", "com y", "com z", *moments)
        return tuple(f"{self.body}: {name}" for name in names)

    def units(self, robot: Mechanism) -> tuple[str, ...]:
        """Of mass, lengths and moments."""
        return ("kg", *3 * ("m",), *6 * ("kg m^2",))

    def dynamic_slopes(self, robot: Mechanism) -> Array:
        """By differences, which are exact: they are polynomials."""
        given = self._numbers(robot)
        place = robot.model.frames[robot.frame_id(self.body)].placement

        def dynamic(change: Array) -> Array:
            return np.array(place.act(_inertia(given + change)).toDynamicParameters())

        return slopes(dynamic, 10)

    @property
    def carrier(self) -> str:
        """The body."""
        return self.body

    def _numbers(self, robot: Mechanism) -> Array:
        """What they are now, as the robot's file has them."""
        body = next((b for b in robot.description.bodies if b.name == self.body), None)
        if body is None:
            raise BadValue(f"robot '{robot.name}' has no body '{self.body}'")
        moments = [np.array(body.inertia)[i, k] for _, i, k in _MOMENTS]
        return np.array([body.mass, *body.com, *moments])

    def of_robot(self, robot: Mechanism, values: Array) -> Mechanism:
        """With another body."""
        inertia = _inertia(values)
        return _edited(
            robot,
            "bodies",
            self.body,
            lambda body: replace(
                body, mass=inertia.mass, com=inertia.lever, inertia=inertia.inertia
            ),
        )


@public
@checked
@dataclass(frozen=True)
class PointMass(_Inertial):
    """Mass of a small payload [kg], one more than there may be already.

    Args:
        frame: body or frame that carries it.
        point: where it is in the frame [m].
    """

    frame: str
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def labels(self, robot: Mechanism) -> tuple[str, ...]:
        """What it is."""
        return (f"point mass on {self.frame}",)

    def units(self, robot: Mechanism) -> tuple[str, ...]:
        """That of a mass."""
        return ("kg",)

    def dynamic_slopes(self, robot: Mechanism) -> Array:
        """Those of one kilogram."""
        kilogram = _inertia(np.array([1.0, *self.point, *np.zeros(6)]))
        place = robot.model.frames[robot.frame_id(self.frame)].placement
        return np.array(place.act(kilogram).toDynamicParameters())[None]

    @property
    def carrier(self) -> str:
        """The frame."""
        return self.frame

    def of_robot(self, robot: Mechanism, values: Array) -> Mechanism:
        """With the payload; the same rows hold its loops."""
        changed = robot.with_payload(self.frame, float(values[0]), self.point)
        return replace(changed, regularization=robot.regularization, given_length=robot.length)


@public
@checked
@dataclass(frozen=True)
class Armature(Parameter):
    """Inertia of a rotor as its joint feels it [kg m^2, kg], one per axis.

    Args:
        joint: name of the joint.
    """

    joint: str

    def labels(self, robot: Mechanism) -> tuple[str, ...]:
        """What it is."""
        return tuple(f"armature of {self.joint}" for _ in range(robot.coordinates(self.joint).nv))

    def units(self, robot: Mechanism) -> tuple[str, ...]:
        """Of moments and masses."""
        linear = robot.is_translation[robot.coordinates(self.joint).v]
        return tuple("kg" if straight else "kg m^2" for straight in linear)

    def loads(self, equations: EquationsOfMotion, t: float, q: Array, v: Array, a: Array) -> Array:
        """The accelerations of the joint."""
        at = equations.robot.coordinates(self.joint).v
        return np.diag(a)[:, at]

    def energy_slopes(self, equations: EquationsOfMotion, t: float, q: Array, v: Array) -> Array:
        """Half the squares of the rates."""
        return np.asarray(0.5 * v[equations.robot.coordinates(self.joint).v] ** 2)

    def of_robot(self, robot: Mechanism, values: Array) -> Mechanism:
        """With another rotor."""
        # Of a joint that the tree walks backwards the file has them in reverse.
        rotors = tuple(values.tolist()[:: coordinate_order(robot.tree, self.joint)])
        return _edited(robot, "joints", self.joint, lambda joint: replace(joint, armature=rotors))


@public
@checked
@dataclass(frozen=True)
class ForceParameter(Parameter):
    """A number of a force that acts on the robot: stiffness, damping, rest length, friction ...

    Args:
        force: the force, one of those that act.
        name: name of its parameter.
        joint: joint whose coefficient is meant, if the parameter has one for each.
    """

    force: Force
    name: str
    joint: str = ""

    def labels(self, robot: Mechanism) -> tuple[str, ...]:
        """What it is."""
        where = f" of {self.joint}" if self.joint else ""
        return (f"{type(self.force).__name__}.{self.name}{where}",)

    def loads(self, equations: EquationsOfMotion, t: float, q: Array, v: Array, a: Array) -> Array:
        """Of the force alone, by differences in the number."""
        step = SLOPE_STEP * max(abs(self.value), 1.0)

        def torque(change: float) -> Array:
            changed = self.of_force(self.force, self.value + change)
            return EquationsOfMotion(equations.robot, forces=[changed]).force(t, q, v)

        return -slope(torque, step)[:, None]

    def energy_slopes(self, equations: EquationsOfMotion, t: float, q: Array, v: Array) -> Array:
        """Of what the force stores."""

        def stored(change: float) -> Array:
            changed = self.of_force(self.force, self.value + change)
            energies = EquationsOfMotion(equations.robot, forces=[changed]).energies(t, q, v)[2]
            return np.array([sum(energies.values())])

        return slope(stored, SLOPE_STEP * max(abs(self.value), 1.0))

    def of_force(self, force: Force, value: float) -> Force:
        """A force with another number."""
        number: Any = value
        self._number(getattr(force, self.name, None))
        if self.joint:
            number = {**getattr(force, self.name), self.joint: value}
        changed: Force = replace(force, **{self.name: number})  # type: ignore[type-var]
        return changed

    @property
    def value(self) -> float:
        """The present number."""
        return self._number(getattr(self.force, self.name, None))

    def _number(self, given: Any) -> float:
        """The number in a value."""
        number = given.get(self.joint) if self.joint and isinstance(given, dict) else given
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise BadValue(
                f"{self.name} of {self.force!r} is no number; name one of its numbers, and for "
                "coefficients of joints the joint"
            )
        return float(number)


@public
@checked
@dataclass(frozen=True)
class Placement(Parameter):
    """Where a joint or a frame sits: six numbers, moved and turned in its own axes [m, rad].

    A joint of the tree moves with all that it carries. Of a joint that closes a loop there are two
    places, its frames ``<joint>/A`` and ``<joint>/B``.

    Args:
        name: joint or frame.
    """

    name: str

    def labels(self, robot: Mechanism) -> tuple[str, ...]:
        """What each number is."""
        return tuple(f"{self.name}: {axis}" for axis in ("x", "y", "z", "rx", "ry", "rz"))

    def units(self, robot: Mechanism) -> tuple[str, ...]:
        """Of shifts and turns."""
        return (*3 * ("m",), *3 * ("rad",))

    @property
    def places(self) -> tuple[str, ...]:
        """The joint or frame."""
        return (self.name,)

    def energy_slopes(self, equations: EquationsOfMotion, t: float, q: Array, v: Array) -> Array:
        """By differences."""
        plain = replace(equations.robot, regularization=None)  # rows have no energy

        def energy(twist: Array) -> Array:
            robot, forces = self.of_robot(plain, twist), equations.given_forces
            moved = EquationsOfMotion(robot, forces=forces)
            kinetic, potential, stored = moved.energies(t, q, v)
            return np.array(kinetic + potential + sum(stored.values()))

        return slopes(energy, 6)

    def of_robot(self, robot: Mechanism, values: Array) -> Mechanism:
        """Moved; where rows were regularized they are chosen again."""
        shift, (joint, _, end) = pin.exp6(values), self.name.rpartition("/")
        if end in ("A", "B") and joint in {loop.name for loop in robot.loops}:
            place = "frame_parent" if end == "A" else "frame_child"

            def edit(loop: Any) -> Any:
                return replace(loop, **{place: getattr(loop, place) * shift})

            return _edited(robot, "joints", joint, edit, moves=True)
        if self.name not in robot.joints:
            raise BadValue(f"'{self.name}' is neither a joint of the tree nor a frame of a loop")
        model, place_of_joint = robot.model, robot.coordinates(self.name).index
        # The body that carries it in the tree may be its child.
        carrier = "parent" if robot.tree.edge(self.name).orientation > 0 else "child"

        def move(given: Any) -> Any:
            # Axes of the joint may stand otherwise than those of its frame.
            own = getattr(given, f"frame_{carrier}")
            frame = model.frames[robot.frame_id(getattr(given, carrier))].placement * own
            turn = model.jointPlacements[place_of_joint].actInv(frame)
            return replace(given, **{f"frame_{carrier}": own * (turn.inverse() * shift * turn)})

        return _edited(robot, "joints", self.name, move, moves=True)


def _inertia(x: Array) -> pin.Inertia:
    """From mass, centre of mass and moments about it, which need not be possible."""
    inertia = pin.Inertia.Zero()
    inertia.mass, inertia.lever = float(x[0]), x[1:4]
    (xx, xy, yy, xz, yz, zz) = x[4:]
    inertia.inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return inertia
