"""Brakes as values: defaults, checks, faults, bands, what they say of themselves."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.safety.brakes.brakes import Assumption, Brakes
from pinloop.safety.brakes.joint_brake import CHAIN_PARAMETERS, JOINT_PARAMETERS, Chain, JointBrake

from ..stopping.loads_by_hand import rail

URDF = Path(__file__).parents[3] / "urdf"


def two() -> Brakes:
    """Brakes of two joints with every fault still to come."""
    first = JointBrake(dynamic_torque=10.0, static_torque=12.0, tolerance=0.2, delay=0.03)
    second = JointBrake(dynamic_torque=4.0, sources={"dynamic_torque": "measured"})
    return Brakes({"a": first, "b": second}, Chain(sensor=0.01), source="two.yaml", robot="pair")


# -- one joint ------------------------------------------------------------------------------


def test_defaults() -> None:
    brake = JointBrake()
    expected = {
        "kind": "friction",
        "side": "motor",
        "gear_ratio": 1.0,
        "efficiency": 1.0,
        "rotor_inertia": None,
        "dynamic_torque": 0.0,
        "static_torque": None,
        "tolerance": 0.0,
        "band": 0.0,
        "wear": 0.0,
        "fade_share": 0.0,
        "fade_speed": 0.0,
        "fade_heat": None,
        "start_heat": 0.0,
        "delay": 0.0,
        "rise": 0.0,
        "coulomb": 0.0,
        "breakaway": None,
        "stribeck_speed": 0.0,
        "viscous": 0.0,
        "short_circuit": 0.0,
        "drive_torque": None,
        "law": "constant-deceleration",
        "deceleration": None,
        "ramp_time": None,
        "jerk": None,
        "time_constant": None,
        "torque_share": 1.0,
        "peak_gear_torque": None,
        "energy_per_stop": None,
        "energy_per_hour": None,
        "energy_in_life": None,
        "pitch": 0.0,
        "tooth_offset": 0.0,
        "impact_time": 1e-3,
    }
    assert {name: getattr(brake, name) for name in expected} == expected
    # The list of parameters, from which the file is made, tells the same.
    assert {name: parameter.default for name, parameter in JOINT_PARAMETERS.items()} == expected
    names = [field.name for field in fields(JointBrake)]
    assert names == [*expected, "sources", "notes", "spreads"]
    chain = [field.name for field in fields(Chain)]
    assert chain == [*CHAIN_PARAMETERS, "sources", "notes", "spreads"]
    assert all(getattr(Chain(), name) == 0.0 for name in CHAIN_PARAMETERS)


@pytest.mark.parametrize(("band", "factor"), [(-1.0, 0.8), (0.0, 1.0), (0.5, 1.1), (1.0, 1.2)])
def test_factor(band: float, factor: float) -> None:
    assert JointBrake(tolerance=0.2, band=band).factor == pytest.approx(factor, rel=1e-15)


def test_static_torque_stands_for_itself_or_is_the_dynamic_one() -> None:
    assert JointBrake(dynamic_torque=3.0).static == 3.0
    assert JointBrake(dynamic_torque=3.0, static_torque=4.0).static == 4.0
    # Zero is a torque, not a missing one.
    assert JointBrake(dynamic_torque=0.0, static_torque=0.0).static == 0.0


def test_the_command_comes_after_sensor_and_controller() -> None:
    assert Chain(sensor=0.25, controller=0.5, drive_off=4.0).command == 0.75


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("kind", "disc", "it must be friction or tooth or none"),
        ("kind", None, "kind"),
        ("side", 1.0, "it must be motor or joint"),
        ("gear_ratio", 0.0, "a finite number, above 0"),
        ("gear_ratio", -100.0, "above 0"),
        ("efficiency", 0.0, "above 0 and at most 1"),
        ("efficiency", 1.01, "at most 1"),
        ("rotor_inertia", -1e-9, "at least 0"),
        ("dynamic_torque", -1.0, "at least 0"),
        ("dynamic_torque", None, "at least 0"),
        ("dynamic_torque", "3", "'3'"),
        ("dynamic_torque", True, "True"),
        ("dynamic_torque", [3.0], r"\[3.0\]"),
        ("dynamic_torque", 10**400, "at least 0"),
        ("static_torque", -1.0, "at least 0"),
        ("tolerance", 1.0, "below 1"),
        ("tolerance", -0.1, "at least 0"),
        ("band", 1.1, "at most 1"),
        ("band", -1.1, "at least -1"),
        ("delay", -0.01, "at least 0"),
        ("delay", np.nan, "finite"),
        ("delay", np.inf, "finite"),
        ("rise", -0.01, "at least 0"),
        ("coulomb", -1.0, "at least 0"),
        ("breakaway", -1.0, "at least 0"),
        ("stribeck_speed", -1.0, "at least 0"),
        ("viscous", -1.0, "at least 0"),
        ("short_circuit", -1.0, "at least 0"),
        ("drive_torque", -1.0, "at least 0"),
        ("deceleration", 0.0, "above 0"),
        ("law", "at-once", "constant-deceleration or constant-time or jerk-limited"),
        ("torque_share", 1.1, "at most 1"),
        ("peak_gear_torque", 0.0, "above 0"),
        ("pitch", -0.1, "at least 0"),
        ("tooth_offset", -np.inf, "it must be a finite number$"),
        ("impact_time", 0.0, "above 0"),
    ],
)
def test_a_value_out_of_range_is_refused(name: str, value: Any, words: str) -> None:
    with pytest.raises(pl.BadValue, match=words) as info:
        JointBrake(**{name: value})
    assert str(info.value).startswith(f"{name} of a brake is ")


@pytest.mark.parametrize("name", ["sensor", "controller", "drive_off"])
def test_times_of_the_chain_are_not_negative(name: str) -> None:
    with pytest.raises(pl.BadValue, match=f"^{name} of the chain is -0.1: .*at least 0"):
        replace(Chain(), **{name: -0.1})  # type: ignore[arg-type]


def test_values_at_the_end_of_their_range_are_fine() -> None:
    brake = JointBrake(
        efficiency=1.0, rotor_inertia=0.0, band=-1.0, drive_torque=0.0, tolerance=0.999
    )
    assert brake.factor == pytest.approx(0.001)


def test_contradictions_between_two_values() -> None:
    with pytest.raises(pl.BadValue, match=r"static_torque of a brake is 1.9: must be at least dyn"):
        JointBrake(dynamic_torque=2.0, static_torque=1.9)
    with pytest.raises(pl.BadValue, match=r"breakaway of a brake is 0.5: must be at least coulomb"):
        JointBrake(coulomb=1.0, breakaway=0.5, stribeck_speed=0.1)
    with pytest.raises(pl.BadValue, match=r"stribeck_speed of a brake is 0.0: must be above 0"):
        JointBrake(coulomb=1.0, breakaway=1.5)
    JointBrake(dynamic_torque=2.0, static_torque=2.0, coulomb=1.0, breakaway=1.0)
    JointBrake(coulomb=1.0, breakaway=1.5, stribeck_speed=0.01)


def test_numbers_are_kept_as_plain_floats() -> None:
    numbers: Any = {"gear_ratio": 100, "delay": np.float32(0.25), "static_torque": np.int64(3)}
    brake = JointBrake(**numbers)
    assert [type(value) for value in (brake.gear_ratio, brake.delay, brake.static_torque)] == [
        float
    ] * 3
    assert brake == JointBrake(gear_ratio=100.0, delay=0.25, static_torque=3.0)


def test_what_is_given_without_a_source_is_a_guess() -> None:
    brake = JointBrake(delay=0.1, coulomb=2.0, sources={"coulomb": "measured", "rise": "published"})
    assert dict(brake.sources) == {"delay": "guess", "coulomb": "measured", "rise": "published"}
    assert dict(JointBrake(notes={"viscous": "none felt"}).sources) == {"viscous": "guess"}
    # Where in its band a brake is, is chosen by a study and has no source.
    assert dict(JointBrake(band=0.5, tolerance=0.0, sources={"band": "measured"}).sources) == {}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"sources": {"dely": "guess"}}, "sources of a brake names 'dely'"),
        ({"sources": {"delay": "guessed"}}, "delay is 'guessed', not one of: measured, published"),
        ({"notes": {"dely": "x"}}, "notes of a brake names 'dely'"),
        ({"notes": {"delay": 3}}, "delay is 3, not one of: a text"),
    ],
)
def test_sources_and_notes_belong_to_parameters(given: dict[str, Any], words: str) -> None:
    with pytest.raises(pl.BadValue, match=words):
        JointBrake(**given)


def test_brakes_are_frozen_and_can_be_sent_to_other_processes() -> None:
    brakes = two()
    with pytest.raises(FrozenInstanceError):
        brakes.joints["a"].delay = 1.0  # type: ignore[misc]
    with pytest.raises(TypeError):
        brakes.joints["c"] = JointBrake()  # type: ignore[index]
    with pytest.raises(TypeError):
        brakes.joints["a"].sources["delay"] = "measured"  # type: ignore[index]
    copy = pickle.loads(pickle.dumps(brakes))
    assert copy == brakes and hash(copy) == hash(brakes) and copy.source == "two.yaml"
    given = {"a": JointBrake()}
    kept = Brakes(given)
    given["b"] = JointBrake()
    assert list(kept.joints) == ["a"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Brakes({"a": {"delay": 1}}), r"joints\['a'\] is {.*}.* needs a JointBrake"),  # type: ignore[dict-item]
        (lambda: Brakes([JointBrake()]), "Brakes needs a table of a text and a JointBrake"),  # type: ignore[arg-type]
        (lambda: Brakes({}, 0.1), "chain is 0.1 .* needs a Chain"),  # type: ignore[arg-type]
    ],
)
def test_wrong_kinds_are_refused(make: Callable[[], Brakes], words: str) -> None:
    with pytest.raises(pl.BadValue, match=words):
        make()


# -- faults and bands -----------------------------------------------------------------------


def test_faults_change_one_joint_and_say_so() -> None:
    brakes = two()
    broken = brakes.missing("b").late("a", 0.05).weak("a", 0.5)
    assert broken.faults == (
        "brake of b missing",
        "brake of a late by 0.05 s",
        "brake of a at 50 % of its torque",
    )
    a, b = broken.joints["a"], broken.joints["b"]
    assert (a.delay, a.dynamic_torque, a.static_torque) == (0.03 + 0.05, 5.0, 6.0)
    assert b == replace(brakes.joints["b"], kind="none")
    assert a == replace(brakes.joints["a"], delay=0.08, dynamic_torque=5.0, static_torque=6.0)
    assert (broken.chain, broken.source, broken.robot) == (brakes.chain, "two.yaml", "pair")
    assert brakes == two()


def test_a_weak_brake_without_a_static_torque_of_its_own_still_has_none() -> None:
    weak = two().weak("b", 0.25).joints["b"]
    assert (weak.dynamic_torque, weak.static_torque, weak.static) == (1.0, None, 1.0)
    assert weak.sources["dynamic_torque"] == "measured"


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        (lambda b: b.missing("c"), pl.UnknownName, "no brake of joint 'c' in robot 'pair'"),
        (lambda b: b.late("c", 0.1), pl.UnknownName, "'c'"),
        (lambda b: b.weak("c", 0.1), pl.UnknownName, "'c'"),
        (lambda b: b.at_band({"c": 1.0}), pl.UnknownName, "'c'"),
        (lambda b: b.late("a", -0.1), pl.BadValue, "cannot be late by -0.1 s"),
        (lambda b: b.late("a", np.nan), pl.BadValue, "late by nan"),
        (lambda b: b.late("a", np.inf), pl.BadValue, "late by inf"),
        (lambda b: b.weak("a", 50), pl.BadValue, "0 to 1, not 50"),
        (lambda b: b.weak("a", -0.5), pl.BadValue, "0 to 1"),
        (lambda b: b.weak("a", np.nan), pl.BadValue, "0 to 1"),
        (lambda b: b.missing("a").missing("a"), pl.BadValue, "has no brake that could fail"),
        (lambda b: b.missing("a").late("a", 1), pl.BadValue, "has no brake that could fail"),
        (lambda b: b.missing("a").weak("a", 1), pl.BadValue, "has no brake that could fail"),
        (lambda b: b.at_band(1.5), pl.BadValue, "band of a brake is 1.5"),
    ],
)
def test_impossible_faults(
    fault: Callable[[Brakes], Brakes], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        fault(two())


def test_a_tooth_has_no_torque_to_be_weak_in() -> None:
    teeth = Brakes({"a": JointBrake(kind="tooth", pitch=0.1)})
    assert teeth.late("a", 0.1).joints["a"].delay == 0.1
    with pytest.raises(pl.BadValue, match="tooth brake"):
        teeth.weak("a", 0.5)


def test_bands_of_all_joints_or_of_some() -> None:
    low = two().at_band(-1)
    assert [brake.band for brake in low.joints.values()] == [-1.0, -1.0]
    assert low.joints["a"].factor == pytest.approx(0.8)
    mixed = low.at_band({"b": 0.5})
    assert [brake.band for brake in mixed.joints.values()] == [-1.0, 0.5]
    assert mixed.faults == ()
    assert mixed.at_band(0) == two()


# -- brakes and a robot ---------------------------------------------------------------------


def test_for_robot() -> None:
    robot = pl.load(URDF / "delta.urdf")
    brakes = Brakes({"arm_1": JointBrake(), "arm_3": JointBrake()})
    assert brakes.for_robot(robot) is brakes
    assert brakes.uncovered(robot) == ("arm_2",)
    for name, error, words in (
        ("arm_4", pl.UnknownName, "no joint 'arm_4' in robot 'delta'; did you mean"),
        ("elbow_1a", pl.BadValue, "'elbow_1a' of robot 'delta' has 3 degrees of freedom"),
        ("ball_1b", pl.BadValue, "closes a loop"),
        ("platform_tool0", pl.BadValue, "is fixed"),
    ):
        with pytest.raises(error, match=words):
            Brakes({"arm_1": JointBrake(), name: JointBrake()}).for_robot(robot)


@pytest.mark.parametrize(
    ("brake", "words"),
    [
        (JointBrake(dynamic_torque=1.0, static_torque=2.1), "more than twice dynamic_torque"),
        (JointBrake(dynamic_torque=1.0, delay=0.6), "delay is 0.6 s"),
        (JointBrake(dynamic_torque=1.0, rise=30.0), "rise is 30 s"),
        (JointBrake(dynamic_torque=1.0, efficiency=0.29), "efficiency is 0.29"),
        (JointBrake(dynamic_torque=1.0, gear_ratio=0.01), "gear_ratio is 0.01"),
        (JointBrake(), "friction brake without torque"),
        (JointBrake(kind="none", efficiency=0.1), "efficiency is 0.1"),
    ],
)
def test_suspicious_numbers(brake: JointBrake, words: str) -> None:
    (warning,) = Brakes({"a": brake}).warnings
    assert warning.startswith("joint 'a': ") and words in warning


def test_numbers_that_are_not_suspicious() -> None:
    fine = JointBrake(dynamic_torque=1.0, static_torque=2.0, delay=0.5, rise=0.5, efficiency=0.3)
    nothing = JointBrake(kind="none", delay=9.0)
    tooth = JointBrake(kind="tooth")
    assert Brakes({"a": fine, "b": nothing, "c": tooth}, Chain(sensor=0.5)).warnings == ()
    (warning,) = Brakes({"a": fine}, Chain(drive_off=0.6)).warnings
    assert warning.startswith("chain: drive_off is 0.6 s")


def rows(brakes: Brakes, robot: pl.Mechanism | None = None) -> dict[tuple[str, str], Assumption]:
    found = brakes.assumptions(robot)
    table = {(row.joint, row.parameter): row for row in found}
    assert len(table) == len(found)
    return table


def test_assumptions() -> None:
    brake = JointBrake(
        dynamic_torque=3.0, coulomb=1.0, sources={"dynamic_torque": "measured"}, tolerance=0.1
    )
    table = rows(Brakes({"a": brake, "b": JointBrake(kind="none")}, Chain(sensor=0.01)))
    expected = [
        Assumption("", "sensor", 0.01, "s", "guess"),
        Assumption("", "controller", 0.0, "s", "guess", given=False),
        Assumption("a", "kind", "friction", "", "guess", given=False),
        Assumption("a", "dynamic_torque", 3.0, "N m", "measured"),
        Assumption("a", "static_torque", 3.0, "N m", "guess", given=False),
        Assumption("a", "rotor_inertia", None, "kg m^2", "guess", given=False),
        Assumption("a", "band", 0.0, "", "guess"),
        Assumption("a", "coulomb", 1.0, "N m", "guess"),
        Assumption("b", "kind", "none", "", "guess"),
        Assumption("b", "deceleration", None, "rad/s^2", "guess", given=False),
    ]
    for row in expected:
        assert table[row.joint, row.parameter] == row
    assert next(iter(table)) == ("", "sensor")
    of = {joint: {name for where, name in table if where == joint} for joint in ("a", "b")}
    everything = set(JOINT_PARAMETERS) - {"wear"}  # none
    tooth = {"pitch", "tooth_offset", "impact_time"}
    friction = {"side", "dynamic_torque", "static_torque", "tolerance", "band", "rise"}
    stribeck = {"breakaway", "stribeck_speed"}
    everything -= {"ramp_time", "jerk", "time_constant", "torque_share"}  # of other laws
    everything -= {"energy_per_stop", "energy_per_hour", "energy_in_life"}  # not given
    everything -= {"fade_share", "fade_speed", "fade_heat", "start_heat"}  # none
    assert of["a"] == everything - tooth - stribeck
    assert of["b"] == everything - tooth - stribeck - friction - {"delay"}
    of_tooth = {name for _, name in rows(Brakes({"c": JointBrake(kind="tooth")}))}
    assert of_tooth - set(CHAIN_PARAMETERS) == everything - stribeck - friction
    curved = JointBrake(law="jerk-limited", ramp_time=1.0)
    of_curved = {name for _, name in rows(Brakes({"e": curved}))}
    assert {"jerk", "deceleration", "law"} <= of_curved and "ramp_time" not in of_curved
    slipping = JointBrake(coulomb=1.0, breakaway=2.0, stribeck_speed=0.1)
    of_slipping = {name for _, name in rows(Brakes({"d": slipping}))}
    assert of_slipping >= stribeck and "band" not in of_slipping


def test_assumptions_of_a_certain_robot(tmp_path: Path) -> None:
    robot = pl.load(rail(tmp_path, "<mechanicalReduction>200</mechanicalReduction>", inertia=2e-4))
    both = {
        "slide": JointBrake(gear_ratio=400.0, coulomb=5.0, dynamic_torque=2.0),
        "turn": JointBrake(side="joint", coulomb=1.0, dynamic_torque=2.0),
    }
    table = rows(Brakes(both), robot)
    units = {key: row.unit for key, row in table.items()}
    assert units["slide", "gear_ratio"] == "rad/m"
    assert units["slide", "coulomb"] == "N" and units["turn", "coulomb"] == "N m"
    assert units["slide", "viscous"] == "N s/m" and units["turn", "viscous"] == "N m s/rad"
    assert units["slide", "deceleration"] == "m/s^2"
    # The motor turns; only a brake on the rail itself pushes.
    assert units["slide", "dynamic_torque"] == "N m"
    assert units["slide", "drive_torque"] == "N m"
    on_rail = Brakes({"slide": replace(both["slide"], side="joint")})
    assert rows(on_rail, robot)["slide", "dynamic_torque"].unit == "N"
    # The rail's file: 200^2 * 2e-4 = 8 kg, told here on the shaft of a motor with ratio 400.
    rotor = table["slide", "rotor_inertia"]
    assert (rotor.source, rotor.given) == ("published", False)
    assert rotor.value == pytest.approx(8 / 400**2, rel=1e-12)
