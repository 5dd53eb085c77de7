"""Damaged files of every format that pinloop reads, drawn by chance; no test lives here.

What is drawn is files by name and how they are read. Whatever they hold, only a `PinloopError` or
something that can be used may come of it.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import trimesh
import yaml

import pinloop as pl
from pinloop.safety.standards.published import StoppingTable
from pinloop.safety.stopping.recorded import JointTrajectory
from pinloop.safety.studies.studyfile import read_study

from .io.every_format import URDF_TREE
from .mutations import break_bytes, break_data, break_lines, break_size, break_xml
from .robots_to_break import BESIDE, PIECES, TABLES, XACRO, XML

__all__ = ["KINDS", "Broken", "draw", "read"]

ROOT = Path(__file__).parents[1]
URDF = ROOT / "urdf"
SUFFIXES = {"urdf": "urdf", "sdf": "sdf", "mjcf": "xml", "xacro": "xacro", "screws": "yaml"}
BESIDE_NAMES = {"loops": "robot.loops.yaml", "gepetto": "robot.yaml", "srdf": "robot.srdf"}
MESHES = ("stl", "obj", "ply", "off", "glb", "dae", "stl_ascii")

RECORDING = "t,joint_1 [deg],joint_2 [deg]\n" + "".join(
    f"{k / 100},{k / 7:.6f},{-k / 11:.6f}\n" for k in range(40)
)
STOPS = "joint,speed_deg_per_s,time_ms,angle_deg,payload_kg\n" + "".join(
    f"joint_1,{10 * k},{40 + 5 * k},{k * k / 5:.3f},{k % 3}\n" for k in range(1, 12)
)


@dataclass(frozen=True)
class Broken:
    """Files of which some are damaged.

    Args:
        kind: of which format, and so how they are read.
        files: contents by name; the first is opened.
        flags: more arguments of `pl.load`.
    """

    kind: str
    files: dict[str, bytes]
    flags: dict[str, bool] = field(default_factory=dict)


def draw(random: Random, kind: str) -> Broken:
    """Damage the files of a format."""
    return KINDS[kind][0](random, kind)


def read(broken: Broken) -> bool:
    """Read the files, if they can be read; what is read must be usable.

    Raises:
        Exception: anything but a `PinloopError` that says something.
    """
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        folder = Path(name)
        for file, content in broken.files.items():
            (folder / file).write_bytes(content)
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", pl.PinloopWarning)
        with _working_in(folder):
            try:
                KINDS[broken.kind][1](folder / next(iter(broken.files)), broken.flags)
            except pl.PinloopError as error:
                assert str(error).strip()
                return False
    return True


@contextlib.contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    """Names that turn out to be paths must not hit anything."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


# -- how they are damaged -------------------------------------------------------------------


def _damaged(random: Random, text: str, *, is_xml: bool = False, donors: Any = ()) -> bytes:
    """A text with another structure, other values, other bytes or another size."""
    choice = random.random()
    if choice < 0.15:
        return break_bytes(random, text.encode())
    if choice < 0.2:
        return break_size(random, text).encode("utf-8", "surrogatepass")
    if is_xml and choice < 0.85:
        return break_xml(random, text, random.choice([None, PIECES, *donors])).encode()
    if not is_xml and choice < 0.6:
        data = break_data(random, text)
        return yaml.dump(data, default_flow_style=random.random() < 0.5).encode()
    return break_lines(random, text).encode()


def _robot(random: Random, kind: str) -> Broken:
    originals = {**XML, **TABLES, **XACRO}
    text = originals[kind]
    suffix = next(end for name, end in SUFFIXES.items() if kind.startswith(name))
    content = _damaged(random, text, is_xml=kind not in TABLES, donors=XML.values())
    files = {f"robot.{suffix}": content}
    if random.random() < 0.1:
        beside = random.choice([*BESIDE])
        files.setdefault(BESIDE_NAMES[beside], _beside_text(random, beside))
    flags = {key: True for key in ("floating_base", "kinematics_only") if random.random() < 0.2}
    return Broken(kind, files, flags)


def _beside_text(random: Random, kind: str) -> bytes:
    return _damaged(random, BESIDE[kind], is_xml=kind == "srdf")


def _beside(random: Random, kind: str) -> Broken:
    files = {"robot.urdf": URDF_TREE.encode(), BESIDE_NAMES[kind]: _beside_text(random, kind)}
    return Broken(kind, files)


