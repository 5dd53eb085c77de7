r"""`to_pinocchio`: a mechanism as Pinocchio's own tree, constraint models and geometry models.

Pinocchio's algorithms know two closures of loops: a point of one body held to a point of another
(``CONTACT_3D``) and a frame held to a frame (``CONTACT_6D``). What these express exactly is handed
over, and what they cannot is said; nothing is approximated.

* A spherical pair is one point, a fixed one a frame.
* A revolute pair is two points of its axis. The 6 rows have rank 5: the distance of the points is
  given on both bodies.
* Rows that `regularize` has kept may be fewer. With ``V = (v, w)`` the relative twist in B, a point
  ``p`` of B holds ``v + w x p = v - [p] w``. If the kept rows ``R = (R_v, R_w)`` are combinations
  of these three, ``R_w = -R_v [p]``, and the pair holds the point anyway, then this one point is
  sufficient wherever the kept rows are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import lazy_loader
import numpy as np
import pinocchio as pin

from ..boundary.arguments import public
from ..boundary.marks import Array
from ..boundary.meshes import read_mesh_file
from ..errors import BadValue
from ..model.description import Geometry, Shape
from ..model.mechanism import Mechanism
from ..model.tree import LoopJoint, build_model
from ..tolerances import SAME

coal = lazy_loader.load("coal")


@public
@dataclass(frozen=True, eq=False)
class PinocchioModels:
    """What Pinocchio can know of a robot; made by `to_pinocchio`.

    Args:
        model: the tree, with the coordinates of the robot.
        constraint_models: `pin.RigidConstraintModel` of the loops, named like them; of a hinge the
            second one is called ``<loop>/2``. Their Baumgarte gains are zero.
        cannot: one sentence per loop or coupling that no constraint model expresses, and per shape
            that cannot be read. Dynamics of ``model`` without these is that of another robot.
        remarks: one sentence per loop that is expressed otherwise than row by row, e.g. with rows
            that are redundant.
        collision_model: the collision shapes, without collision pairs; None if there are none.
        visual_model: the visuals; None if there are none.
    """

    model: pin.Model
    constraint_models: tuple[pin.RigidConstraintModel, ...]
    cannot: tuple[str, ...]
    remarks: tuple[str, ...]
    collision_model: pin.GeometryModel | None
    visual_model: pin.GeometryModel | None

    def __repr__(self) -> str:
        return (
            f"<PinocchioModels '{self.model.name}': nv={self.model.nv}, "
            f"{len(self.constraint_models)} constraint models, {len(self.cannot)} things that "
            "Pinocchio cannot express>"
        )


@public
def to_pinocchio(robot: Mechanism) -> PinocchioModels:
    """Hand a robot over to Pinocchio, as far as its constraint models can express the loops.

    Args:
        robot: the mechanism; if it was regularized, loops whose kept rows hold one point become one
            point.

    Returns:
        Models that share nothing with the robot, and what they leave out.
    """
    if not isinstance(robot, Mechanism):
        raise BadValue(f"to_pinocchio takes a robot from pl.load, not a {type(robot).__name__}")
    # Without the frames of the loops, whose names a loop of the same name would need again.
    model = build_model(robot.description, replace(robot.tree, cuts=()))
    models: list[pin.RigidConstraintModel] = []
    cannot: list[str] = []
    remarks: list[str] = []
    for loop in robot.loops:
        expressed, remark = _loop(robot, model, loop)
        models += expressed or []
        if remark:
            (cannot if expressed is None else remarks).append(f"loop '{loop.name}': {remark}")
    report = robot.regularization
    for coupling in robot.couplings:
        if report is None or coupling.name in report.couplings:
            joints = " and ".join(f"'{joint}'" for joint in coupling.joints)
            cannot.append(
                f"coupling '{coupling.name}': it constrains coordinates of the joints {joints}, "
                "while Pinocchio's constraint models hold points and frames"
            )
    shapes: dict[str, pin.GeometryModel | None] = {}
    loader = coal.CachedMeshLoader()
    for role in ("collision", "visual"):
        shapes[role], unread = _geometry(robot, model, role, loader)
        cannot += unread
    return PinocchioModels(
        model, tuple(models), tuple(cannot), tuple(remarks), shapes["collision"], shapes["visual"]
    )


def _loop(
    robot: Mechanism, model: pin.Model, loop: LoopJoint
) -> tuple[list[pin.RigidConstraintModel] | None, str]:
    """Constraint models of a loop, None if there are none for it, and what to say about them."""
    rows, held = _kept_rows(robot, loop), loop.pair.held_points
    name = loop.pair.name
    if rows is not None and len(rows) == 0:
        return [], "no rows are left after regularization, and no constraint model is needed"
    point = None if rows is None or held is None else _one_point(rows, held)
    if point is not None:
        left = 0 if rows is None else len(rows)
        note = f"regularization left {left} rows of its {name} pair, which one point holds with 3"
        whole = loop.pair.rows == left == 3
        return [_tied(robot, model, loop, point)], "" if whole else note
    if loop.pair.dof == 0:
        return [_tied(robot, model, loop, None)], ""
    if held is not None and held.shape[1] == 1:
        tip = robot.length * held[:, 0]
        second = _tied(robot, model, loop, tip)
        second.name = f"{loop.name}/2"
        return [_tied(robot, model, loop, np.zeros(3)), second], (
            f"its {name} pair is two points of the axis, {robot.length:.3g} m apart: 6 rows, "
            "one of them redundant"
        )
    return None, (
        f"its {name} pair is neither a point, nor an axis, nor a frame that is held, which is all "
        "that Pinocchio's constraint models express; cut the loop at a spherical, revolute or "
        "fixed joint"
    )


def _kept_rows(robot: Mechanism, loop: LoopJoint) -> Array | None:
    """Rows of a loop on the twist of B relative to A, in B; None if they are not constant.

    Pairs that hold no point are not asked.
    """
    if loop.pair.held_points is None or not loop.pair.sample_selectors:
        return None
    report = robot.regularization
    selection = np.eye(loop.pair.rows) if report is None else report.selection(loop.name)
    first, *others = (selection @ selector for selector in loop.pair.sample_selectors)
    # Of a universal pair the last row, that of the angle between the axes, turns with the bodies.
    if any(np.any(np.abs(other - first) > SAME) for other in others):
        return None
    return np.asarray(first)


def _one_point(rows: Array, directions: Array) -> Array | None:
    """The point ``p`` of B that is enough to hold: ``R_w = -R_v [p]``; None if there is none.

    Args:
        rows: rows ``R``, shape (k, 6).
        directions: where points lie from B's origin that the pair holds, shape (3, d).
    """
    linear, angular = rows[:, :3], rows[:, 3:]
    point = np.zeros(3)
    if directions.size:
        columns = [(-linear @ pin.skew(direction)).ravel() for direction in directions.T]
        shift = np.linalg.lstsq(np.column_stack(columns), angular.ravel(), rcond=None)[0]
        point = directions @ shift
    missed = angular + linear @ pin.skew(point)
    return point if np.max(np.abs(missed)) < SAME else None


def _tied(
    robot: Mechanism, model: pin.Model, loop: LoopJoint, point: Array | None
) -> pin.RigidConstraintModel:
    """Tie a point of both frames of a loop, given in the axes of either, or the whole frames."""
    kind = pin.ContactType.CONTACT_6D if point is None else pin.ContactType.CONTACT_3D
    shift = pin.SE3(np.eye(3), np.zeros(3) if point is None else point)
    a, b = (robot.model.frames[index] for index in (loop.frame_a, loop.frame_b))
    tied = pin.RigidConstraintModel(
        kind,
        model,
        a.parentJoint,
        a.placement * shift,
        b.parentJoint,
        b.placement * shift,
        pin.ReferenceFrame.LOCAL,
    )
    tied.name = loop.name
    return tied


# -- shapes ---------------------------------------------------------------------------------


def _geometry(
    robot: Mechanism, model: pin.Model, role: str, loader: Any
) -> tuple[pin.GeometryModel | None, list[str]]:
    """Shapes of one role, None if there are none, and a sentence per shape that is left out."""
    shapes = [shape for shape in robot.geometry if shape.role == role]
    if not shapes:
        return None, []
    geometry, unread = pin.GeometryModel(), []
    for shape in shapes:
        try:
            solid = _solid(shape.shape, loader)
        except (RuntimeError, ValueError) as error:
            # coal tells the place in its own source first.
            reason = " ".join(str(error).rpartition("message: ")[2].partition("Hint:")[0].split())
            unread.append(
                f"{role} shape '{shape.name}': {shape.shape.path} cannot be read: {reason}"
            )
            continue
        geometry.addGeometryObject(_geometry_object(robot, model, shape, solid))
    return geometry, unread


def _geometry_object(
    robot: Mechanism, model: pin.Model, shape: Geometry, solid: Any
) -> pin.GeometryObject:
    """A shape on the joint that carries its body."""
    index = robot.frame_id(shape.body)
    frame = model.frames[index]
    placed = pin.GeometryObject(
        shape.name, frame.parentJoint, index, frame.placement * shape.placement, solid
    )
    if shape.shape.path is not None:
        placed.meshPath = str(shape.shape.path)
        placed.meshScale = np.array(shape.shape.size)
    if shape.color is not None:
        placed.overrideMaterial = True
        placed.meshColor = np.array(shape.color)
    return placed


def _solid(shape: Shape, loader: Any) -> Any:
    """A shape as coal has it; raises what coal raises on a mesh that it cannot read."""
    if shape.kind == "mesh":
        read_mesh_file(str(shape.path))  # refuses what coal would read without end
        return loader.load(str(shape.path), np.array(shape.size))
    return getattr(coal, shape.kind.capitalize())(*shape.size)  # called alike, with the same sizes
