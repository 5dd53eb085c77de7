"""`load`: from a file, a text, a `pin.Model` or a parsed URDF to a `Mechanism`.

Decides by content which reader understands a source, and which files beside it say more. Reads
nothing itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import pinocchio as pin
from numpy.typing import ArrayLike

from ..assembly.rounding.exact import with_exact_geometry, written_tolerance
from ..boundary.arguments import flat_numbers, public
from ..boundary.files import read_bytes
from ..boundary.marks import Name, Range, Short, existing
from ..boundary.schema import read_data
from ..boundary.xml import LARGEST, Element, parse_xml
from ..boundary.yaml import read_yaml
from ..errors import BadValue, LoadError, UnknownName
from ..model.description import Description
from ..model.mechanism import Mechanism, build
from .companions import apply_gepetto, apply_srdf, close_frames
from .formats import expand_xacro, is_xacro, make_resolver, read_own_format, xml_of
from .loopsfile import LoopsFile, apply_loops
from .mjcf.reader import read_mjcf
from .pinmodel import apply_constraint_models, read_model, split_loops
from .quantities import free_root, new_name
from .screws import read_screws
from .sdf.reader import read_sdf
from .urdf.reader import read_urdf
from .usd.reader import read_usd

_GEPETTO = re.compile(rb"^[\"']?closed_loop[\"']?\s*:", re.MULTILINE)
"""The key by which a Gepetto YAML is known."""

_BESIDE = re.compile(rb"^beside\s*:\s*[\"']?([.\w]*)", re.MULTILINE)
"""The key of a loops file that says of which files of its name it is a part."""

_XML_SUFFIXES = (".urdf", ".sdf", ".world", ".xml", ".mjcf", ".xacro")

_STAGES = (b"#usda", b"PXR-USDC")
"""How stages of USD begin."""

_OTHERS = (
    (b"PK\x03\x04", "a zip archive"),
    (b"#VRML_SIM", "a PROTO file or world of Webots"),
    (b"#VRML", "a VRML file"),
)
"""How files of other formats begin."""


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
    model: str | None = None,
) -> Mechanism:
    """Load a robot with its loops.

    A robot may lack masses: assembling, diagnosing and viewing need none. `simulate` and `stop`
    refuse one whose mass matrix is singular, and say which links lack mass.

    Args:
        source: path of a URDF, SDF, MJCF, USD, Gepetto YAML, screw table or file in a
            `RobotFormat`; the text of one; a screw table as a dict; a `pin.Model`; or a parsed
            ``URDF`` of urchin, yourdfpy or urdfpy.
        loops: what closes the loops, if the source does not say: path or dict of a loops file or
            Gepetto YAML, or path of an SRDF; constraint models of Pinocchio, made for the
            `pin.Model` that is the source; or a list of these. Without it the files
            ``<stem>.loops.yaml``, ``<stem>.yaml`` (Gepetto) and ``<stem>.srdf`` beside the source
            are read.
        package_dirs: folders that hold the packages and models of ``package://`` and ``model://``
            names.
        gravity: gravity vector in the world [m/s^2]; as in the source by default.
        floating_base: let the root link of a URDF float instead of welding it to the ground.
        kinematics_only: do not warn of links without mass.
        tolerance: turn [rad] and shift [lengths of the robot] of joint frames up to which a loop
            that is open, or cannot move, counts as rounded: the frames are moved by the least that
            lets it close wherever it goes, with a warning that says by how much. By default 1e-4,
            or what the digits of the file allow if all its numbers have few; 0: never.
        model: name of the model to load from an SDF that holds several.

    Returns:
        The mechanism.

    Raises:
        LoadError: says what is wrong with the source, and where.
    """
    folders = _folders(package_dirs)
    source = _drained(source)
    description, path, own = _describe(source, folders, model)
    if model is not None and description.name != model:
        unknown = UnknownName("model", model, [description.name])
        raise LoadError(str(unknown), source=description.source)
    if loops is None:
        own += [extra for extra in _beside(path) if extra not in own]
    else:
        models, others = split_loops(loops)
        own += map(_drained, others)
        if models:
            description = apply_constraint_models(description, source, models)
    for extra in own:
        description = _apply(description, extra)
    description = close_frames(_without_universe(description))
    if floating_base:
        description = _floating(description)
    if gravity is not None:
        description = replace(description, gravity=flat_numbers(gravity, "gravity", 3))
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
    if not isinstance(description, (str, Path, Mapping)):
        raise BadValue(f"a screw table is a dict or a path, not a {type(description).__name__}")
    return load(description, loops=(), tolerance=tolerance)


def _tolerance(given: float | None, sources: Iterable[Any]) -> float:
    """The tolerance of rounded geometry: as given, or as the digits of the sources suggest."""
    if given is None:
        return written_tolerance(_written(source) for source in sources)
    if not isinstance(given, (int, float)) or not 0 <= given < 1:
        raise BadValue(f"tolerance is {given!r}; it must be a number from 0 to below 1")
    return float(given)


def _written(source: Any) -> str:
    """The text of a source, as far as it is one."""
    if isinstance(source, (str, Path)) and not _is_text(source):
        source = _read(Path(source))
    if isinstance(source, bytes):
        return source.decode(errors="replace")
    return str(source) if isinstance(source, (str, dict)) else ""


def _drained(source: Any) -> Any:
    """The content of a source that is a pipe, which can be read only once; others as they are."""
    is_path = isinstance(source, (str, Path)) and not _is_text(source) and os.path.exists(source)
    return _read(Path(source)) if is_path and Path(source).is_fifo() else source


def _folders(package_dirs: Any) -> list[str | Path]:
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
    source: Any, folders: list[str | Path], model: str | None
) -> tuple[Description, Path | None, list[Path]]:
    """Read a source of any kind; also returns its path, and what else of it must be applied."""
    if isinstance(source, pin.Model):
        return read_model(source), None, []
    if isinstance(source, Mapping):
        return read_screws(dict(source), "screw table"), None, []
    if _is_text(source):
        return _from_text(source, "<text>", None, folders, model), None, []
    if isinstance(source, (str, Path)):
        if not str(source).strip():
            raise LoadError("the name of the robot file is empty")
        path, extra = Path(source), []
        text = _read(path)
        sibling = path.with_suffix(".urdf")
        if path.suffix.lower() in (".yaml", ".yml") and _GEPETTO.search(text) and sibling.is_file():
            path, extra, text = sibling, [path], _read(sibling)
        return _from_text(text, str(path), path, folders, model), path, extra
    xml, assumed = xml_of(source)
    name = f"<{type(source).__name__} object>"
    description = _from_text(xml, name, None, folders, model)
    return replace(description, warnings=(*assumed, *description.warnings)), None, []


def _is_text(source: object) -> bool:
    """Whether a source is a document rather than a path."""
    if isinstance(source, str):
        return _is_xml(source) or "\n" in source
    return isinstance(source, bytes)


def _is_xml(text: str | bytes) -> bool:
    """Whether a document is XML, whatever its encoding."""
    if isinstance(text, str):
        return text.lstrip("\ufeff \t\r\n").startswith("<")
    # Byte order marks of UTF-8 and UTF-16, white space, and the zero bytes of UTF-16.
    return text.lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n\0").startswith(b"<")


def _read(path: Path) -> bytes:
    return read_bytes(path, "robot file", LARGEST)


def _from_text(
    text: str | bytes, name: str, path: Path | None, folders: list[str | Path], model: str | None
) -> Description:
    """Pick the reader by content."""
    content, suffix = text.encode() if isinstance(text, str) else text, path.suffix if path else ""
    if (own := read_own_format(content, name, suffix)) is not None:
        return own
    if _is_xml(text) or (path is not None and path.suffix.lower() in _XML_SUFFIXES):
        root = parse_xml(text, name)
        if is_xacro(root):
            root = expand_xacro(root, path, folders)
        return _from_xml(root, None if path is None else path.parent, folders, model)
    is_stage = content.startswith(_STAGES)
    if is_stage or suffix.lower() == ".usdz":
        resolve = make_resolver(None if path is None else path.parent, folders)
        return read_usd(content if path is None else str(path), name, resolve=resolve)
    for begins, kind in _OTHERS:
        if content[:512].lstrip().startswith(begins):
            problem = f"is {kind}, which is not read; export it as URDF, SDF or MJCF"
            raise LoadError(problem, source=name)
    data = read_yaml(text, name)
    if isinstance(data, dict) and "bodies" in data:
        return read_screws(data, name)
    problem = "is neither URDF, SDF nor MJCF (XML), nor a screw table or Gepetto file (YAML)"
    if isinstance(data, dict) and {"loops", "couplings"} & data.keys():
        problem = "is a loops file, not a robot; load the robot with loops=this file"
    elif isinstance(data, dict) and "closed_loop" in data:
        problem = "is a Gepetto file, but the URDF with the same name is not beside it"
    elif isinstance(data, dict) and isinstance(data.get("format"), str):
        problem += f"; its format is '{data['format']}'"
    raise LoadError(problem, source=name)


def _from_xml(
    root: Element, directory: Path | None, folders: list[str | Path], model: str | None
) -> Description:
    resolve = make_resolver(directory, folders)
    if root.tag == "robot":
        return read_urdf(root, resolve=resolve)
    if root.tag in ("sdf", "model"):
        return read_sdf(root, resolve=resolve, model=model)
    if root.tag == "mujoco":
        return read_mjcf(root, resolve=resolve)
    raise root.error("is the root element; a robot starts with <robot>, <sdf>, <model> or <mujoco>")


def _beside(path: Path | None) -> Iterable[Path]:
    if path is None:
        return
    for suffix in (".loops.yaml", ".loops.yml"):
        if (loops := path.with_suffix(suffix)).is_file():
            end = _BESIDE.search(_read(loops))
            if end is None or end[1].decode().lower() == path.suffix.lower():
                yield loops
    for suffix in (".yaml", ".yml"):
        gepetto = path.with_suffix(suffix)
        if gepetto != path and gepetto.is_file() and _GEPETTO.search(_read(gepetto)):
            yield gepetto
    srdf = path.with_suffix(".srdf"), path.parent.parent / "srdf" / f"{path.stem}.srdf"
    yield from [file for file in srdf if file.is_file()][:1]


def _apply(description: Description, extra: Any) -> Description:
    """Add what a loops file, a Gepetto file or an SRDF says."""
    name = "<loops>"
    if isinstance(extra, (str, Path)) and not _is_text(extra):
        name, extra = str(extra), _read(Path(extra))
    if isinstance(extra, (str, bytes)):
        if _is_xml(extra):
            root = parse_xml(extra, name)
            if root.tag != "robot" or root.first("link", "joint", "loop_joint") is not None:
                problem = "is no SRDF; loops= takes a loops file, a Gepetto YAML or an SRDF"
                raise root.error(problem)
            return apply_srdf(description, root)
        extra = read_yaml(extra, name)
    if not isinstance(extra, Mapping):
        raise LoadError("loops are a mapping, a YAML file or an SRDF", source=name)
    # A dict as read knows its lines.
    data = extra if isinstance(extra, dict) else dict(extra)
    if "closed_loop" in data:
        return apply_gepetto(description, data, name)
    return apply_loops(description, read_data(LoopsFile, data, name), name)


_UNIVERSE = "universe"
"""Pinocchio's name of the joint that carries the ground."""


