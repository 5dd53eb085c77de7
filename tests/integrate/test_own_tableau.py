"""A tableau of one's own: the method it becomes, and what is no tableau."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from pinloop.errors import BadValue
from pinloop.integrate import MuntheKaas, Tableau

from .groups_by_hand import Space

Array = NDArray[np.float64]

RALSTON = Tableau("ralston", np.array([[0, 0], [2 / 3, 0]]), np.array([1 / 4, 3 / 4]), (), 2, 0)


def test_a_step_is_that_of_the_coefficients() -> None:
    """``q'' = -q``: two stages by hand."""
    h, q, v = 0.1, np.array([0.7]), np.array([-0.4])
    method = MuntheKaas(RALSTON, step=h)
    made = method.attempt(Space(), lambda t, q, v: -q, 0.0, h, (q, v, -q))
    q2, v2 = q + h * 2 / 3 * v, v - h * 2 / 3 * q
    np.testing.assert_allclose(made.q, q + h * (v / 4 + 3 / 4 * v2), rtol=1e-15)
    np.testing.assert_allclose(made.v, v - h * (q / 4 + 3 / 4 * q2), rtol=1e-15)


def test_one_with_an_error_estimate_controls_its_step() -> None:
    pair = replace(RALSTON, errors=(np.array([-3 / 4, 3 / 4]),), error_order=1)
    assert MuntheKaas(pair).step is None
    made = MuntheKaas(pair).attempt(
        Space(), lambda t, q, v: -q, 0.0, 0.1, (np.array([1.0]), np.array([0.0]), np.array([-1.0]))
    )
    # Ralston less Euler: h times 3/4 of the difference of the two stages.
    np.testing.assert_allclose(made.errors[0][0], 0.1 * 0.75 * (0.1 * 2 / 3 * -1.0), rtol=1e-14)


def test_one_without_needs_a_step() -> None:
    with pytest.raises(BadValue, match="method 'ralston' has no error estimate; give it a step"):
        MuntheKaas(RALSTON)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"a": np.array([[0, 0.5], [2 / 3, 0]])}, "must be strictly lower triangular and 2 x 2"),
        ({"a": np.zeros((3, 3))}, r"a has shape \(3, 3\); it must be .* as b has 2 weights"),
        ({"b": np.array([0.5, 0.6])}, "the weights b add up to 1.1, not to 1"),
        ({"errors": (np.zeros(4),)}, "an error estimate has 4 weights for 2 stages"),
    ],
)
def test_what_is_no_explicit_method_is_refused(change: dict[str, object], says: str) -> None:
    with pytest.raises(BadValue, match=f"^tableau 'ralston': .*{says}"):
        replace(RALSTON, **change)  # type: ignore[arg-type]