def _junk(random: Random, kind: str) -> Broken:
    alphabet = random.choice(
        ["<>/ab=\"'&;!-[]?\n", "{}[]:,- \n'\"#&*!|>%@`a1", "0123456789.,;-e\n"]
    )
    text = "".join(random.choices(alphabet, k=random.randrange(60))).encode()
    content = random.choice([text, random.randbytes(random.randrange(40))])
    return Broken(kind, {f"robot.{random.choice([*SUFFIXES.values(), 'odd'])}": content})


def _mesh(random: Random, kind: str) -> Broken:
    form = random.choice(MESHES)
    content = break_bytes(random, _mesh_file(form))
    if form in ("obj", "off", "dae", "stl_ascii") and random.random() < 0.6:
        text = _mesh_file(form).decode()
        is_xml = form == "dae" and random.random() < 0.7
        content = (break_xml if is_xml else break_lines)(random, text).encode()
    return Broken(kind, {f"part.{form.partition('_')[0]}": content})


@cache
def _mesh_file(form: str) -> bytes:
    box = trimesh.creation.box((0.1, 0.2, 0.3))
    content: str | bytes = box.export(file_type=form)
    return content.encode() if isinstance(content, str) else content


def _mesh_of_robot(random: Random, kind: str) -> Broken:
    mesh = _mesh(random, kind)
    ((name, content),) = mesh.files.items()
    robot = f"""<mujoco><asset><mesh name="m" file="{name}"/></asset><worldbody><body name="a">
      <joint axis="0 1 0"/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""
    return Broken(kind, {"robot.xml": robot.encode(), name: content})


def _text(original: Path, *others: Path) -> Callable[[Random, str], Broken]:
    """Draws a damaged text beside files that are whole."""

    def damage(random: Random, kind: str) -> Broken:
        content = _damaged(random, original.read_text(encoding="utf-8"))
        return Broken(kind, {original.name: content} | {o.name: o.read_bytes() for o in others})

    return damage


def _table(name: str, text: str) -> Callable[[Random, str], Broken]:
    def damage(random: Random, kind: str) -> Broken:
        broken = break_lines(random, text).encode("utf-8", "surrogatepass")
        return Broken(
            kind, {name: broken if random.random() < 0.7 else break_bytes(random, broken)}
        )

    return damage


def _run(random: Random, kind: str) -> Broken:
    original = (ROOT / "tests" / "written" / "earlier.npz").read_bytes()
    return Broken(kind, {"run.npz": break_bytes(random, original)})


# -- how they are read ----------------------------------------------------------------------


def _load(path: Path, flags: dict[str, bool]) -> None:
    robot = pl.load(path, **flags)  # type: ignore[arg-type]
    residual = pl.Constraints(robot).residual(robot.neutral)
    assert np.all(np.isfinite(residual))
    assert all(isinstance(warning, str) for warning in robot.warnings)


def _without_flags(reader: Callable[[Path], Any]) -> Callable[[Path, dict[str, bool]], None]:
    def use(path: Path, _: dict[str, bool]) -> None:
        reader(path)

    return use


def _load_run(path: Path) -> None:
    run = pl.load_trajectory(path)
    assert len(run.t) == len(run.q) == len(run.v)


Kind = tuple[Callable[[Random, str], Broken], Callable[[Path, dict[str, bool]], None]]

KINDS: dict[str, Kind] = {
    **{name: (_robot, _load) for name in (*XML, *TABLES, *XACRO)},
    **{name: (_beside, _load) for name in BESIDE},
    "junk": (_junk, _load),
    "mesh": (_mesh, _without_flags(lambda path: pl.Obstacle.mesh("part", path))),
    "mesh of a robot": (_mesh_of_robot, _load),
    "brakes": (_text(URDF / "palletizer.brakes.yaml"), _without_flags(pl.Brakes.from_yaml)),
    "scenario": (
        _text(URDF / "fourbar.scenario.yaml", URDF / "fourbar.urdf"),
        _without_flags(pl.load_scenario),
    ),
    "study": (
        _text(
            URDF / "six_axis_arm.study.yaml",
            URDF / "six_axis_arm.urdf",
            URDF / "six_axis_arm.brakes.yaml",
        ),
        _without_flags(read_study),
    ),
    "recording": (_table("motion.csv", RECORDING), _without_flags(JointTrajectory.from_csv)),
    "stopping table": (_table("stops.csv", STOPS), _without_flags(StoppingTable.from_csv)),
    "run": (_run, _without_flags(_load_run)),
}
"""How files of each format are damaged, and how they are read."""