def _without_universe(description: Description) -> Description:
    """A joint called like Pinocchio's ground gets another name."""
    names = {joint.name for joint in description.joints}
    if _UNIVERSE not in names:
        return description
    name = new_name(f"{_UNIVERSE}_joint", names)

    def new(old: str) -> str:
        return name if old == _UNIVERSE else old

    def renamed(items: Iterable[Any], key: str) -> tuple[Any, ...]:
        return tuple(replace(item, **{key: new(getattr(item, key))}) for item in items)

    actuated = description.actuated
    remark = f"joint '{_UNIVERSE}' is called '{name}' here, as that is Pinocchio's ground"
    return replace(
        description,
        joints=renamed(description.joints, "name"),
        couplings=tuple(
            replace(coupling, joints=tuple(map(new, coupling.joints)))
            for coupling in description.couplings
        ),
        drives=renamed(description.drives, "joint"),
        actuated=None if actuated is None else tuple(map(new, actuated)),
        warnings=(*description.warnings, remark),
    )


def _floating(description: Description) -> Description:
    """Let the base float on a free joint, as Pinocchio does with a free-flyer root."""
    if description.base is None:
        raise BadValue(
            f"robot '{description.name}' has no base welded to the ground that could float"
        )
    names = {joint.name for joint in description.joints}
    name = "root_joint" if "root_joint" not in names else "floating_base"
    joint = free_root(name, description.base)
    return replace(description, base=None, joints=(joint, *description.joints))


