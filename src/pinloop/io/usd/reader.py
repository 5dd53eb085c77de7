"""The reader of USD: rigid bodies, joints of `UsdPhysics`, masses and simple shapes of a stage.

Joints with ``excludeFromArticulation`` close loops; bodies that no other joint ties to the world
float. Units of the stage become m and kg, degrees radians. Of other schemas it knows Newton's and
PhysX's armature, friction, damping, limits of speed and mimic joints.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pinocchio as pin
from scipy.cluster.hierarchy import DisjointSet

from ...boundary.marks import Array
from ...errors import BadValue, LoadError, listed
from ...model.description import GROUND, Body, Coupling, Description, Geometry, Joint, Shape
from ...model.pairs import Pair, make_pair
from ...tolerances import SAME
from ..formats import Resolver
from ..moments import Moments, turned
from ..quantities import free_root, joint_limits, new_name, spread
from .free_axes import FREE_AXES, load_usd

_FIXED_AXES = {"FixedJoint": "fixed", "SphericalJoint": "spherical", "DistanceJoint": "rod"}
_ONE_AXIS = {"RevoluteJoint": "revolute", "PrismaticJoint": "prismatic"}
_CYCLES = {"Z": [0, 1, 2], "X": [1, 2, 0], "Y": [2, 0, 1]}
"""Columns of the identity that take z to an axis, z itself first."""
_EARTH = 9.81
_SCHEMAS = ("newton", "physxJoint")


def read_usd(source: str | bytes, name: str, *, resolve: Resolver) -> Description:
    """Read the stage in a file, or in the text of one; ``name`` is for messages."""
    try:
        usd = load_usd()
    except BadValue as error:
        raise LoadError(f"is a USD stage; {error}", source=name) from None
    try:
        if isinstance(source, bytes):
            layer = usd.Sdf.Layer.CreateAnonymous(".usda")
            layer.ImportFromString(source.decode())
            stage = usd.Usd.Stage.Open(layer)
        else:
            stage = usd.Usd.Stage.Open(source)
    except Exception as error:  # what usd-core raises of a file that is none
        reason = " ".join(str(error).split())[:200]
        raise LoadError(f"cannot be read by usd-core: {reason}", source=name) from None
    return _Reader(usd, stage, name, resolve).description()


class _Reader:
    """Reads one stage."""

    def __init__(self, usd: Any, stage: Any, name: str, resolve: Resolver) -> None:
        self._usd, self._stage, self._name, self._resolve = usd, stage, name, resolve
        self._poses = usd.UsdGeom.XformCache()
        self._meter = float(usd.UsdGeom.GetStageMetersPerUnit(stage))
        self._kilogram = float(usd.UsdPhysics.GetStageKilogramsPerUnit(stage))
        self._bodies: dict[Any, str] = {}
        self._notes: dict[str, list[str]] = {}

    def description(self) -> Description:
        """The robot."""
        physics = self._usd.UsdPhysics
        prims = [*self._stage.TraverseAll()] if self._stage else []
        prims = [prim for prim in prims if prim.IsActive() and not prim.IsAbstract()]
        for prim in prims:
            if prim.HasAPI(physics.RigidBodyAPI):
                taken = {*self._bodies.values(), GROUND}
                self._bodies[prim.GetPath()] = new_name(_called(prim), taken)
        if not self._bodies:
            raise LoadError(
                "has no rigid body (a prim with PhysicsRigidBodyAPI)", source=self._name
            )
        bodies = tuple(self._body(self._stage.GetPrimAtPath(path)) for path in self._bodies)
        elements = [prim for prim in prims if prim.IsA(physics.Joint)]
        named = dict[Any, str]()
        for prim in elements:
            named[prim.GetPath()] = new_name(_called(prim), {*named.values()})
        joints = [self._joint(prim, named[prim.GetPath()]) for prim in elements]
        kept = [joint for joint in joints if joint is not None]
        actuated = tuple(j.name for p, j in zip(elements, joints, strict=True) if j and _drive(p))
        couplings = [
            coupling
            for prim, joint in zip(elements, joints, strict=True)
            if joint is not None
            for coupling in self._mimics(prim, joint, named)
        ]
        top = self._stage.GetDefaultPrim() or next(iter(prims))
        return Description(
            name=_called(top),
            bodies=bodies,
            joints=(*self._roots(kept), *kept),
            couplings=tuple(couplings),
            actuated=actuated or None,
            geometry=tuple(self._geometry(prims)),
            gravity=self._gravity(prims),
            warnings=tuple(f"{k}{listed(v, ': ')}" for k, v in self._notes.items()),
            source=self._name,
        )

    def _note(self, problem: str, prim: Any) -> None:
        sentence = f"{Path(self._name).name}: {problem}"
        self._notes.setdefault(sentence, []).append(str(prim.GetPath()))

    def _gravity(self, prims: list[Any]) -> Array:
        """The first scene's; without one the earth's, against the axis that is up."""
        up = {"X": 0, "Y": 1, "Z": 2}[str(self._usd.UsdGeom.GetStageUpAxis(self._stage))]
        direction, size = -np.eye(3)[up], _EARTH
        for prim in [p for p in prims if p.IsA(self._usd.UsdPhysics.Scene)][:1]:
            given = np.array(prim.GetAttribute("physics:gravityDirection").Get() or (0, 0, 0))
            direction = given / np.linalg.norm(given) if np.any(given) else direction
            value = prim.GetAttribute("physics:gravityMagnitude").Get()
            size = value * self._meter if value is not None and value >= 0.0 else size
        return np.asarray(direction * size)

    # -- placements -------------------------------------------------------------------------------

    def _placement(self, prim: Any) -> tuple[pin.SE3, Array]:
        """Placement in the world [m], and scale, in units of the stage, shape (3,)."""
        matrix = np.array(self._poses.GetLocalToWorldTransform(prim)).T
        scale = np.linalg.norm(matrix[:3, :3], axis=0)
        if not np.all(scale > 0.0) or np.linalg.det(matrix[:3, :3]) < 0.0:
            raise LoadError(f"{prim.GetPath()} is mirrored or flat", source=self._name)
        x, y, z = np.linalg.qr(matrix[:3, :3] / scale)[0].T
        signs = np.sign([v @ w for v, w in zip((x, y, z), (matrix[:3, :3] / scale).T, strict=True)])
        rotation = np.column_stack([x, y, z]) * signs
        return pin.SE3(rotation, matrix[:3, 3] * self._meter), scale

    def _carrier(self, prim: Any) -> tuple[str, pin.SE3]:
        """The body that a prim moves with, and the placement of the body in the world."""
        while prim and not prim.IsPseudoRoot():
            if (name := self._bodies.get(prim.GetPath())) is not None:
                return name, self._placement(prim)[0]
            prim = prim.GetParent()
        return GROUND, pin.SE3.Identity()

    def _body(self, prim: Any) -> Body:
        mass = self._usd.UsdPhysics.MassAPI(prim)
        value = float(mass.GetMassAttr().Get() or 0.0) * self._kilogram
        if not mass.GetMassAttr().HasAuthoredValue():
            self._note("a body has no mass of its own; it is taken as 0", prim)
        scale = self._placement(prim)[1] * self._meter
        com = np.array(mass.GetCenterOfMassAttr().Get() or (0.0, 0.0, 0.0))
        com = np.where(np.isfinite(com), com, 0.0) * scale  # infinite: not given
        moments = np.array(mass.GetDiagonalInertiaAttr().Get() or (0.0, 0.0, 0.0))
        axes = self._rotation(mass.GetPrincipalAxesAttr().Get())
        inertia = turned(axes, np.diag(moments * self._kilogram * self._meter**2))
        return Moments(value, com, inertia).body(self._bodies[prim.GetPath()])

    @staticmethod
    def _rotation(quaternion: Any) -> Array:
        values = [0.0] if quaternion is None else [quaternion.real, *quaternion.imaginary]
        if not np.any(values):
            return np.eye(3)
        return np.asarray(pin.Quaternion(*map(float, values)).normalized().toRotationMatrix())

    def _roots(self, joints: list[Joint]) -> Iterator[Joint]:
        """Free joints of what no joint ties to the world."""
        islands = DisjointSet([GROUND, *self._bodies.values()])
        for joint in joints:
            if joint.cut is not True:
                islands.merge(joint.parent, joint.child)
        taken = {joint.name for joint in joints}
        for path, name in self._bodies.items():
            if islands.merge(GROUND, name):
                label = new_name("root_joint", taken)
                taken.add(label)
                yield free_root(label, name, self._placement(self._stage.GetPrimAtPath(path))[0])

    # -- joints -----------------------------------------------------------------------------------

    def _joint(self, prim: Any, name: str) -> Joint | None:
        if prim.GetAttribute("physics:jointEnabled").Get() is False:
            self._note("a joint is not enabled and is left out", prim)
            return None
        ends = [self._end(prim, number) for number in (0, 1)]
        (parent, a), (child, b) = ends
        if parent == child:
            raise LoadError(f"{prim.GetPath()} joins '{parent}' to itself", source=self._name)
        kind = str(prim.GetTypeName()).removeprefix("Physics")
        turn, limits = np.eye(3), ["physics:lowerLimit", "physics:upperLimit"]
        if kind in _FIXED_AXES:
            length = float(prim.GetAttribute("physics:maxDistance").Get() or 0.0) * self._meter
            pair = make_pair(_FIXED_AXES[kind], length=length if kind == "DistanceJoint" else None)
        elif kind in _ONE_AXIS:
            pair = make_pair(_ONE_AXIS[kind])
            turn = turn[:, _CYCLES[str(prim.GetAttribute("physics:axis").Get() or "X")]]
        else:
            word, turn, axes = self._free_pair(prim)
            pair = make_pair(word)
            if len(axes) == 1:
                limits = [f"limit:{axes[0]}:physics:{end}" for end in ("low", "high")]
        if any((prim.GetAttribute(f"physics:coneAngle{k}Limit").Get() or -1) >= 0 for k in "01"):
            self._note("limits of the angle of a ball joint are not read", prim)
        is_loop = prim.GetAttribute("physics:excludeFromArticulation").Get()
        cut = True if is_loop or not pair.carries_bodies else None
        values = self._values(prim, pair, limits) if pair.dof else {}
        K = pin.SE3(turn, np.zeros(3))
        return Joint(name, pair, parent, child, a * K, b * K, cut, **values)

    def _end(self, prim: Any, number: int) -> tuple[str, pin.SE3]:
        """A body of a joint, and the joint's frame in it."""
        place = np.array(prim.GetAttribute(f"physics:localPos{number}").Get() or (0.0, 0.0, 0.0))
        rotation = self._rotation(prim.GetAttribute(f"physics:localRot{number}").Get())
        targets = prim.GetRelationship(f"physics:body{number}").GetTargets()
        if not targets:
            return GROUND, pin.SE3(rotation, place * self._meter)
        target = self._stage.GetPrimAtPath(targets[0])
        if not target:
            problem = f"{prim.GetPath()} names '{targets[0]}', which does not exist"
            raise LoadError(problem, source=self._name)
        here, scale = self._placement(target)
        body, carrier = self._carrier(target)
        return body, carrier.actInv(here * pin.SE3(rotation, place * scale * self._meter))

    def _free_pair(self, prim: Any) -> tuple[str, Array, list[str]]:
        """The pair that locked axes of a joint leave, its frame in the joint's, the other axes."""
        free = set[str]()
        for axis in FREE_AXES["free"]:
            ends = [prim.GetAttribute(f"limit:{axis}:physics:{k}").Get() for k in ("low", "high")]
            if None in ends or ends[0] <= ends[1]:
                free.add(axis)
            if None not in ends and ends[0] <= ends[1] and np.isfinite(ends).any():
                self._note("limits are read of joints with one axis only", prim)
        axes = sorted(free)
        if len(axes) == 2 and axes[1].startswith("rot") and axes[0].startswith("rot"):
            # Turns follow each other in the order of their axes; the first is about z of the pair.
            first, second = (np.eye(3)["XYZ".index(axis[-1])] for axis in axes)
            turn = np.column_stack([second, np.cross(first, second), first])
            return "universal", turn, axes
        for pair, known in FREE_AXES.items():
            for columns in _CYCLES.values():
                moved = {a[:-1] + "XYZ"[columns["XYZ".index(a[-1])]] for a in known}
                if moved == free:
                    return pair, np.eye(3)[:, columns], axes
        problem = f"{prim.GetPath()} leaves {', '.join(axes)} free, which is no pair"
        raise LoadError(problem, source=self._name)

    def _values(self, prim: Any, pair: Pair, limits: list[str]) -> dict[str, Any]:
        """Limits and losses; ``limits`` are the names of those of positions."""
        unit = np.radians(1.0) if pair.turns else self._meter
        length = self._meter if pair.turns else 1.0  # of a torque over a force
        force, drive = self._kilogram * self._meter * length, _drive(prim)
        given = dict[str, tuple[float, ...]]()
        for key, word in zip(("lower", "upper"), limits, strict=True):
            if (value := prim.GetAttribute(word).Get()) is not None:
                given[key] = (float(value) * unit,)
        speed = self._extra(prim, "velocityLimit", "maxJointVelocity")
        given |= {} if speed is None else {"velocity": spread([speed * unit], pair.dof)}
        words = (f"drive:{drive}:physics:{key}" for key in ("maxForce", "stiffness", "damping"))
        effort, *gains = (prim.GetAttribute(word).Get() if drive else None for word in words)
        if effort is not None and np.isfinite(effort):
            given["effort"] = (float(effort) * force,)
        if any(gains):
            self._note("the gains of drives are not read", prim)
        units = {"damping": force / unit, "friction": force}
        units["armature"] = self._kilogram * length**2
        losses = {key: self._extra(prim, key) for key in units}
        read = {k: spread([v * units[k]], pair.dof) for k, v in losses.items() if v}
        return joint_limits(given, pair.dof, lambda problem: self._note(problem, prim)) | read

    @staticmethod
    def _extra(prim: Any, *words: str) -> float | None:
        """The value of an attribute that schemas add to joints."""
        names = (f"{schema}:{word}" for schema in _SCHEMAS for word in words)
        values = (prim.GetAttribute(name).Get() for name in names)
        return next((float(v) for v in values if v is not None and np.isfinite(v)), None)

    def _mimics(self, prim: Any, joint: Joint, named: dict[Any, str]) -> Iterator[Coupling]:
        """Newton's ``q = coef0 + coef1 p`` and PhysX's ``q + gearing p + offset = 0``."""
        unit = np.radians(1.0) if joint.pair.turns else self._meter
        newton = prim.GetRelationship("newton:mimicJoint").GetTargets()
        if newton and newton[0] in named:
            offset, ratio = (prim.GetAttribute(f"newton:mimicCoef{k}").Get() for k in (0, 1))
            terms = 1.0 if ratio is None else float(ratio), float(offset or 0.0) * unit
            yield Coupling.linear(f"{joint.name}:mimic", joint.name, named[newton[0]], *terms)
        for axis in ("rotX", "rotY", "rotZ"):
            word = f"physxMimicJoint:{axis}"
            leader = prim.GetRelationship(f"{word}:referenceJoint").GetTargets()
            if leader and leader[0] in named:
                ratio, offset = (
                    prim.GetAttribute(f"{word}:{k}").Get() for k in ("gearing", "offset")
                )
                terms = -float(1.0 if ratio is None else ratio), -float(offset or 0.0) * unit
                yield Coupling.linear(f"{joint.name}:mimic", joint.name, named[leader[0]], *terms)

    # -- shapes -----------------------------------------------------------------------------------

    def _geometry(self, prims: list[Any]) -> Iterator[Geometry]:
        taken = set[tuple[str, str]]()
        for prim in prims:
            body, carrier = self._carrier(prim)
            if body == GROUND:
                continue
            here, scale = self._placement(prim)
            shape = self._shape(prim, scale * self._meter)
            if shape is None:
                continue
            role = "collision" if prim.HasAPI(self._usd.UsdPhysics.CollisionAPI) else "visual"
            name = new_name(_called(prim), {n for r, n in taken if r == role})
            taken.add((role, name))
            colors = prim.GetAttribute("primvars:displayColor").Get()
            opacity = prim.GetAttribute("primvars:displayOpacity").Get() or [1.0]
            color = (*map(float, colors[0]), float(opacity[0])) if colors else None
            yield Geometry(
                name, body, cast(Any, role), shape, carrier.actInv(here), cast(Any, color)
            )

    def _shape(self, prim: Any, scale: Array) -> Shape | None:
        """Shape of a prim, or None if it draws nothing that is read."""
        kind = str(prim.GetTypeName())
        if asset := prim.GetAttribute("pinloop:mesh").Get():
            path = self._resolve(asset.path)
            if path is None:
                self._note(f"mesh '{asset.path}' is not found; left out", prim)
                return None
            return Shape("mesh", tuple(map(float, scale / self._meter)), path)
        if kind == "Mesh":
            self._note("a mesh inside a stage is not read", prim)
        radius, height, size = (
            float(prim.GetAttribute(key).Get() or 0.0) for key in ("radius", "height", "size")
        )
        if kind == "Cube":
            return Shape("box", tuple(map(float, size * scale)))
        if kind == "Sphere":
            radii = tuple(map(float, radius * scale))
            is_ball = max(radii) - min(radii) <= SAME * max(radii)
            return Shape("sphere", radii[:1]) if is_ball else Shape("ellipsoid", radii)
        if kind in ("Cylinder", "Capsule"):
            if str(prim.GetAttribute("axis").Get()) != "Z":
                self._note("a cylinder or capsule along x or y is not read", prim)
                return None
            size_of = (float(radius * scale[0]), float(height * scale[2]))
            return Shape(cast(Any, kind.lower()), size_of)
        return None


def _called(prim: Any) -> str:
    """The name that a prim shows, or has."""
    return str(prim.GetDisplayName() or prim.GetName())


def _drive(prim: Any) -> str:
    """The instance of the drive of a joint, "" if it has none."""
    applied = map(str, prim.GetAppliedSchemas())
    return next((x.partition(":")[2] for x in applied if x.startswith("PhysicsDriveAPI:")), "")
