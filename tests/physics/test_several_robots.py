"""Robots on robots: the example, which asserts its physics, and an arm on a carriage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl

from ..papers.programs import picture, program


@pytest.mark.filterwarnings("ignore::pinloop.PinloopWarning")
def test_the_example_asserts_its_physics(tmp_path: Path) -> None:
    longest = program("several_robots").main(cases=2, plot=picture(tmp_path))
    assert len(longest) == 4 and longest["a palletizer with a load that hangs"] > 1.0


def test_an_arm_on_a_moving_carriage_feels_its_acceleration() -> None:
    """The carriage is moved: the arm moves as on the ground under gravity less the acceleration."""
    arm, pushed = pl.example("six_axis_arm"), 3.0
    carriage = {"name": "cart", "mass": 100, "com": [0, 0, 0]}
    rail = {"name": "rail", "pair": "prismatic", "axis": [0, 1, 0], "point": [0, 0, 0]}
    rail |= {"parent": "ground", "child": "cart"}
    table = {"name": "axis", "bodies": [carriage], "joints": [rail]}
    cell = pl.from_screws(table).with_robot(arm, "arm_", "cart")
    rng = np.random.default_rng(5)
    q, v = rng.uniform(-0.5, 0.5, arm.nq), rng.uniform(-1.0, 1.0, arm.nv)
    model = arm.model.copy()
    model.gravity.linear = np.array([0.0, -pushed, -9.81])
    own = pin.aba(model, model.createData(), q, v, np.zeros(arm.nv))
    a = np.r_[pushed, own]
    tau = pl.inverse_dynamics(cell, np.r_[0.0, q], np.r_[0.7, v], a)
    assert np.abs(tau[1:]).max() < 1e-9 * np.abs(tau[0])