# -- a robot's file as a value ---------------------------------------------------------------------

Names = Annotated[tuple[Name, ...], Short(Name, lambda name: (name,))]
"""Several names, or one."""
Paths = Annotated[tuple[Path, ...], Short(Name, lambda name: (name,))]
_ExistingPaths = Annotated[tuple[Annotated[Path, existing], ...], Short(Name, lambda name: (name,))]


@dataclass(frozen=True, kw_only=True)
class RobotFile:
    """The file of a robot with the options of `load` that are about files."""

    file: Annotated[Path, existing, "URDF, SDF, MJCF, USD, Gepetto YAML or screw table"]
    loops: Annotated[
        _ExistingPaths,
        "file that defines the loops if the robot's does not: a loops file, a Gepetto YAML or an "
        "SRDF; files of the same name beside the robot's are found without it",
    ] = ()
    package_dirs: Annotated[
        Paths, "folder with the packages and models that package:// and model:// names refer to"
    ] = ()
    model: Annotated[Name | None, "model to load from an SDF file with several"] = None
    floating_base: Annotated[bool, "let the root link float instead of fixing it to the world"] = (
        False
    )
    tolerance: Annotated[
        Annotated[float, Range(least=0, below=1)] | None,
        "largest gap between the frames of a loop joint, in rad and in lengths of the robot, "
        "that counts as rounding in the file and is closed; 0: none; by default 1e-4, or what "
        "the digits of the file allow",
    ] = None

    @classmethod
    def of(cls, file: str | Path, options: Mapping[str, Any]) -> RobotFile:
        """Return the file with options of the command line, as far as these are given."""
        return cls(
            file=Path(file),
            loops=tuple(options.get("loops") or ()),
            package_dirs=tuple(options.get("package_dirs") or ()),
            model=options.get("model"),
            floating_base=bool(options.get("floating_base")),
            tolerance=options.get("tolerance"),
        )

    @property
    def inputs(self) -> tuple[Path, ...]:
        """All files that it names."""
        return (self.file, *self.loops)

    def load(self, *, gravity: ArrayLike | None = None, kinematics_only: bool = False) -> Mechanism:
        """Load the robot; see `pinloop.load`."""
        # A scenario's robot has more fields, which are not about its file.
        options = {field.name: getattr(self, field.name) for field in fields(RobotFile)}
        options["loops"] = options["loops"] or None
        file = options.pop("file")
        return load(file, **options, gravity=gravity, kinematics_only=kinematics_only)
