"""Small robots to look at, and the viewer's page played through in Python.

`Played` does with commands what meshcat's page does (its `handle_command`): a tree of nodes with
transforms, objects and properties. Matrices come as 16 numbers, column by column.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import umsgpack
from numpy.typing import NDArray

from pinloop.model.description import GROUND, Body, Description, Geometry, Joint, Shape, constant
from pinloop.model.mechanism import Mechanism, build
from pinloop.model.pairs import Pair, align_z, make_pair
from pinloop.show.scene.commands import Command, packed

Array = NDArray[np.float64]

RED = (1.0, 0.0, 0.0, 1.0)
Y_AXIS = pin.SE3(align_z(np.array([0.0, 1.0, 0.0])), np.zeros(3))


def at(x: float, y: float, z: float, rotation: Array | None = None) -> pin.SE3:
    return pin.SE3(np.eye(3) if rotation is None else rotation, np.array([x, y, z]))


def visual(
    name: str, body: str, kind: Any, size: tuple[float, ...], placement: pin.SE3, **more: Any
) -> Geometry:
    shape = Shape(kind, size, more.pop("path", None))
    return Geometry(name, body, more.pop("role", "visual"), shape, placement, **more)


def arm(*geometry: Geometry) -> Mechanism:
    """One link on a hinge about y, 0.2 m above the ground."""
    inertia = constant(0.01 * np.eye(3))
    hinge = Joint("hinge", make_pair("revolute"), "base", "link", at(0, 0, 0.2) * Y_AXIS, Y_AXIS)
    bodies = (Body("base"), Body("link", 1.0, constant((0.3, 0.0, 0.0)), inertia))
    return build(Description("arm", bodies, (hinge,), base="base", geometry=geometry))


def open_pair(pair: Pair, distance: float) -> Mechanism:
    """Two sliders on x, the second ``distance`` along x and 0.4 m up, joined by ``pair``."""
    along_x = pin.SE3(align_z(np.array([1.0, 0.0, 0.0])), np.zeros(3))
    bodies = tuple(Body(name, 1.0, inertia=constant(0.01 * np.eye(3))) for name in ("a", "b"))
    slide = make_pair("prismatic")
    joints = (
        Joint("slide_a", slide, GROUND, "a", along_x, along_x),
        Joint("slide_b", slide, GROUND, "b", at(distance, 0, 0.4) * along_x, along_x),
        Joint("closer", pair, "a", "b", at(0, 0, 0), at(0, 0, 0), cut=True),
    )
    return build(Description("open", bodies, joints))


def arm_urdf(folder: Path, *, visual: str = "", name: str = "arm") -> Path:
    """The same arm as a file."""
    path = folder / "arm.urdf"
    path.write_text(
        f"""<robot name="{name}">
  <link name="base"/>
  <link name="link">
    <inertial><origin xyz="0.3 0 0"/><mass value="1"/>
      <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>
    {visual}
  </link>
  <joint name="hinge" type="revolute">
    <origin xyz="0 0 0.2"/><parent link="base"/><child link="link"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" velocity="1" effort="1"/>
  </joint>
</robot>""",
        encoding="utf-8",
    )
    return path


class Played:
    """The state of the page after some commands."""

    def __init__(self, commands: Iterable[Command]) -> None:
        self.transforms: dict[tuple[str, ...], Array] = {}
        self.objects: dict[tuple[str, ...], dict[str, Any]] = {}
        self.properties: dict[tuple[str, ...], dict[str, Any]] = {}
        for command in commands:
            self.handle(umsgpack.unpackb(packed(command)))

    def handle(self, command: Command) -> None:
        path = tuple(step for step in command["path"].split("/") if step)
        if command["type"] == "set_transform":
            self.transforms[path] = _matrix(command["matrix"])
        elif command["type"] == "set_object":
            self.objects[path] = command["object"]
        elif command["type"] == "set_property":
            self.properties.setdefault(path, {})[command["property"]] = command["value"]
        else:
            raise AssertionError(command["type"])

    def matrix(self, *path: str) -> Array:
        """From the coordinates of an object's geometry to those of the world."""
        total = np.eye(4)
        for depth in range(1, len(path) + 1):
            total = total @ self.transforms.get(path[:depth], np.eye(4))
        return total @ _matrix(self.objects[path]["object"]["matrix"])

    def below(self, *path: str) -> list[tuple[str, ...]]:
        """Paths of the objects below a node."""
        return [other for other in self.objects if other[: len(path)] == path]

    def geometry(self, *path: str) -> dict[str, Any]:
        content = self.objects[path]
        (geometry,) = content["geometries"]
        assert content["object"]["geometry"] == geometry["uuid"]
        return dict(geometry)

    def material(self, *path: str) -> dict[str, Any]:
        content = self.objects[path]
        (material,) = content["materials"]
        assert content["object"]["material"] == material["uuid"]
        return dict(material)

    def attribute(self, name: str, *path: str) -> NDArray[np.float32]:
        """A buffer attribute of a geometry, one row per vertex."""
        entry = self.geometry(*path)["data"]["attributes"][name]
        assert entry["array"].type == 0x17
        return np.frombuffer(entry["array"].data, "<f4").reshape(-1, entry["itemSize"])

    def faces(self, *path: str) -> NDArray[np.uint32]:
        entry = self.geometry(*path)["data"]["index"]
        assert entry["array"].type == 0x16
        return np.frombuffer(entry["array"].data, "<u4").reshape(-1, 3)


def _matrix(numbers: list[float]) -> Array:
    return np.array(numbers).reshape(4, 4).T


def moved(matrix: Array, point: Iterable[float]) -> Array:
    return np.asarray((matrix @ [*point, 1.0])[:3])
