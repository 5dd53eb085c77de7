"""What a URDF shows and collides with: materials, visuals, collision shapes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Literal

from ...boundary.xml import Element, Remarks, pose_of
from ...errors import LoadError
from ...model.description import Geometry, Shape
from ..packages import Resolver

__all__ = ["read_colors", "read_geometry", "report_missing"]

Color = tuple[float, float, float, float]


def read_colors(root: Element) -> dict[str, Color]:
    """Materials that are declared for the whole robot."""
    colors = {}
    for holder in (root, *(v for link in root.all("link") for v in link.all("visual"))):
        for material in holder.all("material"):
            color = material.first("color")
            name = material.get("name")
            if color is not None and name:
                colors[name] = _rgba(color)
    return colors


def _rgba(color: Element) -> Color:
    red, green, blue, alpha = color.numbers(color.require("rgba"), 4, "rgba")
    return float(red), float(green), float(blue), float(alpha)


def read_geometry(
    link: Element,
    colors: dict[str, Color],
    resolve: Resolver,
    remarks: Remarks,
    missing: list[Element],
) -> list[Geometry]:
    """Visuals and collision shapes of a link; what meshes are not there goes to ``missing``."""
    geometry: list[Geometry] = []
    roles: tuple[Literal["visual", "collision"], ...] = ("visual", "collision")
    for role in roles:
        for index, element in enumerate(link.all(role)):
            try:
                shape = _shape(element, resolve, remarks, missing)
                placement, color = pose_of(element.first("origin")), _color(element, colors)
            except LoadError as error:
                # How a robot moves does not depend on it; other readers pass it over, too.
                remarks.add(element, f"is left out: {error.problem}")
                continue
            if shape is not None:
                name = link.require("name")
                geometry.append(Geometry(f"{name}_{index}", name, role, shape, placement, color))
    return geometry


def _color(element: Element, colors: dict[str, Color]) -> Color | None:
    material = element.first("material")
    if material is None:
        return None
    inline = material.first("color")
    return _rgba(inline) if inline is not None else colors.get(material.get("name") or "")


def _shape(
    element: Element, resolve: Resolver, remarks: Remarks, missing: list[Element]
) -> Shape | None:
    """Shape of a visual or collision element; None with a warning if it cannot be had."""
    geometry = element.first("geometry")
    kind = geometry.children[0] if geometry is not None and geometry.children else None
    if kind is None:
        remarks.add(element, "has no geometry")
        return None
    if kind.tag == "box":
        return Shape("box", tuple(kind.vector("size")))
    if kind.tag == "sphere":
        return Shape("sphere", (kind.number("radius"),))
    if kind.tag == "cylinder":
        return Shape("cylinder", (kind.number("radius"), kind.number("length")))
    if kind.tag == "capsule":
        return Shape("capsule", (kind.number("radius"), kind.number("length")))
    if kind.tag == "ellipsoid":
        return Shape("ellipsoid", tuple(kind.vector("radii")))
    if kind.tag == "mesh":
        name = kind.require("filename")
        path = resolve(name)
        if path is None:
            missing.append(kind)
            return None
        return Shape("mesh", tuple(kind.vector("scale", (1.0, 1.0, 1.0))), path)
    return None


def report_missing(missing: Sequence[Element], remarks: Remarks) -> None:
    """Report meshes that were not found, once for all of them: they tend to lack together."""
    for kind in missing:
        name = kind.require("filename")
        scheme, separator, rest = name.partition("://")
        advice = ""
        if scheme in ("package", "model"):
            advice = (
                f"; name the folder that holds the package '{rest.partition('/')[0]}' with "
                "package_dirs, on the command line with --package-dir"
            )
        elif not separator and not PurePath(name).is_absolute():
            advice = "; looked in the folder of the robot file, those above it, and package_dirs"
        remarks.about(
            ("mesh", scheme), name, f"{kind.where}: mesh '{name}' not found; left out", advice
        )
