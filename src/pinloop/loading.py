"""`load`: from a file, a text, a `pin.Model` or a parsed URDF to a `Mechanism`.

Decides by content which reader understands a source, and which files beside it say more. Reads
nothing itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from .arguments import public
from .description import GROUND, Description, Joint, constant
from .errors import BadValue, LoadError
from .files import read_bytes
from .load.constraintmodels import apply_constraint_models, split_loops
from .load.gepetto import apply_gepetto
from .load.loopsfile import LoopsFile, apply_loops
from .load.mjcf import read_mjcf
from .load.objects import xml_of
from .load.packages import make_resolver
from .load.pinmodel import read_model
from .load.screws import read_screws
from .load.sdf import read_sdf
from .load.srdf import apply_srdf
from .load.urdf import read_urdf
from .load.urdf_loops import drake_constraints
from .load.xmltools import LARGEST, Element, parse_xml
from .load.yamltools import read_yaml, validated
from .mechanism import Mechanism, build
from .pairs import make_pair
from .rounding import with_exact_geometry, written_tolerance

__all__ = ["from_screws", "load"]

_GEPETTO = re.compile(rb"^[\"']?closed_loop[\"']?\s*:", re.MULTILINE)
"""The key by which a Gepetto YAML is known."""


@public
def load(
    source: Any,
    *,
    loops: Any = None,
    package_dirs: str | Path | Iterable[str | Path] = (),
    gravity: ArrayLike | None = None,
    floating_base: bool = False,
    kinematics_only: bool = False,
    tolerance: float | None = None,
) -> Mechanism:
    """Load a robot with its loops.

    Args:
        source: path of a URDF, SDF, MJCF, Gepetto YAML or screw table; the text of one; a screw
            table as a dict; a `pin.Model`; or a parsed ``URDF`` of urchin, yourdfpy or urdfpy.
        loops: what closes the loops, if the source does not say: path or dict of a loops file or
            Gepetto YAML, or path of an SRDF; constraint models of Pinocchio, made for the
            `pin.Model` that is the source; or a list of these. Without it the files
            ``<stem>.loops.yaml``, ``<stem>.yaml`` (Gepetto) and ``<stem>.srdf`` beside the source
            are read.
        package_dirs: folders that hold the packages of ``package://`` names.
        gravity: gravity vector in the world [m/s^2]; as in the source by default.
        floating_base: let the root link of a URDF float instead of welding it to the ground.
        kinematics_only: accept moving bodies without mass, for kinematics only.
        tolerance: turn [rad] and shift [lengths of the robot] of joint frames up to which a loop
            that is open, or cannot move, counts as rounded: the frames are moved by the least that
            lets it close wherever it goes, with a warning that says by how much. By default 1e-4,
            or what the digits of the file allow if all its numbers have few; 0: never.

    Returns:
        The mechanism.

    Raises:
        LoadError: says what is wrong with the source, and where.
    """
    folders = _folders(package_dirs)
    source = _drained(source)
    description, path, own = _describe(source, folders)
    if loops is None:
        own += [extra for extra in _beside(path) if extra not in own]
    else:
        models, others = split_loops(loops)
        own += map(_drained, others)
        if models:
            description = apply_constraint_models(description, source, models)
    for extra in own:
        description = _apply(description, extra)
    description = _closing_frames(description)
    if floating_base:
        description = _floating(description)
    if gravity is not None:
        description = replace(description, gravity=_vector(gravity))
    robot = build(description, kinematics_only=kinematics_only)
    return with_exact_geometry(robot, _tolerance(tolerance, [source, *own]))


@public
def from_screws(
    description: Mapping[str, Any] | str | Path, *, tolerance: float | None = None
) -> Mechanism:
    """Build a mechanism from a screw table in one world frame (paper 1, section 2.3.3).

    Args:
        description: the table as a dict, or the path of a YAML file.
        tolerance: what counts as rounded, as in `load`.

    Raises:
        LoadError: says which entry is wrong.
    """
    if isinstance(description, Mapping):
        robot = build(read_screws(dict(description), "screw table"))
        return with_exact_geometry(robot, _tolerance(tolerance, [description]))
    if not isinstance(description, (str, Path)):
        raise BadValue(f"a screw table is a dict or a path, not a {type(description).__name__}")
    path = Path(description)
    data = read_yaml(_read(path), str(path))
    if not isinstance(data, dict):
        raise LoadError("a screw table is a mapping with bodies and joints", source=str(path))
    return with_exact_geometry(
        build(read_screws(data, str(path))), _tolerance(tolerance, [description])
    )


def _tolerance(given: float | None, sources: Iterable[Any]) -> float:
    """The tolerance of rounded geometry: as given, or as the digits of the sources suggest."""
    if given is None:
        return written_tolerance(_written(source) for source in sources)
    if not isinstance(given, (int, float)) or not 0 <= given < 1:
        raise BadValue(f"tolerance is {given!r}; it must be a number from 0 to below 1")
    return float(given)


def _written(source: Any) -> str:
    """The text of a source, as far as it is one."""
    if isinstance(source, (str, Path)) and not (isinstance(source, str) and _is_text(source)):
        source = _read(Path(source))
    if isinstance(source, bytes):
        return source.decode(errors="replace")
    return source if isinstance(source, str) else str(source) if isinstance(source, dict) else ""


def _drained(source: Any) -> Any:
    """The content of a source that is a pipe, which can be read only once; others as they are."""
    if isinstance(source, str) and _is_text(source):
        return source
    if isinstance(source, (str, Path)) and os.path.exists(source) and Path(source).is_fifo():
        return _read(Path(source))
    return source


def _folders(package_dirs: Any) -> list[str | Path]:
    """The user's package folders as a list."""
    if isinstance(package_dirs, (str, Path)):
        package_dirs = [package_dirs]
    folders: list[Any] = list(package_dirs) if isinstance(package_dirs, Iterable) else [None]
    if not all(isinstance(folder, (str, Path)) for folder in folders):
        raise BadValue(f"package_dirs is {package_dirs!r}; it must be a folder or several")
    for folder in folders:
        if not os.path.isdir(folder):
            raise LoadError("no such folder for packages", source=str(folder))
    return folders


