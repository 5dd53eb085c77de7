"""Names of safety functions, and when power goes and brakes close in their stops."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import pinloop as pl
from pinloop.safety import SafetyFunction
from pinloop.safety.stopping.categories import as_category
from pinloop.safety.stopping.safety_functions import function_by_name

from .robots_to_stop import G, on_axis, pendulum, stop, wheel

CHAIN = pl.safety.Chain(controller=0.02, drive_off=0.01)
BRAKE = {"dynamic_torque": 40.0, "delay": 0.03, "rise": 0.02, "deceleration": 6.0}


def test_each_name_is_a_category_or_says_what_to_do() -> None:
    numbers = {"STO": 0, "SS1-r": 1, "SS1-t": 1, "SS2": 2, "SOS": None, "SLS": None}
    assert {x.value: x.category for x in SafetyFunction} == numbers
    for function in SafetyFunction:
        assert function_by_name(function.lower()) is function and function.meaning
        assert function_by_name(function.replace("-", "_")) is function
        if function.category is None:
            with pytest.raises(pl.BadValue, match=f"^{function} .* is no stop: it "):
                as_category(function)
        else:
            limit = 0.5 if function is SafetyFunction.SS1_T else None
            category = as_category(function, time_limit=limit)
            assert category.number == function.category and category.function is function
    assert as_category("sto") == pl.Category0() and as_category("SS2") == pl.Category2()
    with pytest.raises(pl.BadValue, match=r"SS1-t cuts the power after a fixed time; give it"):
        as_category("SS1-t")
    with pytest.raises(pl.BadValue, match=r"category is 'SS3'; it must be 0, 1 or 2, STO, SS1-r"):
        as_category("SS3")
    for number, more in (("STO", {"on_path": True}), (2, {"time_limit": 0.3})):
        with pytest.raises(pl.BadValue, match=r"category 0 has no drives|only category 1"):
            as_category(number, **more)


def test_when_power_goes_and_brakes_close(tmp_path: Path) -> None:
    """STO: after the command; SS1-r: when brakes hold; SS1-t: at its time; SS2: never."""
    by, v = on_axis(CHAIN, **BRAKE), 1.8
    stands = 0.02 + v / 6.0
    expected = {"STO": (0.03, 0.07), "SS1-r": (stands + 0.05, stands + 0.05), "SS2": (None, None)}
    results = {name: stop(wheel(2.0), v, by, category=name) for name in expected}
    late = pl.Category1(time_limit=0.5, full_time=True)
    results["SS1-t"], expected["SS1-t"] = stop(wheel(2.0), v, by, category=late), (0.53, 0.57)
    for name, (off, closed) in expected.items():
        result = results[name]
        assert result.holds and result.category.function == name
        for value, wanted in ((result.power_off, off), (result.brakes_closed, closed)):
            assert value == (wanted if wanted is None else pytest.approx(wanted, abs=1e-12))
        path = result.save_json(tmp_path / "stop.json")
        written = json.loads(path.read_text(encoding="utf-8"))
        assert written["power_off_s"] == result.power_off
        assert written["brakes_closed_s"] == result.brakes_closed
        assert written["category"]["safety_function"] == name
        text = " ".join(str(result.table()).split())
        power = "power stays on" if off is None else f"power off at {1e3 * off:.4g} ms, brakes clo"
        assert power in text and f"({name})" in text


def test_a_fixed_time_lets_the_arm_sag_until_its_brakes_hold() -> None:
    """SS1-t: power 10 ms after the command of the brakes, which act 30 ms after it: 20 ms fall."""
    by = on_axis(CHAIN, **(BRAKE | {"rise": 0.0}))
    late = pl.Category1(time_limit=0.5, full_time=True)
    sags, holds = (stop(pendulum(), 1.0, by, category=x, q=[0.2]) for x in (late, "SS1-r"))
    assert holds.joints["axis"].peak_speed == pytest.approx(1.0)
    rest = holds.run.q[-1][0]
    rate = 2.0 * G * 0.5 * np.cos(rest) / 0.6
    after = sags.run(0.55).v[0]
    assert after == pytest.approx(-rate * 0.02, rel=1e-3)
    assert sags.joints["axis"].slips == 1 and holds.joints["axis"].slips == 0


def test_what_these_times_depend_on() -> None:
    by = on_axis(CHAIN, **BRAKE)
    names = ["speed:axis", "controller", "delay:axis", "rise:axis", "deceleration:axis"]
    controlled = stop(wheel(2.0), 1.8, by, category=1)
    s = controlled.sensitivity(["power_off", "brakes_closed", "stopping_time"], names)
    times = np.array([1 / 6.0, 1.0, 1.0, 1.0, -1.8 / 36.0])
    np.testing.assert_allclose(s.matrix[0], times, rtol=1e-7)
    np.testing.assert_allclose(s.matrix[1], times, rtol=1e-7)
    np.testing.assert_allclose(s.matrix[2], times * [1, 1, 0, 0, 1], rtol=1e-7)
    cut = stop(wheel(2.0), 1.8, by).sensitivity(["power_off", "brakes_closed"], names[:4])
    np.testing.assert_allclose(cut.matrix, [[0, 1, 0, 0], [0, 1, 1, 1]], atol=1e-9)
    with pytest.raises(pl.BadValue, match="has no 'power_off'"):
        stop(wheel(2.0), 1.8, by, category=2).sensitivity(["power_off"])


def test_an_unknown_function_is_refused_with_what_is_near() -> None:
    with pytest.raises(pl.UnknownName, match="no safety function 'SS3'; did you mean 'SS2'"):
        SafetyFunction("SS3")
