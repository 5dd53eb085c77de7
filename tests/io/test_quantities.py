"""What the readers of all formats share: limits, axes, moments, sizes, names."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from pinloop.boundary.xml import Remarks, parse_xml
from pinloop.errors import LoadError
from pinloop.io.quantities import (
    axes_turn,
    joint_limits,
    new_name,
    primitive,
    rename_ground,
    tensor,
)

ELEMENT = parse_xml("<joint name='j'/>", "robot.xml")
INF = math.inf


@pytest.mark.parametrize(
    ("given", "missing", "expected", "remarks"),
    [
        ({}, INF, {}, 0),
        ({"lower": (-1,), "upper": (2,)}, INF, {"lower": (-1,), "upper": (2,)}, 0),
        ({"lower": (2,), "upper": (-1,)}, INF, {"lower": (-1,), "upper": (2,)}, 1),
        ({"lower": (-1,)}, INF, {"lower": (-1,), "upper": (INF,)}, 0),
        ({"upper": (1,)}, 0.0, {"lower": (0,), "upper": (1,)}, 0),
        ({"upper": (-1,)}, 0.0, {"lower": (-1,), "upper": (0,)}, 1),
        ({"lower": (-INF,), "upper": (INF,), "effort": (INF,)}, INF, {}, 0),
        ({"effort": (-1,), "velocity": (0,)}, INF, {"velocity": (0, 0)}, 1),
        ({"effort": (5,), "velocity": (INF, 3)}, INF, {"effort": (5, 5), "velocity": (INF, 3)}, 0),
    ],
)
def test_limits_are_in_order_per_degree_of_freedom_and_none_if_infinite(
    given: dict[str, Sequence[float]],
    missing: float,
    expected: dict[str, tuple[float, ...]],
    remarks: int,
) -> None:
    said: list[str] = []
    assert joint_limits(given, 2, said.append, missing) == expected
    assert len(said) == remarks


def test_axes_are_z_and_x_of_a_rotation() -> None:
    first, second = np.array([0.0, 3.0, 0.0]), np.array([2.0, 1e-3, 0.0])
    R = axes_turn(ELEMENT, [first, second]).rotation
    np.testing.assert_allclose(R.T @ R, np.eye(3), atol=1e-15)
    assert np.linalg.det(R) == pytest.approx(1.0)
    np.testing.assert_allclose(R[:, 2], [0, 1, 0], atol=1e-15)
    np.testing.assert_allclose(R[:, 0], [1, 0, 0], atol=1e-15)
    np.testing.assert_allclose(axes_turn(ELEMENT, [first]).rotation[:, 2], [0, 1, 0], atol=1e-15)
    assert axes_turn(ELEMENT, []).isIdentity()
    for axes, problem in (([first, first], "0 deg apart"), ([0 * first], "zero axis")):
        with pytest.raises(LoadError, match=problem):
            axes_turn(ELEMENT, axes)


def test_a_tensor_is_symmetric_and_has_its_entries_in_place() -> None:
    names = {"ixx": 1.0, "ixy": 2.0, "ixz": 3.0, "iyy": 4.0, "iyz": 5.0, "izz": 6.0}
    expected = [[1, 2, 3], [2, 4, 5], [3, 5, 6]]
    np.testing.assert_array_equal(tensor(names.__getitem__), expected)


def test_sizes_of_primitives_keep_their_order() -> None:
    cylinder = parse_xml("<cylinder length='3' radius='2'/>", "robot.xml")
    shape = primitive(
        cylinder, lambda key, count: cylinder.numbers(cylinder.require(key), count, key)
    )
    assert (shape.kind, shape.size) == ("cylinder", (2.0, 3.0))
    with pytest.raises(LoadError, match="no number may be negative"):
        primitive(cylinder, lambda key, count: [-1.0] * count)


def test_names_that_are_taken_are_numbered() -> None:
    assert [new_name("a", taken) for taken in ((), ("a",), ("a", "a_2"), ("b",))] == [
        "a",
        "a_2",
        "a_3",
        "a",
    ]


def test_what_is_called_ground_gets_another_name_wherever_it_is_named() -> None:
    root = parse_xml(
        "<robot><link name='ground'/><link name='ground_link'/><frame name='ground' link='ground'/>"
        "<gazebo><joint><child> ground </child></joint></gazebo></robot>",
        "robot.xml",
    )
    remarks = Remarks()
    rename_ground(
        root, "link", lambda e: ("name", "link") if e.tag == "link" else ("link",), remarks
    )
    ground, other, frame, gazebo = root.children
    assert (ground.get("name"), other.get("name")) == ("ground_link_2", "ground_link")
    assert (frame.get("name"), frame.get("link")) == ("ground", "ground_link_2")
    assert [child.text for child in gazebo.walk("child")] == ["ground_link_2"]
    assert "link 'ground' is called 'ground_link_2' here" in remarks.texts()[0]
