"""What comes before a reader: formats of your own, files that a robot names, macros, other objects.

xacro itself expands its macros, where it is installed; other packages are not imported. yourdfpy
and urdf_parser_py can be asked for their XML. urchin and urdfpy can only save files, and export
their meshes while they do; their public attributes are written out here instead. They also give
every link without <inertial> a mass of 1 kg and a unit inertia, which are left out again.
"""

from __future__ import annotations

import importlib
import os
import sys
import xml.etree.ElementTree as ElementTree
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path, PurePath
from threading import Lock
from types import ModuleType
from typing import Any, ClassVar
from urllib.parse import unquote

import numpy as np
import pinocchio as pin

from ..boundary.values import Registry
from ..boundary.xml import Element, Remarks, add_element, parse_xml
from ..errors import BadValue, LoadError, PinloopError
from ..model.description import LIMITS, Description
from .quantities import MOMENTS, SIZES


class RobotFormat(ABC):
    """A format of robot files; `pinloop.load` knows a class with a name once it is defined."""

    name: ClassVar[str]
    """Name for messages."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Enter a class that has a name."""
        super().__init_subclass__(**kwargs)
        if "name" in vars(cls):
            _FORMATS.enter(cls.name, cls)

    @abstractmethod
    def recognises(self, content: bytes, suffix: str) -> bool:
        """Whether a file is of this format.

        Args:
            content: the whole file.
            suffix: end of its name, such as ``.csv``; empty for a text that is no file.
        """

    @abstractmethod
    def read(self, content: bytes, source: str) -> Description:
        """Describe the robot.

        Args:
            content: the whole file.
            source: its name, for messages.

        Raises:
            LoadError: what is wrong in the file.
        """


_FORMATS: Registry[RobotFormat] = Registry("robot format")


def read_own_format(content: bytes, source: str, suffix: str) -> Description | None:
    """Read a file in the format that recognises it; None if none does."""
    for cls in _FORMATS:
        try:
            robot_format = cls()
            if robot_format.recognises(content, suffix):
                return robot_format.read(content, source)
        except PinloopError:
            raise
        except Exception as error:
            problem = f"the robot format {cls.name} failed on it: {type(error).__name__}: {error}"
            raise LoadError(problem, source=source) from error
    return None


# -- files that a robot names ---------------------------------------------------------------------

Resolver = Callable[[str], Path | None]
"""Gives the path of a file that a robot file names, or None if it is not there."""

_PATHS = ("ROS_PACKAGE_PATH", "GZ_SIM_RESOURCE_PATH", "GAZEBO_MODEL_PATH")
"""Variables of the environment that list folders of packages or models."""


def make_resolver(directory: Path | None, package_dirs: Iterable[str | Path] = ()) -> Resolver:
    """Return the function that finds the files that a robot file in ``directory`` names.

    Packages and models are looked for in ``package_dirs`` (the folder of a package, or one that
    contains it), on the paths of ROS and Gazebo in the environment, and among the ancestors of the
    robot's own folder.
    """
    roots = [str(Path(folder)) for folder in package_dirs]
    for variable in _PATHS:
        roots += [
            str(Path(path)) for path in os.environ.get(variable, "").split(os.pathsep) if path
        ]
    for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        if prefix:
            roots.append(os.path.join(prefix, "share"))
    if directory is not None:
        here = directory.resolve()
        roots += map(str, (here, *here.parents))
    real_folder = cache(os.path.realpath)

    @cache  # what is seen and what is collided with are often the same file
    def resolve(uri: str) -> Path | None:
        for candidate in _candidates(uri.strip(), roots, directory):
            if os.path.isfile(candidate):
                folder, name = os.path.split(candidate)
                path = os.path.join(real_folder(folder), name)
                return Path(os.path.realpath(path) if os.path.islink(path) else path)
        return None

    return resolve


