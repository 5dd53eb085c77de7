"""Every door through which a robot file enters takes the same options."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import pinloop as pl
from pinloop.boundary.schema import keys_of
from pinloop.cli.main import app
from pinloop.io.loading import RobotFile
from pinloop.safety.studies.studyfile import StudyFile, read_study

TWO_MODELS = """\
<sdf version="1.9"><world name="w">{models}</world></sdf>
"""
MODEL = """\
<model name="{name}">
  <link name="base"/>
  <link name="arm"><inertial><mass>2</mass></inertial>
    <visual name="v"><geometry><mesh><uri>package://parts/arm.stl</uri></mesh></geometry></visual>
  </link>
  <joint name="j" type="revolute"><parent>base</parent><child>arm</child>
    <axis><xyz>0 1 0</xyz><limit><lower>-2</lower><upper>2</upper><effort>40</effort>
      <velocity>3</velocity></limit></axis></joint>
  <joint name="weld" type="fixed"><parent>world</parent><child>base</child></joint>
</model>
"""
STUDY = """\
format: pinloop-study-1
robot: {robot}
sampling: {{method: sobol, count: 2}}
space: {{speed: 0.5}}
until: 1
"""
ROBOT = "{file: world.sdf, model: right, package_dirs: shared, tolerance: 0}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two models in one world, with a mesh in a package."""
    models = "".join(MODEL.format(name=name) for name in ("left", "right"))
    (tmp_path / "world.sdf").write_text(TWO_MODELS.format(models=models))
    mesh = tmp_path / "shared" / "parts" / "arm.stl"
    mesh.parent.mkdir(parents=True)
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]])
    vertices = "".join(f"vertex {x} {y} {z}\n" for x, y, z in corners)
    mesh.write_text(f"solid s\nfacet normal 0 0 1\nouter loop\n{vertices}endloop\nendfacet\n"
                    "endsolid s\n")  # fmt: skip
    return tmp_path


def test_the_value_has_every_option_of_load_that_is_about_files() -> None:
    options = set(inspect.signature(pl.load).parameters) - {"source", "gravity", "kinematics_only"}
    assert options == set(keys_of(RobotFile)) - {"file"}
    assert get_type_hints(StudyFile)["robot"] is RobotFile


@pytest.mark.parametrize(
    "words", ["check", "assemble", "regularize", "view", "stop", "compare", "fit", "brakes init"]
)
def test_commands_take_all_of_them(words: str) -> None:
    command = get_command(app)
    for word in words.split():
        command = command.commands[word]  # type: ignore[attr-defined]
    names = {option for parameter in command.params for option in parameter.opts}
    assert names >= {"--loops", "--package-dir", "--model", "--floating-base", "--tolerance"}


def test_a_study_of_one_model_of_a_world(folder: Path) -> None:
    path = folder / "s.study.yaml"
    path.write_text(STUDY.format(robot=ROBOT))
    plan = read_study(path)
    assert plan.robot.name == "right"
    assert [item.shape.kind for item in plan.robot.description.geometry] == ["mesh"]
    result = CliRunner().invoke(app, ["study", str(path), "--jobs", "1"])
    assert result.exit_code in (0, 1), result.output


def test_a_study_of_a_world_says_which_models_there_are(folder: Path) -> None:
    path = folder / "s.study.yaml"
    path.write_text(STUDY.format(robot="world.sdf"))
    with pytest.raises(pl.LoadError, match="'left', 'right'"):
        read_study(path)


def test_files_that_are_not_there_are_told_with_their_line(folder: Path) -> None:
    path = folder / "s.study.yaml"
    path.write_text(STUDY.format(robot="{file: world.sdf, loops: wrold.yaml}"))
    with pytest.raises(pl.LoadError, match=r"s\.study\.yaml:2: .*wrold\.yaml: no such file"):
        read_study(path)


def test_fields_of_a_subclass_are_not_options_of_load(tmp_path: Path) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Coloured(RobotFile):
        color: str = "red"

    path = tmp_path / "arm.sdf"
    path.write_text(TWO_MODELS.format(models=MODEL.format(name="m")))
    assert Coloured(file=path).load().name == "m"
