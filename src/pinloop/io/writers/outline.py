"""A robot as other programs have it: bodies under one another, joints axis by axis, loops.

All writers but that of URDF, which knows every pair, start from an `Outline`. Coordinates are those
of the robot's own model, in its order. Knows no format.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import pinocchio as pin

from ...boundary.marks import Array
from ...errors import BadValue, listed
from ...model.description import GROUND, Body, Joint
from ...model.mechanism import Mechanism
from ...model.tree import coordinate_names, coordinate_order, tree_coordinates

Kind = Literal["fixed", "axes", "ball", "free", "screw"]
_KINDS: dict[str, Kind] = {"fixed": "fixed", "spherical": "ball", "free": "free"}
_UNLIMITED = {"lower": -np.inf, "upper": np.inf, "velocity": np.inf, "effort": np.inf}


@dataclass(frozen=True, eq=False)
class Axis:
    """One motion of a joint.

    Args:
        name: that of its joint, with the axis behind it where the joint has several.
        slides: whether it is a slide.
        direction: unit vector in the joint's frame on the body that it carries, shape (3,).
        sign: -1 if the tree walks the joint against its direction.
        limits: "lower", "upper", "velocity" and "effort"; infinite: none.
        losses: "damping", "friction" and "armature", this with what a rotor adds.
    """

    name: str
    slides: bool
    direction: Array
    limits: dict[str, float]
    losses: dict[str, float]


@dataclass(frozen=True, eq=False)
class Branch:
    """A body, and the joint that carries it.

    Args:
        parent: the body that carries this one, or `GROUND`.
        body: the body.
        placement: its placement in the parent at zero coordinates.
        name: name of the joint.
        kind: "axes" for turns and slides one after the other; "screw" for a turn with an advance.
        mount: the joint's frame in the body.
        axes: one per degree of freedom.
        joint: the joint as described; None where the body is the base.
    """

    parent: str
    body: Body
    placement: pin.SE3
    name: str
    kind: Kind = "fixed"
    mount: pin.SE3 = field(default_factory=pin.SE3.Identity)
    axes: tuple[Axis, ...] = ()
    joint: Joint | None = None


class Outline:
    """A robot to be written.

    Attributes:
        robot: the robot.
        branches: bodies with their joints, parents first.
    """

    def __init__(self, robot: Mechanism, file_format: str) -> None:
        self.robot = robot
        self._format = file_format
        self._unsaid: dict[str, list[str]] = {}
        self.branches = tuple(self._branches())
        if any(drive.rotor_inertia for drive in robot.drives.values()):
            self.omit("rotors other than by the inertia that they add to joints")

    def omit(self, what: str, name: str = "") -> None:
        """Note a thing that the format cannot say, and of what it would have been said."""
        self._unsaid.setdefault(what, []).append(name)

    @property
    def unsaid(self) -> str:
        """What the file does not say, as the rest of a sentence; "" if it says all."""
        return "; ".join(what + listed(names, " of ") for what, names in self._unsaid.items())

    def refuse(self, what: str, way_out: str = "") -> BadValue:
        """The error that something cannot be written."""
        return BadValue(f"{what}, which {self._format} cannot say{way_out}")

    @cached_property
    def placements(self) -> dict[str, pin.SE3]:
        """Placements of the bodies in the world at zero coordinates."""
        placements = {GROUND: pin.SE3.Identity()}
        for branch in self.branches:
            placements[branch.body.name] = placements[branch.parent] * branch.placement
        return placements

    @cached_property
    def axes(self) -> dict[str, Axis]:
        """The axes of joints that have one, by the joints' names."""
        return {x.name: x.axes[0] for x in self.branches if len(x.axes) == 1}

    def carrier(self, branch: Branch) -> str:
        """The body over a branch; for a free one this must be the ground, or welded to it."""
        parent = branch.parent
        welded = {x.body.name: x.parent for x in self.branches if x.kind == "fixed"}
        while branch.kind == "free" and parent in welded:
            parent = welded[parent]
        if branch.kind == "free" and parent != GROUND:
            raise self.refuse(f"joint '{branch.name}' is free between moving bodies")
        return parent

    def loops(self) -> Iterator[Joint]:
        """The joints that close loops; what is said only of joints with coordinates is noted."""
        for cut in self.robot.tree.cuts:
            if any((cut.lower, cut.velocity, cut.effort, cut.damping, cut.friction, cut.armature)):
                self.omit("limits and losses of loops", cut.name)
            yield cut

    def _branches(self) -> Iterator[Branch]:
        description, tree = self.robot.description, self.robot.tree
        bodies = {body.name: body for body in description.bodies}
        if description.base is not None:
            base, identity = bodies[description.base], pin.SE3.Identity()
            yield Branch(GROUND, base, identity, f"{base.name}_fixed")
        for edge in tree.edges:
            joint = edge.joint
            ends = joint.frame_parent, joint.frame_child
            a, b = ends if edge.orientation > 0 else ends[::-1]
            axes = tuple(self._axes(joint)) if joint.pair.dof else ()
            kind = _KINDS.get(joint.pair.name, "axes") if joint.coordinates != "zyx" else "axes"
            kind = "screw" if joint.pair.advance else kind
            parts = edge.parent, bodies[edge.child], a * b.inverse(), joint.name
            yield Branch(*parts, kind, b, axes, joint)

    def _axes(self, joint: Joint) -> Iterator[Axis]:
        model, tree = self.robot.model, self.robot.tree
        labels = coordinate_names(tree, joint.name)
        places = tree_coordinates(model, joint.name)
        first = self.robot.coordinates(joint.name).v.start
        for v, (label, q) in enumerate(zip(labels, places, strict=True), first):
            limits = {
                "velocity": float(model.upperVelocityLimit[v]),
                "effort": float(model.upperEffortLimit[v]),
                **{key: _UNLIMITED[key] for key in ("lower", "upper")},
            }
            if isinstance(q, int):
                limits["lower"] = float(model.lowerPositionLimit[q])
                limits["upper"] = float(model.upperPositionLimit[q])
            elif joint.lower:
                self.omit("position limits", joint.name)
            losses = {
                "damping": float(model.damping[v]),
                "friction": float(model.upperDryFrictionLimit[v]),
                "armature": float(model.armature[v]),
            }
            direction = coordinate_order(tree, joint.name) * np.eye(3)["xyz".index(label[1])]
            name = joint.name if len(labels) == 1 else f"{joint.name}_{label}"
            yield Axis(name, label[0] == "v", direction, limits, losses)


def mesh_name(path: Path, folder: Path | None) -> str:
    """Name of a mesh in a file in ``folder``: as seen from there, but across the whole disk."""
    path = path.resolve()
    if folder is not None:
        here = folder.resolve()
        if len(Path(os.path.commonpath((path, here))).parts) > 1:
            return Path(os.path.relpath(path, here)).as_posix()
    return path.as_posix()


def mimic_terms(outline: Outline, what: str) -> Iterator[tuple[str, str, float, float]]:
    """The couplings ``joint = ratio * source + offset``; others are refused.

    Raises:
        BadValue: a coupling is not linear between two joints of the tree.
    """
    for coupling in outline.robot.couplings:
        rows = coupling.polynomials
        linear = len(rows) == 2 and not any(any(row[2:]) for row in rows) and rows[0][1]
        if not linear or not {*coupling.joints} <= outline.axes.keys():
            raise outline.refuse(f"coupling '{coupling.name}' is not {what}")
        joint, source = coupling.joints
        slope = rows[0][1]
        yield joint, source, -rows[1][1] / slope, -(rows[0][0] + rows[1][0]) / slope
