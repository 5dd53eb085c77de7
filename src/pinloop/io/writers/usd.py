"""Writing a robot as a USD stage with `UsdPhysics`: bodies, joints, loops outside the articulation.

Lengths are in m, masses in kg, angles in degrees as USD has them. Numbers of joints and masses have
single precision there. What the schemas of Newton add (armature, damping, friction, limits of
speed, mimic) is written in its words.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pinocchio as pin

from ...boundary.files import write_file
from ...model.description import GROUND, LOSSES, Body, Geometry, Joint
from ..usd.free_axes import FREE_AXES, UNIVERSAL, load_usd
from .outline import Outline, mesh_name, mimic_terms

_KINDS = {
    "fixed": "FixedJoint",
    "revolute": "RevoluteJoint",
    "prismatic": "PrismaticJoint",
    "spherical": "SphericalJoint",
    "rod": "DistanceJoint",
}


def save_usd(outline: Outline, path: Path) -> Path:
    """Write the stage of a robot, as text if the file ends in .usda; return its path.

    Raises:
        BadValue: it has joints, loops or couplings that USD does not have.
    """
    stage = _Writer(outline, path.parent).stage()
    with TemporaryDirectory() as folder:
        partial = Path(folder) / f"stage{path.suffix.lower()}"
        stage.GetRootLayer().Export(str(partial))
        return write_file(path, lambda file: file.write(partial.read_bytes()))


class _Writer:
    """Writes one robot."""

    def __init__(self, outline: Outline, folder: Path) -> None:
        self._outline, self._folder, self._usd = outline, folder, load_usd()
        self._stage = self._usd.Usd.Stage.CreateInMemory()
        self._paths: dict[str, Any] = {}  # of bodies
        self._joints: dict[str, Any] = {}

    def stage(self) -> Any:
        """The whole stage."""
        stage, usd, robot = self._stage, self._usd, self._outline.robot
        usd.UsdGeom.SetStageUpAxis(stage, usd.UsdGeom.Tokens.z)
        usd.UsdGeom.SetStageMetersPerUnit(stage, 1.0)
        usd.UsdPhysics.SetStageKilogramsPerUnit(stage, 1.0)
        top = self._define(usd.UsdGeom.Xform, "", robot.name or "robot")
        stage.SetDefaultPrim(top)
        usd.UsdPhysics.ArticulationRootAPI.Apply(top)
        scene = self._define(usd.UsdPhysics.Scene, top.GetPath(), "scene")
        size = float(np.linalg.norm(robot.gravity))
        down = robot.gravity / size if size else np.array([0.0, 0.0, -1.0])
        scene.GetAttribute("physics:gravityDirection").Set(usd.Gf.Vec3f(*map(float, down)))
        scene.GetAttribute("physics:gravityMagnitude").Set(size)
        for body in robot.description.bodies:
            self._body(top.GetPath(), body)
        for geometry in robot.description.geometry:
            self._shape(geometry)
        self._all_joints(self._define(usd.UsdGeom.Scope, top.GetPath(), "joints").GetPath())
        for frame in robot.description.frames:
            self._outline.omit("frames", frame.name)
        return stage

    def _define(self, schema: Any, above: Any, name: str) -> Any:
        """A prim under a path, with a name that USD allows; the name of the robot is shown."""
        plain = word = self._usd.Tf.MakeValidIdentifier(name)
        number = 1
        while self._stage.GetPrimAtPath(f"{above}/{word}"):
            number += 1
            word = f"{plain}_{number}"
        prim = schema.Define(self._stage, f"{above}/{word}").GetPrim()
        if word != name:
            prim.SetDisplayName(name)
        return prim

    def _place(self, prim: Any, placement: pin.SE3, scale: Any = None) -> None:
        gf, where = self._usd.Gf, self._usd.UsdGeom.Xformable(prim)
        x, y, z, w = map(float, pin.Quaternion(placement.rotation).coeffs())
        where.AddTranslateOp(self._usd.UsdGeom.XformOp.PrecisionDouble).Set(
            gf.Vec3d(*map(float, placement.translation))
        )
        where.AddOrientOp(self._usd.UsdGeom.XformOp.PrecisionDouble).Set(gf.Quatd(w, x, y, z))
        if scale is not None:
            where.AddScaleOp().Set(gf.Vec3f(*map(float, scale)))

    def _body(self, above: Any, body: Body) -> None:
        usd = self._usd
        prim = self._define(usd.UsdGeom.Xform, above, body.name)
        self._paths[body.name] = prim.GetPath()
        self._place(prim, self._outline.placements[body.name])
        usd.UsdPhysics.RigidBodyAPI.Apply(prim)
        mass = usd.UsdPhysics.MassAPI.Apply(prim)
        mass.CreateMassAttr(float(body.mass))
        mass.CreateCenterOfMassAttr(usd.Gf.Vec3f(*map(float, body.com)))
        moments, axes = np.linalg.eigh(body.inertia)
        axes = axes * np.sign(np.linalg.det(axes))
        mass.CreateDiagonalInertiaAttr(usd.Gf.Vec3f(*map(float, moments)))
        mass.CreatePrincipalAxesAttr(self._quaternion(axes))

    def _quaternion(self, rotation: Any) -> Any:
        x, y, z, w = map(float, pin.Quaternion(rotation).coeffs())
        return self._usd.Gf.Quatf(w, x, y, z)

    # -- joints -----------------------------------------------------------------------------------

    def _all_joints(self, above: Any) -> None:
        outline, description = self._outline, self._outline.robot.description
        if description.base is not None:
            seat = (GROUND, description.base, pin.SE3.Identity(), pin.SE3.Identity())
            self._prim(above, "FixedJoint", f"{description.base}_fixed", *seat)
        # One articulation hangs together: what floats beside a base has a joint that locks nothing.
        has_base = any(x.parent == GROUND and x.kind != "free" for x in outline.branches)
        for branch in outline.branches:
            if branch.kind == "free" and not has_base and branch.parent == GROUND:
                outline.omit("names, limits and losses of free joints", branch.name)
            elif branch.joint is not None:
                self._joint(above, branch.joint)
        for loop in outline.loops():
            prim = self._joint(above, loop)
            prim.GetAttribute("physics:excludeFromArticulation").Set(True)
        for joint, source, ratio, offset in mimic_terms(outline, "linear between two joints"):
            prim = self._joints[joint]
            prim.AddAppliedSchema("NewtonMimicAPI")
            prim.CreateRelationship("newton:mimicJoint").SetTargets(
                [self._joints[source].GetPath()]
            )
            unit = 1.0 if outline.axes[joint].slides else np.degrees(1.0)
            self._number(prim, "newton:mimicCoef0", offset * unit)
            self._number(prim, "newton:mimicCoef1", ratio)

    def _prim(
        self, above: Any, kind: str, name: str, parent: str, child: str, a: pin.SE3, b: pin.SE3
    ) -> Any:
        """A joint between frames on two bodies."""
        prim = self._define(getattr(self._usd.UsdPhysics, kind), above, name)
        joint = self._usd.UsdPhysics.Joint(prim)
        for number, (body, frame) in enumerate(((parent, a), (child, b))):
            if body != GROUND:
                prim.GetRelationship(f"physics:body{number}").SetTargets([self._paths[body]])
            place = self._usd.Gf.Vec3f(*map(float, frame.translation))
            prim.GetAttribute(f"physics:localPos{number}").Set(place)
            prim.GetAttribute(f"physics:localRot{number}").Set(self._quaternion(frame.rotation))
        joint.CreateExcludeFromArticulationAttr(False)
        return prim

    def _joint(self, above: Any, joint: Joint) -> Any:
        outline, pair = self._outline, joint.pair
        kind = _KINDS.get(pair.name, "Joint")
        if kind == "Joint" and pair.name not in FREE_AXES:
            raise outline.refuse(f"joint '{joint.name}' is a {pair.name} pair")
        turn = pin.SE3(UNIVERSAL if pair.name == "universal" else np.eye(3), np.zeros(3))
        frames = joint.frame_parent * turn, joint.frame_child * turn
        prim = self._prim(above, kind, joint.name, joint.parent, joint.child, *frames)
        self._joints[joint.name] = prim
        unit = np.degrees(1.0) if pair.turns else 1.0
        if kind in ("RevoluteJoint", "PrismaticJoint"):
            prim.GetAttribute("physics:axis").Set("Z")
            for key in ("lower", "upper"):
                if getattr(joint, key):
                    self._set(prim, f"physics:{key}Limit", getattr(joint, key)[0] * unit)
        elif joint.lower:
            outline.omit("position limits of joints with several axes", joint.name)
        if pair.name == "rod":
            for key in ("minDistance", "maxDistance"):
                self._set(prim, f"physics:{key}", pair.parameters["length"])
        for axis in FREE_AXES["free"] - FREE_AXES[pair.name] if kind == "Joint" else ():
            locked = self._usd.UsdPhysics.LimitAPI.Apply(prim, axis)
            locked.CreateLowAttr(1.0)
            locked.CreateHighAttr(-1.0)
        if joint.cut is not True or joint.name in outline.axes:
            self._values(prim, joint, unit)
        return prim

    def _values(self, prim: Any, joint: Joint, unit: float) -> None:
        """Motor, limits and losses of a joint of the tree."""
        outline, axis = self._outline, self._outline.axes.get(joint.name)
        values = {key: {*getattr(joint, key)} for key in ("velocity", *LOSSES)}
        if axis is not None:
            values["armature"] = {axis.losses["armature"]}
        units = {"velocity": ("velocityLimit", unit), "damping": ("damping", 1.0 / unit)}
        for key, numbers in values.items():
            word, factor = units.get(key, (key, 1.0))
            if len(numbers) > 1:
                outline.omit(f"{key} by axis", joint.name)
            elif any(number and np.isfinite(number) for number in numbers):
                self._number(prim, f"newton:{word}", max(numbers) * factor)
        driven, effort = joint.name in outline.robot.actuated, joint.effort
        if driven and axis is not None:
            kind = "linear" if axis.slides else "angular"
            drive = self._usd.UsdPhysics.DriveAPI.Apply(prim, kind)
            drive.CreateStiffnessAttr(0.0)
            drive.CreateDampingAttr(0.0)
            if effort and np.isfinite(effort[0]):
                drive.CreateMaxForceAttr(float(effort[0]))
        elif driven or any(number and np.isfinite(number) for number in effort):
            outline.omit("motors and torques of joints without drives along one axis", joint.name)
        if (drive := outline.robot.drives.get(joint.name)) and drive.reduction != 1.0:
            outline.omit("gear ratios", joint.name)

    @staticmethod
    def _set(prim: Any, name: str, value: Any) -> None:
        prim.GetAttribute(name).Set(float(value))

    def _number(self, prim: Any, name: str, value: float) -> None:
        prim.CreateAttribute(name, self._usd.Sdf.ValueTypeNames.Float).Set(float(value))

    # -- shapes -----------------------------------------------------------------------------------

    def _shape(self, geometry: Geometry) -> None:
        geom, shape = self._usd.UsdGeom, geometry.shape
        if geometry.body == GROUND:
            self._outline.omit("shapes on the ground", geometry.name)
            return
        kinds = {"box": geom.Cube, "mesh": geom.Xform, "ellipsoid": geom.Sphere}
        schema = kinds.get(shape.kind) or getattr(geom, shape.kind.capitalize())
        name = f"{geometry.role}_{geometry.name}"
        prim = self._define(schema, self._paths[geometry.body], name)
        prim.SetDisplayName(geometry.name)
        scale = shape.size if shape.kind in ("box", "ellipsoid", "mesh") else None
        self._place(prim, geometry.placement, scale)
        if shape.kind == "mesh" and shape.path is not None:
            asset = prim.CreateAttribute("pinloop:mesh", self._usd.Sdf.ValueTypeNames.Asset)
            asset.Set(self._usd.Sdf.AssetPath(mesh_name(shape.path, self._folder)))
            self._outline.omit("meshes, but for the names of their files", geometry.name)
        sizes = {"box": ["size"], "ellipsoid": ["radius"], "mesh": []}
        keys = sizes.get(shape.kind, ["radius", "height"][: len(shape.size)])
        values = shape.size if shape.kind not in sizes else (1.0,)
        for key, value in zip(keys, values, strict=False):
            prim.GetAttribute(key).Set(float(value))
        if "height" in keys:
            prim.GetAttribute("axis").Set("Z")
        if geometry.role == "collision":
            self._usd.UsdPhysics.CollisionAPI.Apply(prim)
            geom.Imageable(prim).CreatePurposeAttr(geom.Tokens.guide)
        if geometry.color is not None and shape.kind != "mesh":
            gprim = geom.Gprim(prim)
            gprim.CreateDisplayColorAttr([self._usd.Gf.Vec3f(*map(float, geometry.color[:3]))])
            gprim.CreateDisplayOpacityAttr([float(geometry.color[3])])
