"""The brake file: what it may say, what it says when it cannot be, and that it comes back equal."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import pinloop as pl
from pinloop.boundary.yaml import read_yaml
from pinloop.safety.brakes.brakes import Brakes
from pinloop.safety.brakes.file import brakes_text
from pinloop.safety.brakes.joint_brake import (
    CHAIN_PARAMETERS,
    JOINT_PARAMETERS,
    Chain,
    JointBrake,
    Source,
)
from pinloop.safety.brakes.uncertainty import Correlation


def read(text: str, folder: Path) -> Brakes:
    path = folder / "x.brakes.yaml"
    path.write_text(text, encoding="utf-8")
    return Brakes.from_yaml(path)


HEAD = "format: pinloop-brakes-1\n"


# -- reading --------------------------------------------------------------------------------

FULL = """\
format: pinloop-brakes-1
robot: arm
source: published
chain:
  source: measured
  sensor: 0.01
  controller: {value: 0.02, source: guess, note: "two cycles"}
defaults:
  source: published
  gear_ratio: 100
  delay: {value: 0.03, note: "for all"}
  rise: {value: 0.02, source: measured, note: "for all"}
joints:
  one:
    kind: friction
    side: joint
    dynamic_torque: 3
    rise: 0.04
    coulomb: {value: 1e-1}
  two:
    source: guess
    delay: {value: 0.05, note: "slow"}
    static_torque: null
    efficiency: {value: 0.9, source: measured}
  three:
