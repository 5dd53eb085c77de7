"""What drives feel and can do at poses of a robot: inertia, forces and speeds of the tool.

Loops reflect inertias and limits: what a drive has to accelerate, what the tool can push with and
how fast it can move depend on the pose, and on all other drives. By virtual work, with the columns
of ``F`` the motions that the rows allow, the drives at rates ``G v``, the tool at ``T v``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ..boundary.arguments import public, unit_vector
from ..boundary.marks import Array, Mask
from ..boundary.values import forward
from ..constraints.relative_motion import BodyPoint, Place
from ..constraints.rows import Locked, Row
from ..errors import BadValue
from ..linalg.box import BoundedSolutions, Bounds
from ..linalg.saddle import Saddle
from ..model.mechanism import Mechanism, require_robot
from ..regularization.sampled_redundancy import with_all_rows
from ..tables.number_format import numbers
from ..tables.report import Report, Reported, Table
from ..tolerances import CONSISTENT, RANK, RESPONSE_RANK
from .drives import Demand, DriveTorques
from .equations import EquationsOfMotion
from .joint_axes import JointAxes, Limits

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_AXES = {"+x": (1, 0, 0), "-x": (-1, 0, 0), "+y": (0, 1, 0), "-y": (0, -1, 0)}
_AXES |= {"+z": (0, 0, 1), "-z": (0, 0, -1)}


# -- inertia -------------------------------------------------------------------------------------


@public
@dataclass(frozen=True, eq=False)
class ReflectedInertia(Reported):
    """Inertia of a robot as its drives feel it at a pose, through its loops.

    Twice the kinetic energy is ``w' matrix w`` for rates ``w`` of the drives, if joints that are
    not driven follow. Where drives cannot move independently it holds for the rates that they can
    have.

    Args:
        drives: name of each axis that is driven.
        matrix: at the joints [kg m^2, kg m, kg], shape (k, k): torque of drive i per acceleration
            of drive j.
        rotors: part of the diagonal that is the rotors', shape (k,).
        reductions: motor turns per joint turn, shape (k,).
        independent: number of drives that can move independently.
    """

    drives: tuple[str, ...]
    matrix: Array
    rotors: Array
    reductions: Array
    independent: int

    @property
    def at_motors(self) -> Array:
        """The same at the motors' shafts [kg m^2], shape (k, k)."""
        return np.asarray(self.matrix / np.outer(self.reductions, self.reductions))

    @property
    def coupling(self) -> Array:
        """How much drives disturb each other: entries over the roots of both diagonals, -1 to 1."""
        root = np.sqrt(self.matrix.diagonal())
        return np.asarray(self.matrix / np.outer(root, root))

    @property
    def load_ratio(self) -> Array:
        """Inertia of the load over that of the rotor, per drive; inf where no rotor is known."""
        load = self.matrix.diagonal() - self.rotors
        none = np.full(len(load), np.inf)
        return np.asarray(np.divide(load, self.rotors, out=none, where=self.rotors > 0))

    def __rich__(self) -> Report:
        sizes = zip(self.matrix.diagonal(), self.rotors, self.coupling, strict=True)
        rows = [
            [name, f"{inertia:.4g}", f"{rotor:.4g}", *numbers(coupling)]
            for name, (inertia, rotor, coupling) in zip(self.drives, sizes, strict=True)
        ]
        heads = ("<drive", "inertia", "of the rotor", *(f"coupling | {x}" for x in self.drives))
        return Report.of("Reflected inertia", [Table.of("At the joints, in SI units", heads, rows)])


