"""What `load` and `from_screws` refuse to take for a robot, and with which words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pinloop as pl

from .every_format import GEPETTO, LOOPS, SCREWS, SDF, SRDF, URDF, URDF_TREE

SOURCES: list[tuple[Any, str]] = [
    (3, "cannot load a int"),
    (None, "cannot load a NoneType"),
    ([URDF], "cannot load a list"),
    ("", "the name of the robot file is empty"),
    (".", "is a folder"),
    ("#VRML_SIM R2023b utf8\nPROTO Arm [] {}\n", "is a PROTO file or world of Webots"),
    ("no/such/robot.urdf", "no/such/robot.urdf: no such file"),
    ("nul\0byte.urdf", "cannot be read"),
    ("x" * 5000 + ".urdf", "cannot be read"),
    (b"", "neither URDF"),
    (b"\x89PNG\r\n\x1a\n\xff\xfe\x00", "not UTF-8"),
    ("just\nwords", "neither URDF"),
    ("- a\n- list\n", "neither URDF"),
    (LOOPS, "is a loops file, not a robot"),
    (GEPETTO, "is a Gepetto file"),
    ("a: [1\n", "<text>:2: malformed YAML"),
    ("<robot>\n<link", "<text>:2: malformed XML"),
    ("<robot/>", "has no <link>"),
    (SRDF, "has no <link>"),
    ("<scene/>", "<scene> is the root element; a robot starts with"),
    ("<a>" * 100_000 + "</a>" * 100_000, "<a> is nested deeper than 6000 elements"),
    ("[" * 100_000 + "\n", "nested too deeply"),
    ('<robot name="r" xmlns:xacro="x"><xacro:property name="a" value="1"/></robot>', "xacro"),
    ({}, "bodies is missing"),
    ({"bodies": 3, 4: 5}, "screw table"),
]


@pytest.mark.parametrize(("source", "said"), SOURCES, ids=[said for _, said in SOURCES])
def test_what_is_no_robot_is_refused_with_its_reason(source: Any, said: str) -> None:
    with pytest.raises((pl.LoadError, pl.BadValue)) as caught:
        pl.load(source)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("robot.urdf", b"", "robot.urdf:1: malformed XML"),
        ("robot.yaml", b"", "robot.yaml: is neither URDF"),
        ("robot.sdf", b"\x00\x01\x02\xff", "robot.sdf:1: malformed XML"),
        ("robot", b"\x00\x01\x02\xff", "robot: is not UTF-8"),
        ("robot.yaml", LOOPS.encode(), "load the robot with loops=this file"),
        ("robot.loops.yaml", LOOPS.encode(), "robot.loops.yaml: is a loops file"),
        ("robot.yaml", GEPETTO.encode(), "the URDF with the same name is not beside it"),
        ("robot.srdf", SRDF.encode(), "robot.srdf:2: <robot name='bars'> has no <link>"),
    ],
)
def test_files_that_are_no_robots(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(pl.LoadError) as caught:
        pl.load(tmp_path / name)
    assert said in str(caught.value)


def test_a_folder_is_no_robot(tmp_path: Path) -> None:
    for read in (pl.load, pl.from_screws):
        with pytest.raises(pl.LoadError, match="is a folder"):
            read(tmp_path)


LOOPS_ARGUMENTS: list[tuple[Any, str]] = [
    (3, "loops are a mapping"),
    (["a.yaml", 3], "a.yaml: no such file"),
    ([[]], "loops are a mapping"),
    ("- 1\n- 2\n", "loops are a mapping"),
    (SDF, "no SRDF"),
    (URDF, "no SRDF"),
    (SCREWS, "name is not a known key"),
    ({"loop": []}, "did you mean 'loops'?"),
    ({"loops": [{"name": "l"}]}, "is missing"),
    ("no/such.yaml", "no/such.yaml: no such file"),
]


@pytest.mark.parametrize(("loops", "said"), LOOPS_ARGUMENTS)
def test_loops_that_are_none(loops: Any, said: str) -> None:
    with pytest.raises(pl.LoadError) as caught:
        pl.load(URDF_TREE, loops=loops)
    assert said in str(caught.value)


def test_arguments_that_are_no_folders_or_tables() -> None:
    for folders in (3, [3], [None]):
        with pytest.raises(pl.BadValue, match="package_dirs"):
            pl.load(URDF, package_dirs=folders)  # type: ignore[arg-type]
    for table in (3, None, [SCREWS]):
        with pytest.raises(pl.BadValue, match="screw table"):
            pl.from_screws(table)  # type: ignore[arg-type]