faults: [brake of one late by 0.01 s]
"""


def test_a_full_file(tmp_path: Path) -> None:
    brakes = read(FULL, tmp_path)
    assert brakes.robot == "arm"
    assert brakes.source == str(tmp_path / "x.brakes.yaml")
    assert brakes.faults == ("brake of one late by 0.01 s",)
    chain = {"sensor": "measured", "controller": "guess"}
    assert brakes.chain == Chain(0.01, 0.02, 0.0, chain, {"controller": "two cycles"})  # type: ignore[arg-type]
    shared: dict[str, Any] = {"gear_ratio": "published", "delay": "published", "rise": "measured"}
    notes = {"delay": "for all", "rise": "for all"}
    assert brakes.joints == {
        "one": JointBrake(
            side="joint",
            gear_ratio=100.0,
            dynamic_torque=3.0,
            delay=0.03,
            rise=0.04,
            coulomb=0.1,
            # The nearest source counts: of the number, of the joint, of the file; a number of the
            # joint brings neither source nor note of the default that it replaces.
            sources={
                **shared,
                **dict.fromkeys(("kind", "side", "dynamic_torque", "coulomb"), "published"),
                "rise": "published",
            },
            notes={"delay": "for all"},
        ),
        "two": JointBrake(
            gear_ratio=100.0,
            efficiency=0.9,
            delay=0.05,
            rise=0.02,
            sources={
                **shared,
                "delay": "guess",
                "static_torque": "guess",
                "efficiency": "measured",
            },
            notes={**notes, "delay": "slow"},
        ),
        "three": JointBrake(gear_ratio=100.0, delay=0.03, rise=0.02, sources=shared, notes=notes),
    }
    assert list(brakes.joints) == ["one", "two", "three"]


def test_numbers_without_sources_are_guesses(tmp_path: Path) -> None:
    brakes = read(HEAD + "joints: {one: {delay: 0.1}}\nchain:\ndefaults:", tmp_path)
    assert dict(brakes.joints["one"].sources) == {"delay": "guess"}
    assert (brakes.chain, brakes.robot, brakes.faults) == (Chain(), "", ())


def test_sources_of_earlier_versions_are_read(tmp_path: Path) -> None:
    joint = (
        "{delay: {value: 0.1, source: robot}, rise: {value: 0.1, source: datasheet}, coulomb: 1}"
    )
    brake = read(HEAD + f"source: assumed\njoints: {{one: {joint}}}", tmp_path).joints["one"]
    assert dict(brake.sources) == {"delay": "published", "rise": "published", "coulomb": "guess"}


def test_null_takes_the_default_of_all_joints_back(tmp_path: Path) -> None:
    text = HEAD + "defaults: {dynamic_torque: 2, static_torque: 3}\njoints:\n"
    brakes = read(text + "  one: {static_torque: null}\n  two: {dynamic_torque: 2.5}", tmp_path)
    assert brakes.joints["one"].static == 2.0
    assert brakes.joints["two"].static == 3.0


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("joints:\n  one:\n    dely: 3", 4, "joints.one.dely is not a known key; did you mean 'de"),
        ("joint: {one: {}}", 2, "joint is not a known key; did you mean 'joints'"),
        ("joints: {one: {}}\nchain:\n  sensr: 1", 4, "chain.sensr is not a known.*'sensor'"),
        ("joints: {one: {}}\ndefaults:\n  rse: 1", 4, "defaults.rse is not a known.*'rise'"),
        (
            "joints:\n  one:\n    delay:\n      valeu: 1",
            5,
            "joints.one.delay.valeu is not a known key; did you mean 'value'",
        ),
        ("joints:\n  one:\n    delay: {source: measured}", 4, "joints.one.delay.value is missing"),
        ("joints:\n  one:\n\n    delay: -1", 5, "joints.one.delay is -1: expected a number great"),
        ("joints:\n  one:\n    delay: {value: -1}", 4, "joints.one.delay.value is -1: expected a"),
        ("joints:\n  one:\n    delay: soon", 4, "joints.one.delay is 'soon': expected a number"),
        ("joints:\n  one:\n    delay: yes", 4, "delay is True: expected a number, not yes or no"),
        ("joints:\n  one:\n    delay: .inf", 4, "delay is inf: expected a finite number"),
        ("joints:\n  one:\n    delay: [1, 2]", 4, "joints.one.delay is .*: expected a number"),
        ("joints:\n  one:\n    delay: null", 4, "joints.one.delay is None: expected a number"),
        ("joints:\n  one:\n    efficiency: 1.1", 4, "less than or equal to 1"),
        ("joints:\n  one:\n    tolerance: 1.0", 4, "less than 1"),
        ("joints:\n  one:\n    gear_ratio: 0", 4, "greater than 0"),
        ("joints:\n  one:\n    kind: disc", 4, "kind is 'disc': expected 'friction', 'tooth'"),
        ("joints:\n  one:\n    side: 1", 4, "joints.one.side is 1: expected 'motor' or 'joint'"),
        (
            "joints:\n  one:\n    source: vendor",
            4,
            "is 'vendor': expected 'measured', 'published', 'f",
        ),
        ("joints:\n  one:\n    delay: {value: 1, note: 3}", 4, "note is 3: expected a text"),
        ("joints:\n  one: 3", 3, "joints.one is 3: expected a table"),
        ("joints: {one: {}}\nsource: vendor", 3, "source is 'vendor': expected 'measured'"),
        ("joints: {}", 2, "joints is {}: 0 items where 1 are needed"),
        ("joints:", 2, "joints is None: expected a table"),
        ("robot: arm", None, "joints is missing: parameters per joint"),
        ("joints: {1: {}}", 2, r"joints\[1\] is 1: expected a text"),
        ("joints: {one: {}, one: {}}", 2, "key 'one' is given twice"),
        ("joints:\n  one:\n\tdelay: 3", 4, "malformed YAML"),
        (
            "joints:\n  one:\n    dynamic_torque: 3\n    static_torque: 2",
            5,
            r"joints.one.static_torque is 2.0: must be at least dynamic_torque \(3\)",
        ),
        (
            "defaults:\n  static_torque: 2\njoints:\n  one:\n    dynamic_torque: 3",
            3,
            "joints.one.static_torque is 2.0",
        ),
        (
            "defaults:\n  static_torque: 9\n"
            "joints:\n  one:\n    dynamic_torque: 3\n    static_torque: 2",
            7,
            "joints.one.static_torque is 2.0",
        ),
        (
            "joints:\n  one:\n    coulomb: 1\n    breakaway: 0.5",
            5,
            "joints.one.breakaway is 0.5: must be at least coulomb",
        ),
        (
            "joints:\n  one: {}\n  two:\n    breakaway: 0.5",
            4,
            "joints.two.stribeck_speed is 0.0: must be above 0",
        ),
    ],
)
def test_bad_files(text: str, line: int | None, words: str, tmp_path: Path) -> None:
    with pytest.raises(pl.LoadError, match=words) as info:
        read(HEAD + text, tmp_path)
    assert info.value.source == str(tmp_path / "x.brakes.yaml")
    assert info.value.line == line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the document is None: expected a table"),
        ("- 3", "the document is .* expected a table"),
        ("joints: {one: {}}", "format is missing: version of this format"),
        ("format: pinloop-loops-1\njoints: {one: {}}", "expected 'pinloop-brakes-1'"),
    ],
)
def test_files_that_are_something_else(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(pl.LoadError, match=words):
        read(text, tmp_path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(pl.LoadError, match=r"absent.yaml: no such file"):
        Brakes.from_yaml(tmp_path / "absent.yaml")
    with pytest.raises(pl.LoadError, match="is a folder"):
        Brakes.from_yaml(tmp_path)
    with pytest.raises(pl.BadValue, match=r"brakes is None .*or pl\.Brakes\.template"):
        Brakes.from_yaml(None)  # type: ignore[arg-type]
    (tmp_path / "latin.yaml").write_bytes(HEAD.encode() + b"robot: \xe4rm")
    with pytest.raises(pl.LoadError, match="is not UTF-8 text"):
        Brakes.from_yaml(tmp_path / "latin.yaml")
    (tmp_path / "large.yaml").write_bytes(b"#" * (2**24 + 1))
    with pytest.raises(pl.LoadError, match="is larger than"):
        Brakes.from_yaml(tmp_path / "large.yaml")


@pytest.mark.parametrize("name", [n for n, p in JOINT_PARAMETERS.items() if not p.words])
def test_file_and_value_have_the_same_ranges(name: str, tmp_path: Path) -> None:
    """Two checks of one rule: what a file may say, a `JointBrake` may be."""
    # What two parameters may be together is another matter.
    with_it: dict[str, Any] = {"breakaway": {"stribeck_speed": 1.0}}.get(name, {})
    for value in (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, None):
        outcomes = []
        for make in (
            lambda value=value: JointBrake(**{name: value}, **with_it),
            lambda value=value: read(
                HEAD + json.dumps({"joints": {"one": {name: value, **with_it}}})[1:-1], tmp_path
            ),
        ):
            try:
                make()
                outcomes.append(True)
            except pl.PinloopError:
                outcomes.append(False)
        assert outcomes[0] == outcomes[1], value


# -- writing --------------------------------------------------------------------------------

names = st.one_of(
    st.sampled_from(
        ["joint_1", "yes", "null", "1", "1e3", "a: b", "# x", "<<", "", "~", " a", "-"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
).filter(bool)
numbers = st.floats(0, 1e6, allow_subnormal=False)
strict = st.floats(1e-9, 1e6)
sources = st.sampled_from(get_args(Source))
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@st.composite
def joint_brakes(draw: st.DrawFn) -> JointBrake:
    coulomb, dynamic = draw(numbers), draw(numbers)
    values: dict[str, Any] = {
        "kind": draw(st.sampled_from(["friction", "tooth", "none"])),
        "side": draw(st.sampled_from(["motor", "joint"])),
        "gear_ratio": draw(strict),
        "efficiency": draw(st.floats(1e-3, 1)),
        "rotor_inertia": draw(st.none() | numbers),
        "dynamic_torque": dynamic,
        "static_torque": draw(st.none() | st.floats(dynamic, 2e6)),
        "tolerance": draw(st.floats(0, 0.99)),
        "band": draw(st.floats(-1, 1)),
        "coulomb": coulomb,
        "breakaway": draw(st.none() | st.floats(coulomb, 2e6)),
        "stribeck_speed": draw(strict),
        "law": draw(st.sampled_from(["constant-time", "first-order", "constant-deceleration"])),
        "deceleration": draw(st.none() | strict),
        "ramp_time": draw(st.none() | strict),
        "torque_share": draw(st.floats(1e-3, 1)),
        "peak_gear_torque": draw(st.none() | strict),
        "tooth_offset": draw(st.floats(-1e6, 1e6)),
        "impact_time": draw(strict),
    }
    for name in ("delay", "rise", "viscous", "short_circuit", "pitch"):
        values[name] = draw(numbers)
    kept = draw(st.sets(st.sampled_from(sorted(values))))
    # Together with what they need.
    if "breakaway" in kept:
        kept |= {"coulomb", "stribeck_speed"}
    if "static_torque" in kept:
        kept |= {"dynamic_torque"}
    table = draw(st.dictionaries(st.sampled_from(list(JOINT_PARAMETERS)), sources, max_size=5))
    notes = draw(st.dictionaries(st.sampled_from(list(JOINT_PARAMETERS)), texts, max_size=3))
    return JointBrake(**{name: values[name] for name in kept}, sources=table, notes=notes)


@st.composite
def all_brakes(draw: st.DrawFn) -> Brakes:
    joints = draw(st.dictionaries(names, joint_brakes(), min_size=1, max_size=2))
    times: Any = draw(st.dictionaries(st.sampled_from(list(CHAIN_PARAMETERS)), numbers))
    known = st.sampled_from(list(CHAIN_PARAMETERS))
    chain = Chain(**times, sources=draw(st.dictionaries(known, sources)))
    faults = tuple(draw(st.lists(texts, max_size=2)))
    return Brakes(joints, chain, faults, draw(texts), draw(st.just("") | texts))


@settings(max_examples=60, deadline=None)
@given(all_brakes())
def test_a_file_comes_back_equal(tmp_path_factory: pytest.TempPathFactory, brakes: Brakes) -> None:
    path = tmp_path_factory.mktemp("b") / "x.yaml"
    assert brakes.to_yaml(path) == path
    again = Brakes.from_yaml(path)
    assert again == brakes
    assert list(again.joints) == list(brakes.joints)
    # Equal is not enough: who reads it must find the same numbers without our reader.
    plain = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert plain["source"] == "guess"
    assert set(plain["chain"]) == set(brakes.chain.sources)
    for name, brake in brakes.joints.items():
        entry = plain["joints"][name]
        given_here = set(brake.sources) | (
            {"band"} if brake.band or "band" in brake.notes else set()
        )
        assert set(entry) == given_here
        for key, cell in entry.items():
            table = cell if isinstance(cell, dict) else {"value": cell}
            assert table["value"] == getattr(brake, key)
            assert table.get("source", "guess") == brake.sources.get(key, "guess")
            assert table.get("note") == brake.notes.get(key)


def one_joint() -> Brakes:
    brake = JointBrake(
        gear_ratio=100.0,
        dynamic_torque=1e-5,
        delay=0.03,
        sources={"gear_ratio": "fitted", "delay": "published"},
        notes={"delay": "sheet 12", "dynamic_torque": "a guess"},
    )
    return Brakes({"joint_1": brake}, Chain(sensor=0.01), source="template", robot="arm")


def test_the_text_is_made_for_editing(tmp_path: Path) -> None:
    text = one_joint().to_yaml(tmp_path / "arm.brakes.yaml").read_text()
    head, _, body = text.partition(HEAD)
    assert "NOTHING IN THIS FILE IS CERTIFIED" in head and "Made from: template" in head
    assert all(line.startswith("#") for line in head.splitlines() if line)
    # The head explains every parameter with unit and default.
    for name, parameter in {**CHAIN_PARAMETERS, **JOINT_PARAMETERS}.items():
        (line,) = re.findall(rf"^#   {name} .*$", head, re.MULTILINE)
        assert parameter.meaning in line and parameter.unit in line
    lines = [line.strip() for line in body.splitlines()]
    expected = {
        "robot: arm": "",
        "source: guess": "# of every plain value below",
        "sensor: 0.01": "# s",
        "# controller: 0.0": "# s; not given",
        "gear_ratio: {value: 100.0, source: fitted}": "# - | rad/m",
        # With a point: YAML 1.1 takes 1e-05 for a word.
        'dynamic_torque: {value: 1.0e-05, note: "a guess"}': "# N m | N",
        "# static_torque: null": "# N m | N; not given: as dynamic_torque",
        'delay: {value: 0.03, source: published, note: "sheet 12"}': "# s",
        "# kind: friction": "# friction or tooth or none; not given",
        "# drive_torque: null": "# N m; not given: not limited",
    }
    for entry, comment in expected.items():
        (line,) = [line for line in lines if line.startswith(entry)]
        assert line.removeprefix(entry).strip() == comment
    # Teeth only where there are some.
    assert "impact_time" not in body
    teeth = Brakes({"a": JointBrake(kind="tooth")}).to_yaml(tmp_path / "t.yaml").read_text()
    assert "# impact_time: 0.001" in teeth and "# rise" not in teeth.partition(HEAD)[2]


def test_every_line_that_is_commented_out_shows_the_default() -> None:
    text = brakes_text(Brakes({"one": JointBrake(dynamic_torque=1.0)}))
    _, _, body = text.partition(HEAD)
    live = HEAD + re.sub(r"^( +)# (\w+:)", r"\1\2", body.replace("chain: {}", "chain:"), flags=re.M)
    data: Any = read_yaml(live, "x")
    friction = {name for name, p in JOINT_PARAMETERS.items() if "friction" in p.kinds}
    assert set(data["joints"]["one"]) == friction
    assert {**data["joints"]["one"], **data["chain"]} == {
        name: 1.0 if name == "dynamic_torque" else parameter.default
        for name, parameter in {**JOINT_PARAMETERS, **CHAIN_PARAMETERS}.items()
        if name in friction or name in CHAIN_PARAMETERS
    }


def test_names_stay_readable(tmp_path: Path) -> None:
    brakes = Brakes({"Gelenk für α": JointBrake(delay=0.1)}, robot="yes")
    text = brakes.to_yaml(tmp_path / "x.yaml").read_text(encoding="utf-8")
    assert '\n  "Gelenk für α":\n' in text and '\nrobot: "yes"\n' in text


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(pl.BadValue, match="cannot be written: there is no folder"):
        one_joint().to_yaml(tmp_path / "absent" / "x.yaml")
    with pytest.raises(pl.BadValue, match="there are no brakes"):
        Brakes({}).to_yaml(tmp_path / "x.yaml")
    assert not (tmp_path / "x.yaml").exists()


def test_spreads_and_correlations_come_back(tmp_path: Path) -> None:
    joint = JointBrake(
        dynamic_torque=9.0, delay=0.04, spreads={"dynamic_torque": 0.5, "delay": 0.002}
    )
    pairs = (Correlation(("dynamic_torque:a", "sensor"), -0.5),)
    chain = Chain(sensor=0.01, spreads={"sensor": 0.001})
    brakes = Brakes({"a": joint}, chain, correlations=pairs)
    path = brakes.to_yaml(tmp_path / "x.brakes.yaml")
    assert Brakes.from_yaml(path) == brakes
    text = path.read_text(encoding="utf-8")
    assert "delay: {value: 0.04, spread: 0.002}" in text
    path.write_text(text.replace("sensor]", "drive_off]").replace('"sensor"', '"drive_off"'))
    with pytest.raises(pl.LoadError, match=r"number with a spread 'drive_off'") as caught:
        Brakes.from_yaml(path)
    assert caught.value.line is not None
