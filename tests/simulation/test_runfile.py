"""Saved runs that are damaged: they load as the same run, or are refused when they are loaded."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pinloop as pl

from ..fourbar_files import fourbar

Members = dict[str, Any]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> pl.Trajectory:
    robot = pl.load(fourbar(tmp_path_factory.mktemp("robot")))
    start = robot.joints[0]
    return pl.simulate(robot, pl.assemble(robot), events=[pl.lock(start, at=0.01)], until=0.02)


@pytest.fixture
def file(run: pl.Trajectory, tmp_path: Path) -> Path:
    return run.save(tmp_path / "run.npz")


def same(there: pl.Trajectory, here: pl.Trajectory) -> bool:
    arrays = ("t", "q", "v", "a", "psi", "mode")
    return (
        all(np.array_equal(getattr(there, name), getattr(here, name)) for name in arrays)
        and there.modes == here.modes
        and there.events == here.events
        and there.message == here.message
    )


def loads_or_is_refused(path: Path, run: pl.Trajectory) -> bool:
    try:
        assert same(pl.load_trajectory(path), run)
    except pl.LoadError as error:
        assert str(path) in str(error) and len(str(error)) < 1000
        return False
    return True


def test_flipped_and_missing_bytes(file: Path, run: pl.Trajectory) -> None:
    whole = file.read_bytes()
    random = np.random.default_rng(0)
    assert loads_or_is_refused(file, run)
    for place in random.choice(len(whole), 250, replace=False):
        changed = bytearray(whole)
        changed[place] ^= int(random.integers(1, 256))
        file.write_bytes(changed)
        loads_or_is_refused(file, run)
    for size in random.choice(len(whole), 30, replace=False):
        file.write_bytes(whole[:size])
        assert not loads_or_is_refused(file, run)


def set_part(name: str, index: Any, value: float) -> Callable[[Members], None]:
    def change(members: Members) -> None:
        members[name] = members[name].copy()
        members[name][index] = value

    return change


def in_header(**changes: Any) -> Callable[[Members], None]:
    def change(members: Members) -> None:
        members["robot"] = np.array(json.dumps(json.loads(str(members["robot"])) | changes))

    return change


BOMB = "a0: &a0 [1]\n" + "".join(f"a{k}: &a{k} [{'*a' + str(k - 1) + ', '}*a{k - 1}]\n"
                                for k in range(1, 60))  # fmt: skip

CHANGES: dict[str, Callable[[Members], object]] = {
    "no number": set_part("q", (1, 0), np.nan),
    "endless": set_part("v", (1, 0), np.inf),
    "hardly a number": set_part("t", -1, 1e300),
    "back in time": set_part("t", 3, -1.0),
    "a mode that is not there": set_part("mode", 1, 7),
    "a negative mode": set_part("mode", 1, -1),
    "another value": set_part("q", (1, 0), 0.123),
    "too short": lambda m: m.update(t=m["t"][:-1]),
    "nothing": lambda m: m.update({k: m[k][:0] for k in ("t", "q", "v", "a", "psi", "mode")}),
    "too narrow": lambda m: m.update(q=m["q"][:, 1:]),
    "swapped": lambda m: m.update(q=m["v"], v=m["q"]),
    "other numbers": lambda m: m.update(q=m["q"].astype(np.float32)),
    "words": lambda m: m.update(q=m["q"].astype(str)),
    "complex": lambda m: m.update(q=m["q"].astype(complex)),
    "modes as floats": lambda m: m.update(mode=m["mode"].astype(float)),
    "one number": lambda m: m.update(t=np.array(1.0)),
    "more": lambda m: m.update(more=np.zeros(3)),
    "fewer": lambda m: m.pop("psi"),
    "a header of numbers": lambda m: m.update(robot=np.zeros(3)),
    "no digest": lambda m: m.pop("sha256"),
    "a path": in_header(urdf="/dev/zero"),
    "no robot": in_header(urdf="<robot/>"),
    "loops without end": in_header(loops=BOMB),
    "loops of numbers": in_header(loops="3"),
    "loops of code": in_header(loops="!!python/object/apply:os.system [ls]"),
    "an unknown lock": in_header(modes=[{"locks": [["x", [], ""]], "opened": []}] * 2),
    "an unknown loop": in_header(modes=[{"locks": [], "opened": ["x"]}] * 2),
    "modes of numbers": in_header(modes=3),
    "a limit of nothing": in_header(limits_passed=[{}]),
    "events without time": in_header(events=[["x", "y"]]),
    "evaluations below zero": in_header(evaluations=-1),
    "an early version": in_header(format="pinloop-trajectory-0"),
}


@pytest.mark.parametrize("sealed", [False, True], ids=["digest of before", "no digest"])
@pytest.mark.parametrize("name", CHANGES)
def test_contents_that_were_changed(
    name: str, sealed: bool, file: Path, run: pl.Trajectory
) -> None:
    members = dict(np.load(file))
    if sealed:  # as runs were saved before there was a digest
        del members["sha256"]
        in_header(format="pinloop-trajectory-1")(members)
    if name == "no digest" and sealed:
        return
    CHANGES[name](members)
    np.savez(file, **members)
    if sealed and name in ("another value", "swapped"):
        return  # nothing tells
    assert not loads_or_is_refused(file, run)


def test_runs_of_before_still_load(file: Path, run: pl.Trajectory) -> None:
    members = dict(np.load(file))
    del members["sha256"]
    in_header(format="pinloop-trajectory-1")(members)
    members["q"] = np.asfortranarray(members["q"])
    np.savez(file, **members)
    assert loads_or_is_refused(file, run)


@pytest.mark.parametrize("shape", ["(10**12,)", "(1000000000000,)", "(-1, 3)", "(3,", "('a',)"])
def test_headers_that_promise_too_much(shape: str, file: Path, run: pl.Trajectory) -> None:
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (118 - len(head) % 64) + "\n"
    raw = b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode()
    with zipfile.ZipFile(file) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in (contents | {"t.npy": raw}).items():
            archive.writestr(name, content)
    assert not loads_or_is_refused(file, run)


def test_an_archive_that_unpacks_to_much_more(file: Path, run: pl.Trajectory) -> None:
    block = bytes(2**24)
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("t.npy", "w", force_zip64=True) as member,
    ):
        for _ in range(65):
            member.write(block)
    assert file.stat().st_size < 2**21
    assert not loads_or_is_refused(file, run)
