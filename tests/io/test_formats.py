"""Where the files that a robot names are looked for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import pinloop as pl
from pinloop.io.formats import make_resolver

from .urdf_by_hand import link, robot


@pytest.fixture(autouse=True)
def _no_ros(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROS_PACKAGE_PATH", raising=False)
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)


@pytest.fixture
def make(tmp_path: Path) -> Callable[[str], Path]:
    """Create a file below a folder of its own, and return its path."""

    def create(name: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        return path.resolve()

    return create


def test_a_relative_name_is_relative_to_the_robot_file(make: Callable[[str], Path]) -> None:
    robot_file, part = make("arm/urdf/arm.urdf"), make("arm/meshes/part.stl")
    resolve = make_resolver(robot_file.parent)
    assert resolve("../meshes/part.stl") == part
    assert resolve("  ../meshes/part.stl\n") == part
    # Many files mean the folder above their own.
    assert resolve("meshes/part.stl") == part
    assert resolve("meshes/lost.stl") is None
    assert resolve("") is None


def test_the_file_beside_the_robot_wins(make: Callable[[str], Path]) -> None:
    make("given/part.stl"), make("part.stl")
    near = make("arm/part.stl")
    assert make_resolver(near.parent, [near.parents[1] / "given"])("part.stl") == near


def test_absolute_names_and_file_uris(make: Callable[[str], Path]) -> None:
    part = make("with space/part.stl")
    resolve = make_resolver(None)
    assert resolve(str(part)) == part
    assert resolve(f"file://{part}") == part
    assert resolve("file://" + str(part).replace(" ", "%20")) == part
    assert resolve("file:///no/such/file.stl") is None
    assert resolve("/no/such/file.stl") is None


def test_a_package_is_a_given_folder_or_lies_in_one(make: Callable[[str], Path]) -> None:
    part = make("src/arm_description/meshes/part.stl")
    package = part.parents[1]
    for folder in (package, package.parent, str(package), str(package.parent)):
        resolve = make_resolver(None, [folder])
        assert resolve("package://arm_description/meshes/part.stl") == part
        assert resolve("model://arm_description/meshes/part.stl") == part
        assert resolve("package://other/meshes/part.stl") is None
    assert make_resolver(None)("package://arm_description/meshes/part.stl") is None


@pytest.mark.parametrize("name", ["ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH"])
def test_the_paths_of_ros_are_searched(
    name: str, make: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    part = make("install/share/arm_description/part.stl")
    prefix = part.parents[2] if name == "AMENT_PREFIX_PATH" else part.parents[1]
    monkeypatch.setenv(name, os.pathsep.join(["/no/such/folder", "", str(prefix)]))
    assert make_resolver(None)("package://arm_description/part.stl") == part
    monkeypatch.setenv(name, str(prefix.parent))
    assert make_resolver(None)("package://arm_description/part.stl") is None


def test_given_folders_come_before_ros_and_ros_before_the_surroundings(
    make: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    robot_file = make("work/arm/urdf/arm.urdf")
    given, ros, near = (make(f"{where}/arm/part.stl") for where in ("given", "ros", "work"))
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(ros.parents[1]))
    uri = "package://arm/part.stl"
    assert make_resolver(robot_file.parent, [given.parents[1]])(uri) == given
    assert make_resolver(robot_file.parent)(uri) == ros
    monkeypatch.delenv("ROS_PACKAGE_PATH")
    assert make_resolver(robot_file.parent)(uri) == near


def test_a_folder_is_no_file_and_odd_names_are_not_found(make: Callable[[str], Path]) -> None:
    directory = make("arm/part.stl").parent
    for resolve in (make_resolver(directory), make_resolver(directory, ["/no/such/folder"])):
        for odd in (
            "package://arm", "package://", "package:///", "://", ".", "..", "file://",
            "file://[half", "nul\0byte", "file:///a%00b", "a" * 5000, "package://" + "b" * 5000,
            "file:///" + "c" * 5000, "part.stl/below",
        ):  # fmt: skip
            assert resolve(odd) is None, odd


def test_load_hands_the_folders_on(make: Callable[[str], Path]) -> None:
    part = make("packages/arm/part.stl")
    mesh = '<visual><geometry><mesh filename="package://arm/part.stl"/></geometry></visual>'
    text = robot(link("base", mesh))
    folder = part.parents[1]
    for folders in (folder, str(folder), [folder], (str(folder),), iter([folder])):
        (shape,) = pl.load(text, package_dirs=folders).geometry
        assert shape.shape.path == part
    assert pl.load(text).geometry == ()
