"""Inputs that mean more than they are: refused with the limit, or read in linear time.

No times are measured; a quadratic reader of these sizes takes minutes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pinloop as pl
from pinloop.boundary.xml import parse_xml
from pinloop.model import validate

from ..states import URDF


def test_many_line_ends() -> None:
    root = parse_xml("<a>" + "\n" * 2_000_000 + "<b/>x</a>", "text")
    assert len(root.text) == 2_000_001 and root.text.endswith("x")
    assert root.children[0].line == 2_000_001


@pytest.mark.parametrize("tag", ["body", "model", "link"])
def test_deep_elements(tag: str) -> None:
    with pytest.raises(pl.LoadError, match=r"^text:1: <.*> is nested deeper than 6000 elements"):
        parse_xml(f"<{tag}>" * 10_000 + f"</{tag}>" * 10_000, "text")


def test_a_long_chain_of_bodies() -> None:
    body = '<body pos="0.1 0 0"><joint type="hinge"/><geom type="sphere" size="0.1"/>'
    robot = pl.load(f"<mujoco><worldbody>{body * 300}{'</body>' * 300}</worldbody></mujoco>")
    assert robot.nv == 300


def test_many_open_loops_on_two_links() -> None:
    """3,000 rows of two coordinates: no step of the search may solve a system of that size."""
    loop = (
        '<loop_joint name="p{}" type="spherical"><link1 link="base"/><link2 link="b"/></loop_joint>'
    )
    text = f"""<robot name="r"><link name="base"/><link name="a"/><link name="b"/>
        <joint name="i" type="continuous"><parent link="base"/><child link="a"/></joint>
        <joint name="j" type="continuous"><parent link="a"/><child link="b"/>
        <origin xyz="0 0 1"/></joint>{"".join(loop.format(k) for k in range(1000))}</robot>"""
    robot = pl.load(text, kinematics_only=True)
    assert len(robot.loops) == 1000
    with pytest.raises(pl.LoopNotClosed, match=r"open by 1 m"):
        pl.assemble(robot)


@pytest.mark.parametrize(("every", "most"), [(None, 1e7), (0.5, 1e9)])
def test_too_many_fixed_steps(every: float | None, most: float) -> None:
    method = pl.MuntheKaas("rk4", step=1 / (1.01 * most))
    robot = pl.load(URDF / "fourbar.urdf")
    with pytest.raises(pl.BadValue, match=r"makes 1\.01e\+0[79] steps; at most 1e\+09 are"):
        pl.simulate(robot, robot.neutral, until=1.0, method=method, save_every=every)


def _star(count: int, kind: str) -> str:
    links = "".join(
        f'<link name="l{k}"/><joint name="j{k}" type="{kind}"><parent link="base"/>'
        f'<child link="l{k}"/><axis xyz="0 0 1"/></joint>'
        for k in range(count)
    )
    return f'<robot name="many"><link name="base"/>{links}</robot>'


def test_too_many_joints() -> None:
    with pytest.raises(pl.LoadError, match="has 5001 joints that move; at most 5000 are possible"):
        pl.load(_star(5001, "continuous"), kinematics_only=True)


def test_fixed_joints_have_no_rows_in_mass_matrices() -> None:
    assert pl.load(_star(5001, "fixed"), kinematics_only=True).nv == 0


def test_too_many_fixed_joints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validate, "_MOST_JOINTS", 10)
    with pytest.raises(pl.LoadError, match="has 11 joints; at most 10 are possible, fixed ones"):
        pl.load(_star(11, "fixed"), kinematics_only=True)


def test_includes_that_multiply(tmp_path: Path) -> None:
    """Twelve small files that mean 4^11 models."""
    for k in range(12):
        (tmp_path / f"m{k}").mkdir()
        include = f"<include><uri>m{k + 1}</uri><name>n%d</name></include>"
        inside = "".join(include % i for i in range(4)) if k < 11 else '<link name="l"/>'
        (tmp_path / f"m{k}" / "model.sdf").write_text(
            f'<sdf version="1.7"><model name="m{k}">{inside}</model></sdf>'
        )
    with pytest.raises(pl.LoadError, match=r"is one of more than 1000 models that are included"):
        pl.load(tmp_path / "m0" / "model.sdf", package_dirs=[tmp_path])


def test_a_grid_of_too_many_cases() -> None:
    arm = pl.load(URDF / "six_axis_arm.urdf")
    with pytest.raises(pl.BadValue, match=r"has 1e\+24 cases; give it fewer points .* 1e\+08"):
        pl.study(arm, pl.Brakes.template(arm), sampling=pl.safety.Grid(100), search=False)


def test_too_many_states() -> None:
    robot = pl.load(URDF / "fourbar.urdf")
    q = pl.assemble(robot)
    with pytest.raises(pl.BadValue, match=r"gives 1e\+12 states until 1 s; at most 1e\+07"):
        pl.simulate(robot, q, until=1.0, save_every=1e-12)


def test_null_space_of_a_tall_matrix() -> None:
    """The thin factors of a tall matrix span the same null space as the full ones."""
    from pinloop.assembly.search import null_space

    random = np.random.default_rng(0)
    for rows, columns, rank in ((40, 5, 3), (5, 5, 5), (3, 8, 2), (6, 6, 0)):
        matrix = random.normal(size=(rows, rank)) @ random.normal(size=(rank, columns))
        null = null_space(matrix)
        assert null.shape == (columns, columns - rank)
        np.testing.assert_allclose(matrix @ null, 0, atol=1e-12)
        np.testing.assert_allclose(null.T @ null, np.eye(columns - rank), atol=1e-12)