def beside(path: Path, resolve: Resolver) -> Resolver:
    """Return how files are found that the file ``path`` names: beside it, or by ``resolve``."""

    def look(name: str) -> Path | None:
        candidate = path.parent / name
        return candidate if "://" not in name and os.path.isfile(candidate) else resolve(name)

    return look


def _candidates(uri: str, roots: list[str], directory: Path | None) -> Iterator[str]:
    """Possible places of a file, most likely first."""
    if "\0" in uri or not uri:
        return
    scheme, separator, rest = uri.partition("://")
    if not separator:
        if os.path.isabs(uri):
            yield uri
            return
        if directory is not None:
            yield os.path.join(directory, uri)
        for root in roots:
            yield os.path.join(root, uri)
        return
    if scheme == "file":
        yield unquote("/" + rest.partition("/")[2])
        return
    package, _, inside = rest.partition("/")
    for root in roots:
        if os.path.basename(root) == package:
            yield os.path.join(root, inside)
        yield os.path.join(root, package, inside)


def report_missing(missing: list[Element], remarks: Remarks) -> None:
    """Report meshes whose file was not found, once for all: they tend to lack together."""
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


# -- what becomes a URDF --------------------------------------------------------------------------

_EXPANDING = Lock()
"""xacro keeps its macros, and how it finds packages, in its modules."""


def is_xacro(root: Element) -> bool:
    """Whether a document holds macros of xacro at its top."""
    return any(child.tag.startswith("xacro:") for child in root.children)


def expand_xacro(
    root: Element, path: Path | None, package_dirs: Iterable[str | Path] = ()
) -> Element:
    """Run xacro on the file of a document.

    Includes are relative to it; ``$(find package)`` looks where meshes are looked for, too.
    """
    try:
        xacro: Any = importlib.import_module("xacro")
    except ImportError:
        raise root.error(
            "holds xacro macros; install xacro (pip install 'pinloop[xacro]'), or run it and load "
            "what it writes"
        ) from None
    if path is None:
        raise root.error("holds xacro macros; give the file, to which its includes are relative")
    resolve = make_resolver(path.parent, package_dirs)

    def find(package: str) -> str:
        if manifest := resolve(f"package://{package}/package.xml"):
            return str(manifest.parent)
        raise LookupError(
            f"package '{package}' is not found; name the folder that holds it with package_dirs, "
            "on the command line with --package-dir"
        )

    # The door of ROS through which xacro asks for packages, whether ROS is there or not.
    packages: Any = ModuleType("ament_index_python.packages")
    packages.get_package_share_directory = find
    with _EXPANDING:
        of_ros = sys.modules.get(packages.__name__)
        sys.modules[packages.__name__] = packages
        try:
            text: str = xacro.process_file(str(path)).toprettyxml(indent="  ")
        except Exception as error:  # whatever the expressions of the file raise
            reason = " ".join(str(error).split())[:200]
            raise root.error(f"cannot be expanded by xacro: {reason}") from None
        finally:
            del sys.modules[packages.__name__]
            if of_ros is not None:
                sys.modules[packages.__name__] = of_ros
    return parse_xml(text, f"{root.source} (expanded)")


def xml_of(source: Any) -> tuple[str, tuple[str, ...]]:
    """XML of a parsed ``URDF`` object of another package, and what had to be assumed about it."""
    kind = type(source).__name__
    for method in ("to_xml_string", "write_xml_string"):
        ask = getattr(source, method, None)
        if callable(ask):
            text = ask()
            return (text.decode() if isinstance(text, bytes) else str(text)), ()
    if not all(hasattr(source, part) for part in ("name", "links", "joints")):
        raise BadValue(
            f"cannot load a {kind}; give a path, XML, a dict, a pin.Model, or a URDF object of "
            "urchin, yourdfpy or urdfpy"
        )
    try:
        text = ElementTree.tostring(_robot(source), encoding="unicode")
        assumed = tuple(
            f"link '{link.name}' with 1 kg and unit inertia is taken for one without mass, which "
            f"this {kind} object cannot tell apart"
            for link in source.links
            if link.inertial is not None and _placeholder(link.inertial)
        )
        return text, assumed
    except (AttributeError, TypeError, ValueError, ElementTree.ParseError) as error:
        raise LoadError(f"this {kind} object cannot be read: {error}") from None


