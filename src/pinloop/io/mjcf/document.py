"""An MJCF file as one document: includes put in, compiler settings, default classes, poses.

This room holds the grammar that all MJCF elements share. It builds no body, joint or constraint.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from os.path import isfile
from pathlib import Path

import numpy as np
import pinocchio as pin

from ...boundary.files import read_bytes
from ...boundary.marks import Array
from ...boundary.xml import LARGEST, Element, Remarks, parse_xml
from ...errors import suggestion
from ...tolerances import NO_DIRECTION
from ..formats import Resolver
from ..vocabulary import MJCF, children_of

ORIENTATIONS = ("quat", "axisangle", "euler", "xyaxes", "zaxis")

ACTUATORS, EQUALITIES = (children_of(MJCF, section) for section in ("actuator", "equality"))

# All shortcuts share one actuator default per class; these attributes mean the same in each.
_SHARED_BY_ACTUATORS = (
    "gear",
    "ctrlrange",
    "ctrllimited",
    "forcerange",
    "forcelimited",
    "armature",
    "damping",
)


@dataclass(frozen=True)
class Compiler:
    """Settings of the `<compiler>` elements, the last one winning.

    Args:
        angle: radians per unit of angle in the file.
        eulerseq: axes of the Euler angles, lower case turning with the frame.
        autolimits: True: a range that is given also limits.
        meshdir: folder of the mesh files.
        strippath: True: folders in the names of mesh files do not count.
        inertiafromgeom: "true" always, "auto" for bodies without `<inertial>`, "false" never.
        inertiagrouprange: first and last geom group that has mass.
        boundmass: least mass of a body [kg].
        boundinertia: least principal inertia of a body [kg m^2].
        balanceinertia: True: impossible principal inertias become their mean.
        settotalmass: mass to which all bodies together are scaled [kg], or None.
    """

    angle: float
    eulerseq: str
    autolimits: bool
    meshdir: str
    strippath: bool
    inertiafromgeom: str
    inertiagrouprange: tuple[int, int]
    boundmass: float
    boundinertia: float
    balanceinertia: bool
    settotalmass: float | None

    @staticmethod
    def read(settings: Element) -> Compiler:
        """Read the merged `<compiler>` element."""
        if word(settings, "coordinate", ("local", "global"), "local") == "global":
            raise settings.error("has global coordinates; save it again with local ones")
        degrees = word(settings, "angle", ("degree", "radian"), "degree") == "degree"
        eulerseq = settings.get("eulerseq") or "xyz"
        if len(eulerseq) != 3 or not set(eulerseq) <= set("xyzXYZ"):
            raise settings.error(f"has eulerseq '{eulerseq}'; it is three letters of xyzXYZ")
        groups = settings.numbers(settings.get("inertiagrouprange") or "0 5", 2, "groups")
        total = settings.number("settotalmass", -1.0)
        return Compiler(
            angle=float(np.pi / 180) if degrees else 1.0,
            eulerseq=eulerseq,
            autolimits=flag(settings, "autolimits", True),
            meshdir=settings.get("meshdir") or settings.get("assetdir") or "",
            strippath=flag(settings, "strippath", False),
            inertiafromgeom=word(settings, "inertiafromgeom", ("false", "true", "auto"), "auto"),
            inertiagrouprange=(int(groups[0]), int(groups[1])),
            boundmass=settings.number("boundmass", 0.0),
            boundinertia=settings.number("boundinertia", 0.0),
            balanceinertia=flag(settings, "balanceinertia", False),
            settotalmass=total if total > 0 else None,
        )


class Document:
    """A whole MJCF model: its sections, settings and defaults, and what could not be read."""

    def __init__(self, root: Element, find: Resolver) -> None:
        if root.tag != "mujoco":
            raise root.error("is not an MJCF model; its root element must be <mujoco>")
        self.find = find
        self.root = _include(root, find)
        self.remarks = Remarks()
        self.warn = self.remarks.add
        self.compiler = Compiler.read(merge("compiler", self.root, self.root.all("compiler")))
        self._defaults: dict[str, dict[str, dict[str, str]]] = {}
        self._read_defaults()

    def section(self, tag: str) -> list[Element]:
        """Children of all sections with this tag, in file order."""
        return [child for part in self.root.all(tag) for child in part.children]

    def below_world(self, *tags: str) -> Iterator[Element]:
        """Elements with one of the tags below `<worldbody>`, in file order."""
        for world in self.root.all("worldbody"):
            yield from world.walk(*tags)

    def is_set(self, element: Element, attribute: str) -> bool:
        """Whether an attribute has a number other than 0."""
        text = element.get(attribute)
        return text is not None and bool(np.any(element.numbers(text, None, attribute) != 0))

    def filled(self, element: Element, kind: str, childclass: str) -> Element:
        """Return the element with the attributes of its default class filled in.

        ``kind`` is the kind of default it takes ("joint", "geom", "equality", "actuator", ...), and
        ``childclass`` the default class of the enclosing bodies; "" for the top one.
        """
        name = element.get("class") or childclass
        if name not in self._defaults:
            hint = suggestion(name, self._defaults)
            raise element.error(f"uses the default class '{name}', which is not defined{hint}")
        attributes = dict(self._defaults[name].get(kind, {}))
        if any(form in element.attributes for form in ORIENTATIONS):
            for form in ORIENTATIONS:
                attributes.pop(form, None)
        return element.copy(attributes=attributes | element.attributes)

    def limits(self, element: Element, range_: str, limited: str) -> tuple[float, float] | None:
        """Range in the units of the file where it limits, else None."""
        text = element.get(range_)
        state = word(element, limited, ("false", "true", "auto"), "auto")
        if state == "false" or (text is None and state == "auto"):
            return None
        if text is None:
            raise element.error(f"is limited, but its {range_} is not given")
        lower, upper = element.numbers(text, 2, range_)
        if state == "auto":
            if not lower < upper:
                return None
            if not self.compiler.autolimits:
                raise element.error(f"has a {range_} but no {limited}='true' (autolimits is off)")
        if lower > upper:
            raise element.error(f"has {range_} '{text}'; the first number must be the smaller one")
        return float(lower), float(upper)

    def pose(self, element: Element) -> pin.SE3:
        """Placement from pos and one of the five forms of orientation."""
        return pin.SE3(self.rotation(element), element.vector("pos", (0.0, 0.0, 0.0)))

    def rotation(self, element: Element) -> Array:
        """Rotation matrix from one of the five forms of orientation."""
        forms = [form for form in ORIENTATIONS if form in element.attributes]
        if len(forms) > 1:
            raise element.error(f"has both {forms[0]} and {forms[1]}; one orientation is enough")
        if not forms:
            return np.eye(3)
        form = forms[0]
        count = {"quat": 4, "axisangle": 4, "euler": 3, "xyaxes": 6, "zaxis": 3}[form]
        values = element.numbers(element.attributes[form], count, form)
        if form == "quat":
            return quaternion(element, values)
        if form == "axisangle":
            axis = element.unit_vector(values[:3])
            return np.asarray(pin.exp3(axis * (values[3] * self.compiler.angle)))
        if form == "euler":
            return self.euler(values)
        if form == "xyaxes":
            x = element.unit_vector(values[:3], "x axis")
            y = element.unit_vector(values[3:] - (x @ values[3:]) * x, "y axis across x")
            return np.column_stack([x, y, np.cross(x, y)])
        return turn_z(element.unit_vector(values, "z axis"))

    def euler(self, angles: Array) -> Array:
        """Rotation matrix from Euler angles in the units of the file."""
        R = np.eye(3)
        for axis, angle in zip(self.compiler.eulerseq, angles, strict=True):
            turn = pin.exp3(np.eye(3)["xyz".index(axis.lower())] * (angle * self.compiler.angle))
            R = R @ turn if axis.islower() else turn @ R
        return R

    def _read_defaults(self) -> None:
        """Flatten the nested default classes; "" and "main" are the top one."""
        top: dict[str, dict[str, str]] = {}
        self._defaults = {"": top, "main": top}
        for section in self.root.all("default"):
            if section.get("class") not in (None, "", "main"):
                # Older files give the top class a name of their own.
                self._defaults[section.require("class")] = top
            self._collect_defaults(section, top)
            # A class inherits what its parent has so far: later sections do not reach it.
            nested = [(child, top) for child in section.all("default")]
            while nested:
                element, parent = nested.pop()
                name = element.require("class")
                if name in self._defaults:
                    raise element.error(f"defines the default class '{name}' a second time")
                own = {kind: dict(attributes) for kind, attributes in parent.items()}
                self._defaults[name] = own
                self._collect_defaults(element, own)
                nested += [(child, own) for child in element.all("default")]

    def _collect_defaults(self, element: Element, into: dict[str, dict[str, str]]) -> None:
        for child in element.children:
            if child.tag == "default":
                continue
            attributes = dict(child.attributes)
            kind = child.tag
            if kind in ACTUATORS:
                kind = "actuator"
                attributes = {
                    name: attributes[name] for name in _SHARED_BY_ACTUATORS if name in attributes
                }
            slot = into.setdefault(kind, {})
            if any(form in attributes for form in ORIENTATIONS):
                for form in ORIENTATIONS:
                    slot.pop(form, None)
            slot.update(attributes)


def merge(tag: str, root: Element, elements: list[Element]) -> Element:
    """One element with the attributes and children of repeated ones, the last one winning."""
    attributes = {key: value for element in elements for key, value in element.attributes.items()}
    children = [child for element in elements for child in element.children]
    return [root, *elements][-1].copy(tag=tag, attributes=attributes, children=children)


def quaternion(element: Element, values: Array) -> Array:
    """Rotation matrix from (w, x, y, z), which need not be normalised."""
    w, x, y, z = element.unit_vector(values, "quaternion")
    return np.asarray(pin.Quaternion(w, x, y, z).toRotationMatrix())


def turn_z(z: Array) -> Array:
    """Shortest rotation that takes (0, 0, 1) to the unit vector ``z``; to -z, about x."""
    axis = np.array([-z[1], z[0], 0.0])
    sine = float(np.linalg.norm(axis))
    axis = axis / sine if sine > NO_DIRECTION else np.array([1.0, 0.0, 0.0])
    return np.asarray(pin.exp3(axis * np.arctan2(sine, z[2])))


def _include(root: Element, find: Resolver) -> Element:
    """Copy of a document in which every `<include>` is replaced by what its file holds."""
    copy = root.copy(attributes=dict(root.attributes))
    seen: set[Path] = set()
    stack = [copy]
    while stack:
        element = stack.pop()
        waiting = element.children[::-1]
        element.children = []
        while waiting:
            child = waiting.pop()
            if child.tag == "include":
                waiting += _included(child, find, seen).children[::-1]
            else:
                element.children.append(child.copy(attributes=dict(child.attributes)))
        stack += element.children
    return copy


def _included(include: Element, find: Resolver, seen: set[Path]) -> Element:
    """Root element of the file that an `<include>` names.

    Names refer to the folder of the main file, and then, as in MuJoCo, to that of the file that
    holds the element.
    """
    name = include.require("file")
    path = find(name)
    if path is None and seen and "://" not in name:
        candidate = Path(include.source).parent / name
        path = candidate if isfile(candidate) else None
    if path is not None and path.resolve() in seen:
        raise include.error(f"includes '{name}' a second time; a file may be included once")
    root, path = open_file(include, name, path)
    seen.add(path.resolve())
    return root


def open_file(element: Element, name: str, path: Path | None) -> tuple[Element, Path]:
    """Root element and path of a file that an element names."""
    if path is None:
        raise element.error(f"names the file '{name}', which does not exist")
    return parse_xml(read_bytes(path, "robot file", LARGEST), str(path)), path


def flag(element: Element, attribute: str, default: bool) -> bool:
    """Attribute that is "true" or "false"."""
    return word(element, attribute, ("false", "true"), str(default).lower()) == "true"


def word(element: Element, attribute: str, known: tuple[str, ...], default: str) -> str:
    """Attribute that is one of the known words."""
    value = element.get(attribute)
    if value is None:
        return default
    if value not in known:
        raise element.error(f"has {attribute} '{value}'; it must be one of: {', '.join(known)}")
    return value