@public
def reflected_inertia(
    robot: Mechanism,
    q: ArrayLike,
    *,
    actuated: Sequence[str] | None = None,
    rows: Sequence[Row] = (),
    locks: Sequence[str | Locked] = (),
) -> ReflectedInertia:
    """Inertia of a robot as its drives feel it at a pose, through its loops.

    Args:
        robot: the mechanism; rotors count if its file has their inertia.
        q: assembled configuration, shape (nq,).
        actuated: names of the driven joints; those of the robot by default.
        rows: constraint rows beyond loops and couplings.
        locks: locked joints, such as ``mode.locks``.

    Raises:
        BadValue: a drive cannot move in this pose, so that its inertia has no end.
    """
    require_robot(robot)
    q, model = robot.checked_configuration(q), robot.model
    equations = EquationsOfMotion(with_all_rows(robot), rows=rows, locks=locks)
    axes = JointAxes(robot, robot.actuated if actuated is None else actuated)
    M = equations.mass(q)
    with robot.workspace() as data:
        J = equations.evaluate(data, 0.0, q, np.zeros(robot.nv))[0]
        G = axes.jacobian(data)
    saddle = Saddle(M, J, equations.rows.scale, tolerance=RANK)
    # Accelerations per torque from rest, with rows and without.
    response = G @ saddle.solve(G.T, np.zeros((len(J), len(G))))[0]
    alone = (G @ Saddle(saddle.mass, J[:0]).solve(G.T, np.zeros((0, len(G))))[0]).diagonal()
    stuck = np.flatnonzero(response.diagonal() <= RESPONSE_RANK * alone)
    if len(stuck):
        names = ", ".join(repr(axes.names[k]) for k in stuck)
        raise BadValue(
            f"robot '{robot.name}' cannot move {names} in this pose, so that there is no end to "
            "the inertia; take another pose, or name the other drives in actuated="
        )
    unit = np.sqrt(response.diagonal())
    values, vectors = np.linalg.eigh(response / np.outer(unit, unit))
    solid = values > RANK * values[-1:]
    root = vectors[:, solid] / np.sqrt(values[solid]) / unit[:, None]
    own = axes.columns >= 0  # joints that close loops have no rotors
    rotors = np.where(own, np.array(model.armature)[axes.columns], 0.0)
    ratios = np.where(own, np.array(model.rotorGearRatio)[axes.columns], 1.0)
    return ReflectedInertia(axes.names, root @ root.T, rotors, ratios, int(solid.sum()))


# -- forces and speeds of the tool ---------------------------------------------------------------


@public
@dataclass(frozen=True, eq=False)
class ToolCapability(Reported):
    """Forces and speeds of a point of a robot over poses.

    Args:
        point: name of the point.
        directions: unit vectors in the world, shape (d, 3).
        names: name of each direction.
        poses: configurations, shape (n, nq).
        places: where the point is [m], shape (n, 3).
        force: greatest force along each direction [N], shape (n, d), of the drives at rest, besides
            the weight of the robot; inf where its structure takes all, NaN where the drives cannot
            even hold the robot.
        speed: greatest speed along each direction, straight and from standstill in all others
            [m/s], shape (n, d); zero where the point cannot move so, NaN where it can while the
            drives stand still.
    """

    point: str
    directions: Array
    names: tuple[str, ...]
    poses: Array
    places: Array
    force: Array
    speed: Array

    @property
    def held(self) -> Mask:
        """Poses in which the drives can hold the robot, shape (n,)."""
        return np.asarray(~np.isnan(self.force).any(axis=1))

    def of(self, quantity: Literal["force", "speed"], direction: str | None = None) -> Array:
        """Greatest force or speed per pose along a direction; the least of all by default."""
        if quantity not in ("force", "speed"):
            raise BadValue(f"the quantity is {quantity!r}; it is 'force' or 'speed'")
        values = self.force if quantity == "force" else self.speed
        if direction is None:
            return np.asarray(values.min(axis=1))
        if direction not in self.names:
            raise BadValue(f"there is no direction {direction!r}; take {', '.join(self.names)}")
        return np.asarray(values[:, self.names.index(direction)])

    def plot(
        self,
        quantity: Literal["force", "speed"] = "force",
        direction: str | None = None,
        *,
        plane: str = "xz",
    ) -> Figure:
        """Map of a quantity over the places of the point, as a figure of matplotlib.

        Args:
            quantity: which.
            direction: along which; the least of all by default.
            plane: the two axes of the world to look at, across and up.
        """
        axes = ["xyz".find(letter) for letter in plane]
        if len(axes) != 2 or -1 in axes:
            raise BadValue(f"the plane is {plane!r}; give two axes, such as 'xz'")
        values, along = self.of(quantity, direction), direction or "the weakest direction"
        unit = "force [N]" if quantity == "force" else "speed [m/s]"
        return forward(
            "show.plots",
            "by_matplotlib",
            "draw_map",
            f"Greatest {quantity} of {self.point} along {along}",
            (f"{plane[0]} [m]", f"{plane[1]} [m]"),
            self.places[:, axes],
            values,
            unit,
        )

    def __rich__(self) -> Report:
        rows = [
            [name, *_spread(force), *_spread(speed)]
            for name, force, speed in zip(self.names, self.force.T, self.speed.T, strict=True)
        ]
        parts = ("least", "median", "greatest")
        heads = [f"force | {part} [N]" for part in parts]
        heads += [f"speed | {part} [m/s]" for part in parts]
        lost = int((~self.held).sum())
        end = f"{len(self.poses)} poses."
        if lost:
            end = f"In {lost} of {len(self.poses)} poses the drives cannot hold the robot."
        table = Table.of("Greatest along each direction", ("<direction", *heads), rows)
        return Report.of(f"Capability of {self.point}", [table], end)


