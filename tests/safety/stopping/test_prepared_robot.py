"""Tests of `pinloop.safety.stopping.prepared_robot`: payload, mounting and rotors, in any order of
asking.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.safety.stopping.prepared_robot import mount_robot

from ...screw_tables import Array
from ...states import robot

PAYLOADS = (None, 3.0, pl.Payload(7.0, com=(0.0, 0.1, 0.2), frame="tool0"))
GRAVITIES = (None, (0.0, 3.0, -9.0))


def expected(arm: pl.Mechanism, rotors: Array, payload: pl.Payload | float | None) -> Array:
    """Mass matrix at a configuration: of the arm, of a mass point at the tool, and of rotors."""
    q, model = np.linspace(-1, 1, arm.nv), arm.model.copy()
    model.armature[:] = 0.0
    M = pin.crba(model, model.createData(), q)
    M = np.asarray(np.triu(M) + np.triu(M, 1).T + np.diag(rotors))
    if payload is None:
        return M
    load = payload if isinstance(payload, pl.Payload) else pl.Payload(payload)
    name, com = load.frame or "tool0", np.asarray(load.com)
    frame, data = model.getFrameId(name), model.createData()
    J = pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL)
    rows = J[:3] - pin.skew(com) @ J[3:]
    return np.asarray(M + load.mass * rows.T @ rows)


@pytest.mark.parametrize("seed", [1, 2])
def test_rotors_mounting_and_payload_in_any_order(seed: int) -> None:
    """What is kept of a robot is not taken for it with other rotors or in another place."""
    arm, rng = robot("six_axis_arm"), np.random.default_rng(seed)
    before, weight = np.array(arm.model.armature), np.array(arm.model.gravity.linear)
    rotors = [before, rng.uniform(0, 4, arm.nv), rng.uniform(0, 4, arm.nv)]
    cases = [(a, b, c) for a in range(3) for b in range(3) for c in range(2)]
    for a, b, c in (cases[k] for k in rng.permutation(len(cases))):
        made = mount_robot(arm, rotors[a], PAYLOADS[b], GRAVITIES[c])
        q = np.linspace(-1, 1, arm.nv)
        M = np.triu(pin.crba(made.model, made.model.createData(), q))
        np.testing.assert_allclose(M, np.triu(expected(arm, rotors[a], PAYLOADS[b])), atol=1e-10)
        g = weight if GRAVITIES[c] is None else GRAVITIES[c]
        np.testing.assert_array_equal(made.model.gravity.linear, g)
        assert made.length == arm.length
    np.testing.assert_array_equal(arm.model.armature, before)
    assert mount_robot(arm, before, None, None) is arm
