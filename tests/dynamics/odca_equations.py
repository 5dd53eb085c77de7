"""Equations of motion by O-DCA, with blocks of any size; no test lives here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pinloop as pl

every_block = pytest.mark.parametrize("block", [1, 3, 64])
"""Every body for itself, as in the paper; few bodies; all bodies of a small robot."""


def odca(machine: pl.Mechanism, *, block: int = 64, **more: Any) -> pl.EquationsOfMotion:
    return pl.EquationsOfMotion(machine, formulation=pl.ODCA(block), **more)


def push(machine: pl.Mechanism) -> pl.TorqueFunction:
    """Torques on all coordinates."""
    size = np.random.default_rng(1).normal(size=machine.nv)
    return pl.TorqueFunction(lambda t, q, v: 5 * size * np.cos(t + q[0]))
