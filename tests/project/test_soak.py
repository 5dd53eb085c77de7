"""Campaigns of `tools.soak`: the same seed tries the same cases, and what is wrong is noticed."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from tools.pages import between
from tools.soak import counts, regressions
from tools.soak import files as campaign_of_files
from tools.soak import mechanisms as campaign_of_mechanisms
from tools.soak.__main__ import CAMPAIGNS, SHORT
from tools.soak.campaign import Campaign, Case, Data, Finding, Tally, draw, judge_apart, run
from tools.soak.children import Limits
from tools.soak.derivatives import _extrapolated
from tools.soak.files import simplify_files
from tools.soak.stops import _judge, static_excess
from tools.soak.tables import plain, simplify_table

import pinloop as pl

from .. import mechanisms
from ..safety.stopping.robots_to_stop import pendulum

URDF = Path(__file__).parents[2] / "urdf"


def draw_digit(rng: np.random.Generator) -> Data:
    return {"digit": int(rng.integers(10)), "rest": [1, 2, 3, 4]}


def judge_digit(data: Data) -> Case:
    digit = data["digit"]
    if digit == 9:
        raise ValueError("too large\nby far")
    if digit == 8:
        os.kill(os.getpid(), signal.SIGKILL)
    while digit == 7:
        pass
    if digit == 6:
        np.ones(2**31)
    return Case("digit", (Finding("odd", str(digit)),) if digit % 2 else ())


def simplify_digit(data: Data) -> Iterator[Data]:
    rest = data["rest"]
    yield from (data | {"rest": rest[:k] + rest[k + 1 :]} for k in range(len(rest)))


DIGITS = Campaign(draw_digit, judge_digit, simplify_digit, Limits(seconds=1, memory=2**30))
WRONG = {
    1: ("odd", "1"),
    3: ("odd", "3"),
    5: ("odd", "5"),
    6: ("crash", "MemoryError"),
    7: ("died", "ended by SIGXCPU after 1 s of the processor"),
    8: ("died", "ended by SIGKILL"),
    9: ("crash", "ValueError: too large (test_soak.py, judge_digit)"),
}


@pytest.mark.parametrize("digit", range(10))
def test_whatever_happens_to_a_case_is_a_finding(digit: int) -> None:
    case = judge_apart(DIGITS, {"digit": digit})
    if digit not in WRONG:
        assert case.findings == ()
        return
    (finding,) = case.findings
    kind, text = WRONG[digit]
    assert finding.kind == kind and finding.text.startswith(text)


def test_a_case_has_a_number_and_a_campaign_goes_on_after_one_that_died() -> None:
    digits = [draw(DIGITS, 5, k)["digit"] for k in range(40)]
    died = digits.index(8)
    first = died - 1 if died and digits[died - 1] < 6 else died
    tried = []
    for number, case in run(DIGITS, 5, 1.0, first=first):
        tried.append((number, [finding.kind for finding in case.findings]))
        if number > died:
            break
    assert [number for number, _ in tried] == [*range(first, died + 2)]
    assert dict(tried)[died] == ["died"]


def test_findings_are_counted() -> None:
    tally = Tally()
    for case in (Case("a", (Finding("odd", "1"),), ("x", "x")), Case("b"), Case("a", (), ("x",))):
        tally.add(case)
    assert str(tally) == "with x 2\n3 cases (a 2, b 1): odd 1"
    assert not Tally().found


def test_what_is_found_is_made_smaller_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regressions, "FOLDER", tmp_path / "regressions")
    data = {"digit": 3, "rest": [1, 2, 3, 4]}
    path = regressions.keep("digits", DIGITS, data, judge_apart(DIGITS, data), "today")
    document = json.loads(path.read_text())
    assert document.pop("cause") == ""
    assert document == {"campaign": "digits", "finding": "odd: 3", "origin": "today",
                        "case": {"digit": 3, "rest": []}}  # fmt: skip


@pytest.mark.parametrize("name", [*CAMPAIGNS])
def test_cases_are_data(name: str) -> None:
    """What is judged is what is in the file, and simpler ones are data, too."""
    for number in range(4):
        data = draw(CAMPAIGNS[name], 3, number)
        assert json.loads(json.dumps(data)) == json.loads(json.dumps(data | {}))
        for simpler in islice(CAMPAIGNS[name].simplify(data), 20):
            json.dumps(simpler)
            assert simpler != data


def test_a_table_gets_smaller_until_nothing_is_left() -> None:
    table = draw(CAMPAIGNS["mechanisms"], 0, 1)["table"]

    def has_two_joints(simpler: Data) -> bool:
        return len(simpler["joints"]) >= 2

    small = regressions.shrink(table, simplify_table, has_two_joints, 10.0)
    assert len(small["joints"]) == 2
    assert len(small["bodies"]) <= 2


def test_a_file_gets_smaller_by_elements_lines_and_bytes() -> None:
    text = "<robot>\n<link name='a' odd='1'/>\n<link name='b'/>\n</robot>\n"
    data = {"kind": "urdf", "files": {"robot.urdf": {"text": text}}, "flags": {"x": True}}

    def has_odd(simpler: Data) -> bool:
        return "odd" in simpler["files"]["robot.urdf"].get("text", "")

    small = regressions.shrink(data, simplify_files, has_odd, 10.0)
    assert small == {"kind": "urdf", "files": {"robot.urdf": {"text": "odd"}}, "flags": {}}


def test_the_page_says_what_the_counts_say() -> None:
    text = counts.PAGE.read_text(encoding="utf-8")
    for name, table in counts.tables().items():
        assert between(text, name) == table


@pytest.fixture(scope="module")
def stopped() -> pl.StopResult:
    robot = pl.load(URDF / "palletizer.urdf")
    q = pl.assemble(robot, {"shoulder": 0.4})
    v = pl.consistent_velocity(robot, q, {"shoulder": 1.0})
    return pl.stop(robot, q, v, brakes=pl.Brakes.template(robot))


def test_a_good_stop_is_good(stopped: pl.StopResult) -> None:
    assert stopped.outcome == "stopped" and _judge(stopped, 0.1) == []


def test_what_is_wrong_about_a_stop_is_noticed(stopped: pl.StopResult) -> None:
    def kinds(result: pl.StopResult, seconds: float = 0.1) -> list[str]:
        return [finding.kind for finding in _judge(result, seconds)]

    assert kinds(stopped, 2.1) == ["slow"]
    off = 1.1e-6 * stopped.ledger.turned_over
    leaky = replace(stopped)
    vars(leaky)["_measured"] = stopped.loads, replace(stopped.ledger, impacts=off)
    assert kinds(leaky) == ["energy"]
    joints = stopped.brakes.joints
    without = {name: pl.safety.JointBrake(kind="none") for name in joints}
    fallen = replace(stopped, brakes=replace(stopped.brakes, joints=without))
    assert kinds(fallen) == ["falls"] and static_excess(fallen) > 0.1
    v = np.array(stopped.run.v)
    v[-1, stopped.robot.coordinates("shoulder").v] = 2e-3
    assert kinds(replace(stopped, run=replace(stopped.run, v=v))) == ["moves"]


def test_what_hangs_may_swing_a_little() -> None:
    """What nothing holds stands where it hangs: the same load on a joint that turns would fall."""
    robot, none = pendulum(), pl.safety.JointBrake(kind="none")
    hanging = min(np.linspace(-np.pi, np.pi, 721), key=lambda angle: height(robot, angle))
    brakes = pl.Brakes({name: none for name in robot.joints})
    result = pl.stop(robot, np.array([hanging + 3e-6]), np.zeros(1), brakes=brakes)
    assert result.outcome == "stopped" and static_excess(result) > 1e-6
    assert "falls" not in [finding.kind for finding in _judge(result, 0.1)]


def height(robot: pl.Mechanism, angle: float) -> float:
    data = robot.model.createData()
    return float(pin.computePotentialEnergy(robot.model, data, np.array([angle])))


@pytest.mark.parametrize("name", SHORT)
def test_a_few_cases_are_clean(name: str) -> None:
    campaign = CAMPAIGNS[name]
    cases = [campaign.judge(draw(campaign, 1, number)) for number in range(8)]
    findings = [finding for case in cases for finding in case.findings]
    assert [finding for finding in findings if finding.kind not in regressions.TIMED] == []
    assert len({case.name for case in cases}) > 2
    if name == "derivatives":
        assert {"same, on it", "same, off it"} <= {case.name for case in cases}


@pytest.mark.parametrize(("pole", "noise"), [(0.3, 0.0), (0.05, 0.0), (3e-3, 0.0), (3.0, 1e-9)])
def test_differences_know_their_error(pole: float, noise: float) -> None:
    """Of a function with a pole nearby, and of a noisy one."""
    found, error = _extrapolated(lambda x: 1.0 / (pole - x) + noise * np.sin(1e9 * x), 1)
    assert abs(float(found[0, 0]) * pole**2 - 1.0) <= max(10.0 * float(error[0]) * pole**2, 1e-12)


# -- what is wrong is noticed ---------------------------------------------------------------------


def kinds_of(name: str, data: Data) -> set[str]:
    return {finding.kind for finding in CAMPAIGNS[name].judge(data).findings}


def test_a_wrong_jump_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = pl.transition

    def wrong(*arguments: Any) -> pl.simulation.Transition:
        jump = right(*arguments)
        return replace(jump, v_plus=1.001 * jump.v_plus, energy_loss=-jump.energy_loss - 1e-3)

    data = {
        "robot": "planar_3r", "seed": 1, "regularized": False,
        "modes": [{"locks": [], "opened": []}, {"locks": [("joint_2", [])], "opened": []}],
    }  # fmt: skip
    assert kinds_of("locks", data) == set()
    monkeypatch.setattr(pl, "transition", wrong)
    assert kinds_of("locks", data) >= {"velocity", "energy", "energy rises", "energy of the jump"}


NUMBERS = count()


@pytest.mark.parametrize(
    ("part", "wrong", "kind"),
    [
        ("pl.diagnose", lambda right: lambda r: replace(right(r), mobility=9), "mobility"),
        (
            "pl.diagnose",
            lambda right: lambda r: replace(right(r), assembled=False),
            "not assembled",
        ),
        ("lost", lambda right: lambda *_: 1e-5, "row lost"),
        ("rank", lambda right: lambda _: next(NUMBERS), "rank"),
        ("dense", lambda right: lambda *a: (1.01 * right(*a)[0] + 1e-3, 0), "acceleration"),
        ("pl.simulate", lambda right: lambda *a, **b: leaking(right(*a, **b)), "energy"),
        ("pl.simulate", lambda right: lambda *a, **b: opening(right(*a, **b)), "open"),
    ],
)
def test_a_wrong_mechanism_is_noticed(
    part: str, wrong: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = {"kind": "four-bar", "seed": 1, "table": plain(mechanisms.four_bar()), "mobility": 1}
    owner: Any = pl if part.startswith("pl.") else campaign_of_mechanisms
    name = part.removeprefix("pl.")
    right = getattr(owner, name)
    monkeypatch.setattr(owner, name, wrong(right))
    assert kind in kinds_of("mechanisms", data)


def leaking(run: pl.Trajectory) -> pl.Trajectory:
    """With a velocity that it does not have."""
    v = run.v.copy()
    v[-1] *= 1.0001
    return replace(run, v=v)


def opening(run: pl.Trajectory) -> pl.Trajectory:
    """With a loop that opens."""
    q = run.q.copy()
    q[-1, 0] += 1e-6
    return replace(run, q=q)


def test_a_stop_that_ends_elsewhere_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    data = {"again": "arm", "seed": 1003}
    assert kinds_of("stops", data) == set()
    right = pl.stop
    monkeypatch.setattr(pl, "stop", lambda *a, **b: _elsewhere(right(*a, **b)))
    assert kinds_of("stops", data) == {"another end", "another time"}


def _elsewhere(stop: pl.StopResult) -> pl.StopResult:
    run = replace(stop.run, q=stop.run.q + 1e-5, t=stop.run.t + 1e-5)
    return replace(stop, run=run)


def test_a_file_that_takes_long_or_much_or_ends_in_a_traceback_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = {"kind": "urdf", "files": {"robot.urdf": {"text": "<robot/>"}}, "flags": {}}
    assert judge_apart(CAMPAIGNS["files"], data).findings == ()

    def load(*_: Any, **__: Any) -> None:
        np.ones(60_000_000)  # 480 MB
        begin = time.process_time()
        while time.process_time() < begin + 0.2:
            pass

    monkeypatch.setattr(campaign_of_files, "SECONDS", 0.1)
    monkeypatch.setattr(pl, "load", load)
    case = judge_apart(CAMPAIGNS["files"], data)
    assert {finding.kind for finding in case.findings} == {"slow", "memory"}
    nothing: dict[str, Any] = {}
    monkeypatch.setattr(pl, "load", lambda *_, **__: nothing["odd"])
    (finding,) = judge_apart(CAMPAIGNS["files"], data).findings
    assert finding == Finding("crash", "KeyError: 'odd' (test_soak.py, <lambda>)")
