"""Brakes guessed from a robot's file, and the files that are shipped beside the robots."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.safety.brakes.brakes import Brakes
from pinloop.safety.brakes.estimates import BRAKE_SHARE, DELAY, RISE, ROTOR, STOP_TIME
from pinloop.safety.brakes.template import worst_loads

from ..stopping.loads_by_hand import BODY, palletizer_angles, palletizer_gravity, rail

URDF = Path(__file__).parents[3] / "urdf"
SHARE = 1.15 * BRAKE_SHARE.value
"""Torque at rest over the peak torque of the drive."""


def test_template_without_any_limit(tmp_path: Path) -> None:
    """Closed form: the rail carries 5 kg, the pendulum 2 kg at 0.5 m."""
    brakes = Brakes.template(pl.load(rail(tmp_path)))
    slide, turn = brakes.joints["slide"], brakes.joints["turn"]
    assert (brakes.robot, brakes.source, brakes.faults) == ("rail", "template", ())
    # Twice gravity and 5 kg from 0.8 m/s in the time of a controlled stop.
    weight, rate = 9.81 * 5, 0.8 / STOP_TIME.value
    assert slide.static_torque == pytest.approx(2 * weight + 5 * rate, rel=1e-3)
    assert slide.deceleration == pytest.approx(rate, rel=1e-3)
    # 200 angles: the worst is within 2 % of level. Its inertia is 0.25 + 2 * 0.5^2; no speed limit.
    load = 2 * 9.81 * 2 * 0.5 + 0.75 * 2.0 / STOP_TIME.value
    assert turn.static_torque is not None
    assert 0.98 * load < turn.static_torque <= 1.0005 * load
    assert turn.deceleration == pytest.approx(2.0 / STOP_TIME.value, rel=1e-3)
    # Drives have so much torque that such brakes suit them; it brings rotors to speed in a time.
    for brake, speed, drive in ((slide, 0.8, ROTOR["servo"]), (turn, 2.0, ROTOR["strain wave"])):
        peak = brake.static / SHARE
        assert brake.rotor_inertia == pytest.approx(drive.value * peak / speed, rel=1e-3)
    for brake in (slide, turn):
        assert brake.static_torque is not None
        assert brake.dynamic_torque == pytest.approx(brake.static_torque / 1.15, rel=1e-3)
        assert (brake.side, brake.gear_ratio, brake.tolerance) == ("joint", 1.0, 0.2)
        assert brake.delay == pytest.approx(DELAY.value, rel=0.05)
        assert brake.rise == pytest.approx(RISE.value, rel=0.05)
        assert (brake.drive_torque, brake.peak_gear_torque) == (None, None)
        assert (brake.coulomb, brake.viscous, brake.kind) == (0.0, 0.0, "friction")
        assert set(brake.sources.values()) == {"guess"}
        assert "drive_torque" not in brake.sources
        assert "gives no effort limit" in brake.notes["static_torque"]
    assert "N + largest inertia 5 kg " in slide.notes["static_torque"]


def test_template_with_drives_limits_and_losses(tmp_path: Path) -> None:
    extra = """<limit effort="30" velocity="3"/><dynamics damping="0.4" friction="0.7"/>"""
    given = "<mechanicalReduction>-200</mechanicalReduction>"
    brakes = Brakes.template(pl.load(rail(tmp_path, given, 2e-4, extra)))
    slide, turn = brakes.joints["slide"], brakes.joints["turn"]
    # A gear may turn the other way round; a brake does not mind.
    assert (slide.gear_ratio, slide.sources["gear_ratio"], slide.side) == (
        200.0, "published", "motor",
    )  # fmt: skip
    assert (slide.rotor_inertia, slide.sources["rotor_inertia"]) == (2e-4, "published")
    # The rotor is 200^2 * 2e-4 = 8 kg more at the rail.
    force = 2 * 9.81 * 5 + 13 * 0.8 / STOP_TIME.value
    assert slide.static_torque == pytest.approx(force / 200, rel=1e-3)
    assert turn.static_torque == pytest.approx(SHARE * 30.0, rel=1e-3)
    assert turn.sources["static_torque"] == turn.sources["rotor_inertia"] == "guess"
    assert turn.rotor_inertia == pytest.approx(ROTOR["strain wave"].value * 30 / 3, rel=1e-3)
    assert (turn.drive_torque, turn.sources["drive_torque"]) == (30.0, "published")
    assert turn.deceleration == pytest.approx(3 / STOP_TIME.value, rel=1e-3)
    assert (turn.coulomb, turn.viscous) == (0.7, 0.4)
    assert turn.sources["coulomb"] == turn.sources["viscous"] == "published"
    assert "effort limit 30 N m" in turn.notes["static_torque"]


def test_template_does_not_believe_an_effort_limit_below_gravity(tmp_path: Path) -> None:
    extra = '<limit effort="5" velocity="3"/>'
    turn = Brakes.template(pl.load(rail(tmp_path, extra=extra))).joints["turn"]
    # Gravity asks for 9.81 N m.
    assert turn.static_torque == pytest.approx(2 * 9.81, rel=0.02)
    assert turn.drive_torque == 5.0
    assert "the effort limit 5 N m would not hold it" in turn.notes["static_torque"]


def test_template_of_the_arm() -> None:
    robot = pl.load(URDF / "six_axis_arm.urdf")
    brakes = Brakes.template(robot)
    assert list(brakes.joints) == [f"joint_{k}" for k in range(1, 7)]
    for k, effort in enumerate((1500, 2200, 1000, 150, 90, 35)):
        brake = brakes.joints[f"joint_{k + 1}"]
        assert brake.gear_ratio == 100.0 and brake.side == "motor"
        assert brake.static_torque == pytest.approx(SHARE * effort / 100, rel=1e-3)
        # The arm has 239 kg: it is no collaborative robot, and its drives are slim motors.
        row = robot.coordinates(f"joint_{k + 1}").v.start
        peak = ROTOR["servo"].value * effort / robot.model.upperVelocityLimit[row]
        assert brake.rotor_inertia == pytest.approx(peak / 100**2, rel=1e-3)
        assert brake.drive_torque == pytest.approx(effort / 100)
        assert brake.coulomb == (40, 45, 22, 5, 3, 1.2)[k]
        assert brake.viscous == (30, 35, 18, 3, 2, 0.6)[k]
    assert brakes.for_robot(robot).warnings == ()
    assert brakes.uncovered(robot) == ()
    assert (brakes.chain.command, brakes.chain.drive_off) == (0.015, 0.005)
    assert Brakes.template(robot) == brakes


def test_template_of_a_robot_with_loops_brakes_the_motors_only() -> None:
    robot = pl.load(URDF / "palletizer.urdf")
    brakes = Brakes.template(robot)
    assert list(brakes.joints) == ["base_yaw", "shoulder", "elbow", "wrist"]
    assert brakes.joints["elbow"].static_torque == pytest.approx(SHARE * 5500 / 170, rel=1e-3)
    assert list(Brakes.template(pl.load(URDF / "delta.urdf")).joints) == ["arm_1", "arm_2", "arm_3"]


def test_loads_of_a_robot_with_loops() -> None:
    """Virtual power against the slope of the potential energy along angles found by hand."""
    robot = pl.load(URDF / "palletizer.urdf")
    gravity, inertia = worst_loads(robot, list(robot.actuated))
    shoulder, elbow = palletizer_gravity(robot)
    assert gravity[0] == gravity[3] == 0.0
    assert 0.9 * shoulder < gravity[1] <= 1.001 * shoulder
    assert 0.9 * elbow < gravity[2] <= 1.001 * elbow
    # Twice the kinetic energy at unit speed of yaw, of shoulder, of elbow alone.
    most = np.zeros(3)
    still = palletizer_angles(0.0, 0.0)
    rates = ({**still, "base_yaw": 1.0}, palletizer_angles(1.0, 0.0), palletizer_angles(0.0, 1.0))
    for lean in np.linspace(-0.69813, 1.3963, 8):
        for pitch in np.linspace(-0.34907, 1.3963, 8):
            q = robot.configuration(palletizer_angles(lean, pitch))
            for k, rate in enumerate(rates):
                v = robot.velocity(rate)
                energy = pin.computeKineticEnergy(robot.model, robot.model.createData(), q, v)
                most[k] = max(most[k], 2 * energy)
    assert np.all(0.8 * most < inertia[:3]) and np.all(inertia[:3] <= 1.001 * most)


def test_loads_with_coupled_joints(tmp_path: Path) -> None:
    """A pendulum that turns a second one twice as fast and lifts a weight by 0.3 m/rad."""
    link = BODY.format(m=2, x=0.5, i=0.25)
    path = tmp_path / "geared.urdf"
    path.write_text(f"""<robot name="geared"><link name="base"/>
      <link name="a">{link}</link><link name="b">{link}</link><link name="c">{link}</link>
      <joint name="one" type="continuous"><parent link="base"/><child link="a"/>
        <axis xyz="0 1 0"/></joint>
      <joint name="two" type="continuous"><parent link="base"/><child link="b"/>
        <origin xyz="0 5 0"/><axis xyz="0 1 0"/><mimic joint="one" multiplier="2"/></joint>
      <joint name="three" type="prismatic"><parent link="base"/><child link="c"/>
        <origin xyz="0 9 0"/><axis xyz="0 0 1"/><mimic joint="one" multiplier="0.3"/>
        <limit lower="-9" upper="9" effort="1" velocity="1"/></joint></robot>""")
    robot = pl.load(path)
    assert robot.length > 2
    gravity, inertia = worst_loads(robot, ["one"])
    # Positive angles turn the pendulums down.
    angles = np.linspace(0, 2 * np.pi, 2000)
    worst = np.abs(9.81 * (2 * 0.3 - np.cos(angles) - 2 * np.cos(2 * angles))).max()
    assert 0.9 * worst < gravity[0] <= worst * (1 + 1e-6)
    assert inertia[0] == pytest.approx(0.75 + 4 * 0.75 + 2 * 0.3**2, rel=1e-9)
    # Held at the weight instead, everything is seen through the rack.
    pull, mass = worst_loads(robot, ["three"])
    assert 0.9 * worst / 0.3 < pull[0] <= worst / 0.3 * (1 + 1e-6)
    assert mass[0] == pytest.approx(inertia[0] / 0.3**2, rel=1e-9)
    assert list(Brakes.template(robot).joints) == ["one"]


def test_template_names_the_joints_it_cannot_brake(tmp_path: Path) -> None:
    text = "format: pinloop-loops-1\nactuated: [arm_1, elbow_1a, ball_1b, arm_2, platform_tool0]\n"
    (tmp_path / "more.yaml").write_text(text)
    robot = pl.load(URDF / "delta.urdf", loops=tmp_path / "more.yaml")
    with pytest.warns(pl.PinloopWarning, match="no brakes for 'elbow_1a', 'ball_1b';") as found:
        brakes = Brakes.template(robot)
    assert [Path(warning.filename) for warning in found] == [Path(__file__)]
    assert list(brakes.joints) == ["arm_1", "arm_2"]
    # What is fixed needs no brake.
    assert brakes.uncovered(robot) == ("elbow_1a",)


def test_template_without_anything_to_brake() -> None:
    with pytest.raises(pl.BadValue, match="'spherical_threebar' has no actuated joint with one"):
        Brakes.template(pl.load(URDF / "spherical_threebar.urdf"))


def example(name: str) -> pl.Mechanism:
    try:
        found = [file for file in files("example-robot-data") or () if str(file).endswith(name)]
    except PackageNotFoundError:
        found = []
    if not found:
        pytest.skip("example-robot-data is not installed")
    return pl.load(Path(str(found[0].locate())))


@pytest.mark.parametrize(
    ("name", "joints", "torques"),
    [
        # The shoulder carries 59.3 N m of gravity, just less than half of what its brake holds.
        ("ur5_robot.urdf", 6, {"shoulder_lift_joint": SHARE * 150, "wrist_3_joint": SHARE * 28.0}),
        # One finger follows the other.
        ("panda.urdf", 8, {"panda_joint5": SHARE * 12.0, "panda_finger_joint1": SHARE * 100.0}),
        # Its torso cannot carry itself level with 78 N m; its head has a gear of 2.
        ("talos_reduced.urdf", 32, {"arm_left_5_joint": 3.425, "head_2_joint": SHARE * 2.0}),
        ("double_pendulum_continuous.urdf", 2, {}),
    ],
)
def test_template_of_other_robots(
    name: str, joints: int, torques: dict[str, float], tmp_path: Path
) -> None:
    robot = example(name)
    brakes = Brakes.template(robot).for_robot(robot)
    assert len(brakes.joints) == joints
    assert brakes.warnings == () and brakes.uncovered(robot) == ()
    for joint, torque in torques.items():
        assert brakes.joints[joint].static_torque == pytest.approx(torque, rel=1e-3)
    data = robot.model.createData()
    load = np.abs(pin.computeGeneralizedGravity(robot.model, data, robot.neutral))
    for joint, brake in brakes.joints.items():
        at_joint = brake.gear_ratio * brake.static
        assert at_joint > load[robot.coordinates(joint).v.start], joint
    assert Brakes.from_yaml(brakes.to_yaml(tmp_path / "x.yaml")) == brakes


# -- the files beside the robots ------------------------------------------------------------


@pytest.mark.parametrize("name", ["six_axis_arm", "palletizer", "delta"])
def test_shipped_files_fit_their_robots(name: str) -> None:
    robot = pl.load(URDF / f"{name}.urdf")
    brakes = Brakes.from_yaml(URDF / f"{name}.brakes.yaml").for_robot(robot)
    assert brakes.robot == name and brakes.warnings == ()
    assert set(brakes.joints) == set(robot.actuated)
    used = brakes.assumptions(robot)
    assert {row.source for row in used} == {"guess"}
    # Only what such a stop does not use may be left out.
    assert {row.parameter for row in used if not row.given} == {"short_circuit", "law"}
    for joint, brake in brakes.joints.items():
        row = robot.coordinates(joint).v.start
        assert brake.gear_ratio == robot.drives[joint].reduction
        assert brake.viscous == robot.model.damping[row]
        assert brake.coulomb == robot.model.upperDryFrictionLimit[row]
        assert brake.deceleration is not None and brake.peak_gear_torque is not None
        effort = robot.model.upperEffortLimit[row]
        assert brake.drive_torque is not None
        assert brake.gear_ratio * brake.drive_torque == pytest.approx(effort, rel=0.02)
        # The gear must survive its own brake and motor.
        assert brake.peak_gear_torque > 1.2 * brake.gear_ratio * brake.static
        assert 1.0 < brake.static / brake.dynamic_torque <= 1.3


def test_brakes_of_the_arm_hold_ten_kilogrammes_at_their_low_end() -> None:
    robot = pl.load(URDF / "six_axis_arm.urdf").with_payload("tool0", 10.0)
    brakes = Brakes.from_yaml(URDF / "six_axis_arm.brakes.yaml").at_band(-1)
    model, data = robot.model, robot.model.createData()
    worst = np.zeros(6)
    for q2 in np.linspace(-2.39, 2.39, 25):
        for q3 in np.linspace(-4.01, 0.87, 25):
            for q5 in (-1.57, 0.0, 0.52):
                q = np.array([0.0, q2, q3, 0.0, q5, 0.0])
                worst = np.maximum(worst, np.abs(pin.rnea(model, data, q, 0 * q, 0 * q)))
    # The comment in the file says 756 N m.
    assert worst[1] == pytest.approx(756, rel=0.01)
    hold = [b.gear_ratio * b.static * b.factor for b in brakes.joints.values()]
    assert np.all(hold > 1.3 * worst)


def test_brakes_of_the_palletizer_hold_sixty_kilogrammes_at_their_low_end() -> None:
    robot = pl.load(URDF / "palletizer.urdf").with_payload("tool0", 60.0)
    brakes = Brakes.from_yaml(URDF / "palletizer.brakes.yaml").at_band(-1)
    for joint, worst in zip(("shoulder", "elbow"), palletizer_gravity(robot), strict=True):
        brake = brakes.joints[joint]
        assert brake.gear_ratio * brake.static * brake.factor > 1.5 * worst, joint
