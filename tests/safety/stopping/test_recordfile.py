"""Recordings as files: separators, encodings, units, names, and what is wrong with them."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pinloop as pl
from pinloop.safety.stopping.recorded import JointTrajectory

from ...mutations import break_bytes, break_lines

PLAIN = "t,a,b\n0,1,-2\n0.5,1.5,-2e-1\n1,.25,3.\n"
T = [0.0, 0.5, 1.0]
A, B = [1.0, 1.5, 0.25], [-2.0, -0.2, 3.0]


def read(tmp_path: Path, text: str | bytes, joints: list[str] | None = None) -> JointTrajectory:
    file = tmp_path / "motion.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return JointTrajectory.from_csv(file, joints)


SAME: dict[str, str | bytes] = {
    "plain": PLAIN,
    "byte order mark": "\ufeff" + PLAIN,
    "UTF-16": PLAIN.encode("utf-16"),
    "lines of Windows": PLAIN.replace("\n", "\r\n"),
    "lines of old": PLAIN.replace("\n", "\r"),
    "no last line end": PLAIN.strip(),
    "empty lines": "\n\n" + PLAIN.replace("\n", "\n\n") + "\n , ,\n\n",
    "semicolons": PLAIN.replace(",", ";"),
    "decimal commas": PLAIN.replace(",", ";").replace(".", ","),
    "tabs": PLAIN.replace(",", "\t"),
    "tabs and decimal commas": PLAIN.replace(",", "\t").replace(".", ","),
    "spaces": PLAIN.replace(",", " , "),
    "quotes": PLAIN.replace("t,a,b", '"t","a", "b"').replace("1.5", '"1.5"'),
    "separators at the end": PLAIN.replace("\n", ",\n"),
    "one separator at the end": PLAIN.replace("b\n", "b,\n"),
    "separators at the end of rows": PLAIN.replace("\n", ",,\n").replace("b,,", "b"),
    "a spreadsheet's first line": "sep=;\n" + PLAIN.replace(",", ";"),
    "a spreadsheet's first line, quoted": '"sep=;"\n' + PLAIN.replace(",", ";"),
    "comments": "# arm; cell 7, line 2\n#\n" + PLAIN.replace("1,.25", "# pause, here\n1,.25"),
    "a header that is a comment": "# of today\n# " + PLAIN,
    "exponents": PLAIN.replace("1.5", "15E-1").replace("-2e-1", "-.02E+1"),
    "another order": "b,t,a\n-2,0,1\n-0.2,0.5,1.5\n3,1,0.25\n",
    "Time": PLAIN.replace("t,", "Time,"),
    "time with unit": PLAIN.replace("t,", "time [s],"),
    "time_s": PLAIN.replace("t,", "time_s,"),
    "t_s": PLAIN.replace("t,", "t_s,"),
    "milliseconds": "timestamp [ms],a,b\n0,1,-2\n500,1.5,-0.2\n1000,0.25,3\n",
    "t_ms": "t_ms,a,b\n0,1,-2\n500,1.5,-0.2\n1000,0.25,3\n",
    "microseconds": "t (µs),a,b\n0,1,-2\n500000,1.5,-0.2\n1e6,0.25,3\n",
    "units": PLAIN.replace("a,b", "a [rad],b (m)"),
    "units at the end of names": PLAIN.replace("a,b", "a_rad,b_m"),
    "other units": "t;a [mrad];b (mm)\n0;1000;-2000\n0.5;1500;-200\n1;250;3000\n",
    "centimetres": "t;a[RAD];b_cm\n0;1;-200\n0.5;1.5;-20\n1;0.25;300\n",
    "no unit after all": PLAIN.replace("a,b", "a [],b ()"),
}


@pytest.mark.parametrize("way", SAME)
def test_one_motion_written_in_many_ways(tmp_path: Path, way: str) -> None:
    motion = read(tmp_path, SAME[way])
    assert set(motion.joints) == {"a", "b"}
    np.testing.assert_allclose(motion.t, T, rtol=1e-15)
    values = dict(zip(motion.joints, motion.values.T, strict=True))
    np.testing.assert_allclose(values["a"], A, rtol=1e-14)
    np.testing.assert_allclose(values["b"], B, rtol=1e-14)


@pytest.mark.parametrize("title", ["a [deg]", "a (deg)", "a_deg", "a [°]", "a [Degrees]"])
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_degrees(tmp_path: Path, title: str, encoding: str) -> None:
    motion = read(tmp_path, f"t;{title};b\n0;180;1\n1;-90;2\n".encode(encoding))
    np.testing.assert_allclose(motion.values, [[np.pi, 1], [-np.pi / 2, 2]], rtol=1e-15)
    assert motion.joints == ("a", "b") and motion.units == ("rad", "")


def test_units_are_kept_for_the_check_against_a_robot(tmp_path: Path) -> None:
    assert read(tmp_path, "t,a [mm],b_deg,c\n0,1,2,3\n1,2,3,4\n").units == ("m", "rad", "")


@pytest.mark.parametrize(
    "name",
    ["joint_1", "left arm", "größe", "a,b", "a;b", "ns::joint", "rad", "_m", "joint_1_r", "t1"],
)
def test_names_are_taken_as_they_are(tmp_path: Path, name: str) -> None:
    assert read(tmp_path, f't,"{name}"\n0,1\n1,2\n').joints == (name,)
    assert read(tmp_path, f't,"{name} [rad]"\n0,1\n1,2\n').joints == (name,)


def test_only_the_joints_that_are_asked_for(tmp_path: Path) -> None:
    text = "t,a [deg],a [rad/s],lift_m [mm],arm_m,arm_rad,,note\n0,180,7,5,1,2,9,x\n1,0,,6,2,3,9,\n"
    motion = read(tmp_path, text, ["arm_m", "a", "lift_m"])
    assert motion.joints == ("a", "lift_m", "arm_m")
    assert motion.units == ("rad", "m", "")
    np.testing.assert_allclose(motion.values, [[np.pi, 0.005, 1], [0, 0.006, 2]], rtol=1e-15)
    with pytest.raises(pl.LoadError, match=r"\('arm_rad'\) and column 5 \('arm_m'\) are both"):
        read(tmp_path, text, ["arm"])


FORMER_RUN = "t [s],q.a [rad],q.b [m],v.a [rad/s],v.b [m/s],mode\n0,1,2,9,9,0\n1,3,4,9,9,0\n"
RUN = (
    "t_s,a_position_rad,a_velocity_rad_per_s,b_position_m,b_velocity_m_per_s,mode\n"
    "0,1,9,2,9,0\n1,3,9,4,9,0\n"
)


@pytest.mark.parametrize("text", [RUN, FORMER_RUN], ids=["now", "former"])
def test_coordinates_of_a_saved_run(tmp_path: Path, text: str) -> None:
    for joints in (["a", "b"], None):
        motion = read(tmp_path, text, joints)
        assert motion.joints == ("a", "b") and motion.units == ("rad", "m")
        np.testing.assert_array_equal(motion.values, [[1, 2], [3, 4]])


def test_coordinates_of_a_saved_stop(tmp_path: Path) -> None:
    text = (
        "t_s,a_position_rad,a_velocity_rad_per_s,a_torque_N_m,lift_position_m,"
        "lift_velocity_m_per_s,tool_x_m\n0,1,9,9,2,9,9\n1,3,9,9,4,9,9\n"
    )
    motion = read(tmp_path, text)
    assert motion.joints == ("a", "lift") and motion.units == ("rad", "m")
    np.testing.assert_array_equal(motion.values, [[1, 2], [3, 4]])
    # Without its velocity a column is that of a joint with an odd name.
    assert read(tmp_path, "t,a_position_rad\n0,1\n1,2\n").joints == ("a_position",)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    robot = pl.load(Path(__file__).parents[3] / "urdf" / "planar_3r.urdf")
    q, v = np.array([0.1, 0.2, 0.3]), np.array([0.5, -0.5, 1.0])
    run = pl.simulate(robot, q, v, until=0.1)
    stop = pl.stop(robot, q, v, brakes=pl.Brakes.template(robot))
    for path in (run.to_csv(tmp_path / "run.csv"), stop.to_csv(tmp_path / "stop.csv")):
        motion = pl.safety.JointTrajectory.from_csv(path)
        assert motion.joints == robot.joints and set(motion.units) == {"rad"}
        np.testing.assert_allclose(motion.positions(0.0), q, rtol=1e-14)


BAD = {
    "no number": (PLAIN.replace("1.5", "1.5x"), 3, "column 2 ('a') is '1.5x'"),
    "not finite": (PLAIN.replace("1.5", "nan"), 3, "column 2 ('a') is 'nan'"),
    "too large": (PLAIN.replace("1.5", "1e999"), 3, "'1e999'"),
    "underscores": (PLAIN.replace("1.5", "1_5"), 3, "'1_5'"),
    "thousands": ("t;a\n0;1\n1;1.234,5\n", 3, "column 2 ('a') is '1.234,5'"),
    "empty cell": (PLAIN.replace("1.5", ""), 3, "column 2 ('a') is empty"),
    "short row": ("t,a,b\n0,1,2\n1,2\n2,3,4\n", 3, "column 3 ('b') is empty"),
    "long row": ("t,a,b\n0,1,2\n1,2,3,4\n", 3, "4 cells, but the header has 3"),
    "decimal commas between commas": ("t,a\n0,0,1,5\n", 2, "semicolons"),
    "quoted decimal commas between commas": ('t,a\n0,"1,5"\n', 2, "'1,5', which is no finite"),
    "lines are counted": ("\n# x\n\nt,a\n0,1\n\n1,y\n", 7, "'y'"),
    "time empty": ("t,a\n0,1\n,2\n", 3, "column 1 ('t') is empty"),
    "time twice": ("t,a\n0,1\n\n.5,2\n0.5,3\n", 5, "time 0.5 is not after .5 in line 4"),
    "time back": ("a,t\n1,0\n2,2\n3,1\n", 4, "column 2 ('t')"),
    "no header": ("0,1\n1,2\n", 1, "the first row names the columns"),
    "no time": ("x,a\n0,1\n1,2\n", 1, "one column of times, named t or time, "),
    "two times": ("t,a,time\n0,1,0\n1,2,1\n", 1, "column 1 ('t') and column 3 ('time')"),
    "unit of time": ("t [h],a\n0,1\n1,2\n", 1, "column 1 ('t [h]') has unit 'h'; known for times"),
    "no joint": ("t\n0\n1\n", 1, "no column of a joint"),
    "spaces": ("t a b\n0 1 2\n1 2 3\n", 1, "commas, semicolons or tabs"),
    "joint twice": ("t,a,b,a_rad\n0,1,2,3\n1,2,3,4\n", 1, "('a_rad') and column 2 ('a') are both"),
    "rates": ("t,a,a [rad/s]\n0,1,2\n1,2,3\n", 1, "has unit 'rad/s'; known: rad, "),
    "no name": ("t,,b\n0,1,2\n1,2,3\n", 1, "column 2 ('') has no name"),
    "index of pandas": (",t,a\n0,0,1\n1,1,2\n", 1, "index=False"),
    "one sample": ("t,a\n0,1\n", 1, "1 samples; a motion needs at least 2"),
    "no sample": ("t,a\n", 1, "0 samples"),
    "open quote": ('t,a\n0,"1\n1,2\n', 3, "malformed CSV"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_said_with_file_line_and_column(tmp_path: Path, case: str) -> None:
    text, line, said = BAD[case]
    with pytest.raises(pl.LoadError, match=re.escape(said)) as info:
        read(tmp_path, text)
    assert info.value.line == line
    assert str(info.value).startswith(f"{tmp_path / 'motion.csv'}:{line}: ")


@pytest.mark.parametrize("content", ["", "\n\n", "# only this\n", "sep=;\n"])
def test_nothing_in_it(tmp_path: Path, content: str) -> None:
    with pytest.raises(pl.LoadError, match=r"motion\.csv: has no rows"):
        read(tmp_path, content)


@pytest.mark.parametrize("content", [b"PK\x03\x04\x00\x00", b"\xff\xfe\x00", b"\x81\x8d\xff"])
def test_no_text(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(pl.LoadError, match=r"motion\.csv: is not a text"):
        read(tmp_path, content)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(pl.LoadError, match=r"none\.csv: no such file"):
        JointTrajectory.from_csv(tmp_path / "none.csv")
    for path in (tmp_path, "a\0b"):
        with pytest.raises(pl.LoadError, match=r"is a folder|cannot be read"):
            JointTrajectory.from_csv(path)


def test_joints_that_the_file_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(pl.LoadError, match=r":1: no column 'arm_3'; did you mean 'arm_2'"):
        read(tmp_path, "t,arm_2,z\n0,1,2\n1,2,3\n", ["z", "arm_3"])
    wrong: tuple[list[str] | str, ...] = ([], "arm")
    for joints in wrong:
        with pytest.raises(pl.BadValue, match="list of joint names"):
            JointTrajectory.from_csv(tmp_path / "motion.csv", joints)


LONG = "\ufefft [ms];axis 1 [deg];lift_m;\n" + "".join(f"{k}0;{k},5;0,{k}1;\n" for k in range(9))


@settings(
    max_examples=200, derandomize=True, deadline=None, database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(seed=st.integers(0, 2**32 - 1))
def test_broken_files_load_or_say_why(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    text = random.choice([PLAIN, LONG])
    data = break_bytes(random, text.encode()) if seed % 2 else break_lines(random, text).encode()
    try:
        motion = read(tmp_path, data)
    except pl.LoadError as error:
        assert "motion.csv" in str(error)
        return
    assert np.all(np.isfinite(motion.rates(motion.start)))