def _describe(
    source: Any, folders: list[str | Path]
) -> tuple[Description, Path | None, list[Path]]:
    """Read a source of any kind; also returns its path, and what else of it must be applied."""
    if isinstance(source, pin.Model):
        return read_model(source), None, []
    if isinstance(source, Mapping):
        return read_screws(dict(source), "screw table"), None, []
    if isinstance(source, (str, bytes)) and _is_text(source):
        return _from_text(source, "<text>", None, folders), None, []
    if isinstance(source, (str, Path)):
        path = Path(source)
        text = _read(path)
        sibling = path.with_suffix(".urdf")
        if path.suffix.lower() in (".yaml", ".yml") and _GEPETTO.search(text) and sibling.is_file():
            return _from_text(_read(sibling), str(sibling), sibling, folders), sibling, [path]
        return _from_text(text, str(path), path, folders), path, []
    name = f"<{type(source).__name__} object>"
    xml, assumed = xml_of(source)
    description = _from_text(xml, name, None, folders)
    return replace(description, warnings=(*assumed, *description.warnings)), None, []


def _is_text(source: str | bytes) -> bool:
    """Whether a string is a document rather than a path."""
    return isinstance(source, bytes) or _is_xml(source) or "\n" in source


def _is_xml(text: str | bytes) -> bool:
    """Whether a document is XML, whatever its encoding."""
    if isinstance(text, str):
        return text.lstrip("\ufeff \t\r\n").startswith("<")
    # Byte order marks of UTF-8 and UTF-16, white space, and the zero bytes of UTF-16.
    return text.lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n\0").startswith(b"<")


def _read(path: Path) -> bytes:
    return read_bytes(path, "robot file", LARGEST)


def _from_text(
    text: str | bytes, name: str, path: Path | None, folders: list[str | Path]
) -> Description:
    """Pick the reader by content."""
    if _is_xml(text):
        directory = None if path is None else path.parent
        return _from_xml(parse_xml(text, name), directory, folders)
    if path is not None and path.suffix.lower() in (".urdf", ".sdf", ".xml", ".mjcf", ".xacro"):
        return _from_xml(parse_xml(text, name), path.parent, folders)
    data = read_yaml(text, name)
    if isinstance(data, dict) and "bodies" in data:
        return read_screws(data, name)
    if isinstance(data, dict) and ("loops" in data or "couplings" in data):
        raise LoadError(
            "is a loops file, not a robot; load the robot with loops=this file", source=name
        )
    if isinstance(data, dict) and "closed_loop" in data:
        raise LoadError(
            "is a Gepetto file, but the URDF with the same name is not beside it", source=name
        )
    raise LoadError(
        "is neither URDF, SDF nor MJCF (XML), nor a screw table or Gepetto file (YAML)", source=name
    )


def _from_xml(root: Element, directory: Path | None, folders: list[str | Path]) -> Description:
    """Pick the reader by the root element."""
    resolve = make_resolver(directory, folders)
    if root.tag == "robot":
        return read_urdf(root, resolve=resolve)
    if root.tag in ("sdf", "model"):
        description = read_sdf(root, resolve=resolve)
        models = [root, *root.all("model"), *(m for w in root.all("world") for m in w.all("model"))]
        for model in models:
            description = drake_constraints(model, description)
        return description
    if root.tag == "mujoco":
        return read_mjcf(root, resolve=resolve, directory=directory)
    raise root.error("is the root element; a robot starts with <robot>, <sdf>, <model> or <mujoco>")