def _robot(urdf: Any) -> ElementTree.Element:
    robot = ElementTree.Element("robot", name=str(urdf.name))
    for link in urdf.links:
        _link(robot, link)
    for joint in urdf.joints:
        _joint(robot, joint)
    for transmission in getattr(urdf, "transmissions", None) or ():
        _transmission(robot, transmission)
    # What the parser did not understand, loops among them, it keeps as text.
    other = getattr(urdf, "other_xml", None)
    if other:
        robot.extend(ElementTree.fromstring(other))
    return robot


def _origin(parent: ElementTree.Element, matrix: Any) -> None:
    """Pose from a homogeneous matrix; by quaternion, which loses no digits."""
    if matrix is not None:
        matrix = np.asarray(matrix, dtype=float)
        turn = pin.Quaternion(np.ascontiguousarray(matrix[:3, :3])).normalized()
        add_element(parent, "origin", xyz=matrix[:3, 3], quat_xyzw=turn.coeffs())


def _link(robot: ElementTree.Element, link: Any) -> None:
    element = add_element(robot, "link", name=link.name)
    inertial = link.inertial
    if inertial is not None and not _placeholder(inertial):
        block = add_element(element, "inertial")
        _origin(block, inertial.origin)
        add_element(block, "mass", value=inertial.mass)
        tensor = np.asarray(inertial.inertia, dtype=float)
        add_element(block, "inertia", **{key: tensor[cell] for key, cell in MOMENTS.items()})
    for role, shapes in (("visual", link.visuals), ("collision", link.collisions)):
        for shape in shapes or ():
            block = add_element(element, role)
            _origin(block, shape.origin)
            holder = add_element(block, "geometry")
            for kind, keys in (*SIZES.items(), ("mesh", ("filename", "scale"))):
                form = getattr(shape.geometry, kind, None)
                if form is not None:
                    add_element(holder, kind, **{key: getattr(form, key) for key in keys})
            material = getattr(shape, "material", None)
            if material is not None:
                color = add_element(block, "material", name=str(material.name))
                if material.color is not None:
                    add_element(color, "color", rgba=material.color)


def _placeholder(inertial: Any) -> bool:
    """Whether this is what urchin and urdfpy make up for a link without <inertial>."""
    return bool(
        inertial.mass == 1.0
        and np.array_equal(inertial.inertia, np.eye(3))
        and (inertial.origin is None or np.array_equal(inertial.origin, np.eye(4)))
    )


def _joint(robot: ElementTree.Element, joint: Any) -> None:
    element = add_element(robot, "joint", name=joint.name, type=joint.joint_type)
    _origin(element, joint.origin)
    add_element(element, "parent", link=joint.parent)
    add_element(element, "child", link=joint.child)
    if joint.axis is not None:
        add_element(element, "axis", xyz=joint.axis)
    for tag, keys in (
        ("limit", LIMITS),
        ("dynamics", ("damping", "friction")),
        ("mimic", ("joint", "multiplier", "offset")),
    ):
        block = getattr(joint, tag, None)
        if block is not None:
            add_element(element, tag, **{key: getattr(block, key) for key in keys})


def _transmission(robot: ElementTree.Element, transmission: Any) -> None:
    element = add_element(robot, "transmission", name=transmission.name)
    for joint in transmission.joints:
        add_element(element, "joint", name=joint.name)
    for actuator in transmission.actuators:
        block = add_element(element, "actuator", name=actuator.name)
        if actuator.mechanicalReduction is not None:
            reduction = add_element(block, "mechanicalReduction")
            reduction.text = str(actuator.mechanicalReduction)
