"""Parsed URDF objects of other packages are the robots they were parsed from."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl

from ..io.every_format import URDF, URDF_TREE
from ..io.urdf_by_hand import inertial, joint, link, robot

urchin = pytest.importorskip("urchin")
yourdfpy = pytest.importorskip("yourdfpy")

SHIPPED = Path(__file__).parents[2] / "urdf"

TENSOR = np.array([[2.0, 0.1, -0.2], [0.1, 1.5, 0.3], [-0.2, 0.3, 1.2]])

RICH = robot(
    '<material name="steel"><color rgba="0.5 0.6 0.7 1"/></material>',
    link("base", ""),
    link(
        "p",
        inertial(1.5, TENSOR, (0.1, 0.2, 0.3), (0.3, -0.4, 0.5))
        + '<visual name="v"><origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><geometry>'
        '<box size="1 2 3"/></geometry><material name="steel"/></visual>'
        '<visual><geometry><cylinder radius="0.5" length="2"/></geometry></visual>'
        '<collision><geometry><sphere radius="0.25"/></geometry></collision>',
    ),
    link("q", inertial(1.0, np.eye(3), (0, 0, 0.5))),
    link("tool", ""),
    joint(
        "j", "base", "p", "revolute", xyz=(0.1, 0.2, 0.3), rpy=(1.1, -0.7, 0.4), axis=(0.6, 0, 0.8),
        inside='<limit lower="-1.5" upper="2.5" effort="30" velocity="4"/>'
        '<dynamics damping="0.1" friction="0.2"/>',
    ),
    joint("k", "p", "q", rpy=(0, 0, 0.3), inside='<mimic joint="j" multiplier="-2" offset="0.1"/>'),
    joint("mount", "q", "tool", "fixed", xyz=(0, 0, 1)),
    '<transmission name="t"><type>transmission_interface/SimpleTransmission</type><joint name="j">'
    "<hardwareInterface>hardware_interface/EffortJointInterface</hardwareInterface></joint>"
    '<actuator name="m"><mechanicalReduction>50</mechanicalReduction></actuator></transmission>',
    '<loop_joint name="l" type="rod" length="1.5"><link1 link="base"/><link2 link="q"/>'
    "</loop_joint>",
)  # fmt: skip


def quiet(read: Callable[[], Any]) -> Any:
    """Other libraries warn of their own affairs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read()


def by_urchin(path: Path) -> pl.Mechanism:
    source = quiet(lambda: urchin.URDF.load(str(path)))
    return pl.load(source)


def same_robot(one: pl.Mechanism, other: pl.Mechanism) -> None:
    """Same dynamics, constraints, limits, drives and shapes."""
    assert (one.name, one.joints, one.bodies) == (other.name, other.joints, other.bodies)
    assert one.actuated == other.actuated and one.drives == other.drives
    rng = np.random.default_rng(2)
    q, v = rng.uniform(-1, 1, one.nq), rng.normal(size=one.nv)
    forces, expected = (pin.rnea(r.model, r.model.createData(), q, v, v) for r in (one, other))
    np.testing.assert_allclose(forces, expected, rtol=1e-9, atol=1e-12)
    first, second = pl.Constraints(one), pl.Constraints(other)
    assert first.labels == second.labels
    np.testing.assert_allclose(first.jacobian(q), second.jacobian(q), atol=1e-12)
    np.testing.assert_allclose(first.residual(q), second.residual(q), atol=1e-12)
    for label in (
        "lowerPositionLimit", "upperPositionLimit", "upperEffortLimit", "upperVelocityLimit",
        "damping", "upperDryFrictionLimit", "armature", "rotorGearRatio",
    ):  # fmt: skip
        np.testing.assert_array_equal(getattr(one.model, label), getattr(other.model, label))
    for a, b in zip(one.geometry, other.geometry, strict=True):
        assert (a.body, a.role, a.shape, a.color) == (b.body, b.role, b.shape, b.color)
        np.testing.assert_allclose(a.placement.homogeneous, b.placement.homogeneous, atol=1e-12)


@pytest.mark.parametrize("name", ["bricard", "fivebar", "palletizer", "prrr3", "six_axis_arm"])
def test_urchin_hands_on_the_robots_of_this_project(name: str) -> None:
    path = SHIPPED / f"{name}.urdf"
    same_robot(by_urchin(path), pl.load(path))


def test_urchin_hands_on_what_it_understands_and_what_it_does_not(tmp_path: Path) -> None:
    path = tmp_path / "rich.urdf"
    path.write_text(RICH)
    loaded = by_urchin(path)
    same_robot(loaded, pl.load(path))
    assert [loop.name for loop in loaded.loops] == ["l"] and len(loaded.couplings) == 1
    assert loaded.drives["j"].reduction == 50 and len(loaded.geometry) == 3


def test_what_urchin_makes_up_is_left_out(tmp_path: Path) -> None:
    """It gives links without inertia a kilogram; the tool of the robot weighs nothing."""
    path = tmp_path / "rich.urdf"
    path.write_text(RICH)
    weights = [body.mass for body in by_urchin(path).description.bodies]
    assert weights == [0, 1.5, 1, 0]


def test_no_file_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rich.urdf"
    path.write_text(RICH)
    source = quiet(lambda: urchin.URDF.load(str(path)))
    before = path.stat().st_mtime_ns
    monkeypatch.chdir(tmp_path)
    pl.load(source)
    assert [file.name for file in tmp_path.iterdir()] == ["rich.urdf"]
    assert path.stat().st_mtime_ns == before


def test_yourdfpy_is_asked_for_its_xml() -> None:
    """It drops what it does not know, loops and motors among them."""
    source = quiet(lambda: yourdfpy.URDF.load(io.StringIO(URDF), load_meshes=False))
    same_robot(pl.load(source), pl.load(URDF_TREE))


class _Text:
    """What urdf_parser_py offers."""

    def to_xml_string(self) -> str:
        return URDF


class _Bytes:
    """What yourdfpy offers."""

    def write_xml_string(self) -> bytes:
        return URDF.encode()


@pytest.mark.parametrize("kind", [_Text, _Bytes])
def test_a_parsed_urdf_is_known_by_its_methods(kind: type) -> None:
    same_robot(pl.load(kind()), pl.load(URDF))


class _Hollow:
    """Looks like urchin, but holds something else."""

    name = "hollow"
    links: tuple[Any, ...] = (3,)
    joints: tuple[Any, ...] = ()


def test_what_only_looks_like_a_urdf_is_refused() -> None:
    with pytest.raises(pl.LoadError, match="_Hollow object"):
        pl.load(_Hollow())
    with pytest.raises(pl.BadValue, match=r"cannot load a object; give a path"):
        pl.load(object())