def _beside(path: Path | None) -> Iterable[Path]:
    """Files beside a robot file that say more about it."""
    if path is None:
        return
    for suffix in (".loops.yaml", ".loops.yml"):
        if (found := path.with_suffix(suffix)).is_file():
            yield found
    for suffix in (".yaml", ".yml"):
        gepetto = path.with_suffix(suffix)
        if gepetto != path and gepetto.is_file() and _GEPETTO.search(_read(gepetto)):
            yield gepetto
    for srdf in (path.with_suffix(".srdf"), path.parent.parent / "srdf" / f"{path.stem}.srdf"):
        if srdf.is_file():
            yield srdf
            break


def _apply(description: Description, extra: Any) -> Description:
    """Add what a loops file, a Gepetto file or an SRDF says."""
    name = "<loops>"
    if isinstance(extra, (str, Path)) and not (isinstance(extra, str) and _is_text(extra)):
        name = str(extra)
        extra = _read(Path(extra))
    if isinstance(extra, (str, bytes)):
        if _is_xml(extra):
            return _apply_xml(description, parse_xml(extra, name))
        extra = read_yaml(extra, name)
    if not isinstance(extra, Mapping):
        raise LoadError("loops are a mapping, a YAML file or an SRDF", source=name)
    # A dict as read knows its lines.
    data = extra if isinstance(extra, dict) else dict(extra)
    if "closed_loop" in data:
        return apply_gepetto(description, data, name)
    return apply_loops(description, validated(LoopsFile, data, name), name)


def _apply_xml(description: Description, root: Element) -> Description:
    """Add what an SRDF says; any other XML is a mistake."""
    if root.tag != "robot" or root.first("link", "joint", "loop_joint") is not None:
        raise root.error("is no SRDF; loops= takes a loops file, a Gepetto YAML or an SRDF")
    return apply_srdf(description, root)


_CLOSING = re.compile(r"^closing_(.+)_([12])$")


def _closing_frames(description: Description) -> Description:
    """Close the pairs of frames ``closing_<name>_1`` and ``_2`` of onshape-to-robot and PlaCo.

    A loop of the same name that is declared already wins; the pair is not said, so a point is
    taken, with a warning.
    """
    places = {body.name: (body.name, pin.SE3.Identity()) for body in description.bodies}
    places |= {frame.name: (frame.body, frame.placement) for frame in description.frames}
    declared = {joint.name for joint in description.joints}
    found: dict[str, dict[str, str]] = {}
    for name in places:
        if match := _CLOSING.match(name):
            found.setdefault(match[1], {})[match[2]] = name
    joints: list[Joint] = []
    warnings: list[str] = []
    for stem, ends in found.items():
        loop = f"closing_{stem}"
        if declared & {stem, loop}:
            continue
        if len(ends) < 2:
            lone = next(iter(ends.values()))
            warnings.append(
                f"{description.source}: frame '{lone}' has no partner to close a loop with"
            )
            continue
        (body_a, frame_a), (body_b, frame_b) = places[ends["1"]], places[ends["2"]]
        if _joined(description, places[ends["1"]], places[ends["2"]]):
            continue
        joints.append(
            Joint(loop, make_pair("spherical"), body_a, body_b, frame_a, frame_b, cut=True)
        )
        warnings.append(
            f"{description.source}: frames '{ends['1']}' and '{ends['2']}' are joined by a "
            f"spherical pair; name another pair for loop '{loop}' in a loops file"
        )
    return replace(
        description,
        joints=(*description.joints, *joints),
        warnings=(*description.warnings, *warnings),
    )


def _joined(description: Description, one: tuple[str, pin.SE3], other: tuple[str, pin.SE3]) -> bool:
    """Whether some joint already joins two frames."""

    def same(body: str, frame: pin.SE3, end: tuple[str, pin.SE3]) -> bool:
        # The axes of a pair may be turned against the frame it was asked for.
        return body == end[0] and np.allclose(frame.translation, end[1].translation, atol=1e-9)

    for joint in description.joints:
        ends = (joint.parent, joint.frame_parent), (joint.child, joint.frame_child)
        for a, b in (ends, ends[::-1]):
            if same(*a, one) and same(*b, other):
                return True
    return False


def _floating(description: Description) -> Description:
    """Let the base float on a free joint, as Pinocchio does with a free-flyer root."""
    if description.base is None:
        raise BadValue(
            f"robot '{description.name}' has no base welded to the ground that could float"
        )
    names = {joint.name for joint in description.joints}
    name = "root_joint" if "root_joint" not in names else "floating_base"
    identity = pin.SE3.Identity()
    joint = Joint(
        name, make_pair("free"), GROUND, description.base, identity, identity.copy(), False
    )
    actuated = description.actuated
    return replace(description, base=None, joints=(joint, *description.joints), actuated=actuated)


def _vector(gravity: ArrayLike) -> Any:
    try:
        vector = np.asarray(gravity, dtype=float)
    except (TypeError, ValueError):
        raise BadValue(f"gravity is {gravity!r}, which is not a vector") from None
    if vector.shape != (3,) or not np.all(np.isfinite(vector)):
        raise BadValue(f"gravity is {gravity!r}; it must be 3 finite numbers [m/s^2]")
    return constant(vector)