@public
def tool_capability(
    drives: DriveTorques | Mechanism,
    tool: Place,
    poses: ArrayLike,
    *,
    directions: ArrayLike | None = None,
    speeds: Limits | None = None,
) -> ToolCapability:
    """Greatest forces and speeds of a point of a robot within the limits of its drives.

    Forces are pure ones that the point exerts on something else while the robot is at rest: along
    ``+z`` it is what the robot can lift. Dry friction, which may help or hinder, is left out.

    Args:
        drives: the drives with their limits, forces and locks; those of a robot's file by default.
        tool: body or frame, or this and a point of it: ``("arm", (0.1, 0, 0))``.
        poses: assembled configuration, shape (nq,), or several, shape (n, nq), such as from
            `reachable_poses`.
        directions: directions in the world, shape (d, 3); both ways along its axes by default.
        speeds: limits of speeds by joint [rad/s, m/s], instead of those of the robot's file. A
            limit of zero in a file is none.
    """
    drives = drives if isinstance(drives, DriveTorques) else DriveTorques(drives)
    robot, names = drives.robot, tuple(_AXES)
    point, given = BodyPoint(robot, tool), [*_AXES.values()]
    if directions is not None:
        given = [*np.atleast_2d(np.asarray(directions, dtype=float))]
        names = tuple("({:.3g}, {:.3g}, {:.3g})".format(*x) for x in given)
    units = np.array([unit_vector(x, "a direction") for x in given])
    bounds = drives.axes.limits("velocity", speeds or {})
    configurations = np.atleast_2d(np.asarray(poses, dtype=float))
    places, forces, rates = [], [], []
    for q in configurations:
        demand = drives.demand(q, np.zeros(robot.nv), np.zeros(robot.nv))
        with robot.workspace() as data:
            pin.computeJointJacobians(robot.model, data, q)
            pin.updateFramePlacements(robot.model, data)
            T, G = point.jacobian(data) @ demand.F, drives.axes.jacobian(data) @ demand.F
            places.append(point.position(data))
        forces.append(_forces(T, demand, units))
        rates.append(_speeds(T, G, bounds, units))
    return ToolCapability(
        point.name,
        units,
        names,
        configurations,
        np.array(places).reshape(-1, 3),
        np.array(forces).reshape(-1, len(units)),
        np.array(rates).reshape(-1, len(units)),
    )


def _spread(values: Array) -> list[str]:
    """Least, median and greatest of the values that are known."""
    known = values[~np.isnan(values)]
    spread = np.quantile(known, (0.0, 0.5, 1.0), method="nearest") if len(known) else [np.nan] * 3
    return numbers(spread)


def _forces(T: Array, demand: Demand, directions: Array) -> list[float]:
    """Greatest forces of a point at ``T u`` along directions, besides what holds the robot."""
    if not demand.solved[1]:
        return [np.nan] * len(directions)
    needed, bounds = demand.needed, demand.bounds
    return [_number(demand.solutions.reach(needed, T.T @ x, bounds)) for x in directions]


def _number(value: float | None) -> float:
    return np.nan if value is None else value


def _speeds(T: Array, G: Array, bounds: Bounds, directions: Array) -> list[float]:
    """Greatest speeds of a point at ``T u`` along directions, with the drives at ``G u``.

    The unknowns are the rates of the drives: those that can be, ``out' w = 0``, move the point at
    ``T G^+ w``.
    """
    follows = BoundedSolutions(G)
    idle = np.abs(T - T @ follows.inverse @ G).max(initial=0.0)
    if idle > CONSISTENT * np.abs(T).max(initial=0.0):
        return [np.nan] * len(directions)
    conditions = np.vstack([follows.out.T, T @ follows.inverse])
    solutions, rest = BoundedSolutions(conditions), np.zeros(len(conditions))
    goals = (np.append(np.zeros(len(rest) - 3), direction) for direction in directions)
    return [_number(solutions.reach(rest, goal, bounds)) for goal in goals]
