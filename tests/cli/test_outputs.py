"""What commands write to: a pipe or a device that is named is written to, and stays what it is."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

import pinloop as pl
from pinloop.cli import main as cli

from .commands import Captured

SPEED = ["--q", "drive=0.4", "--speed", "drive=1"]
WRITING: dict[str, tuple[list[str], str]] = {
    "regularize": (["regularize", "{robot}", "-o", "{out}"], ".urdf"),
    "convert": (["convert", "{robot}", "{out}"], ".xml"),
    "view": (["view", "{robot}", "--no-browser", "--html", "{out}"], ".html"),
    "brakes": (["brakes", "init", "{robot}", "-o", "{out}"], ".yaml"),
    "simulate": (["simulate", "{scenario}", "-o", "{out}"], ".npz"),
    "play": (["play", "{run}", "--no-browser", "--html", "{out}"], ".html"),
    "stop page": (["stop", "{robot}", *SPEED, "--html", "{out}"], ".html"),
    "stop table": (["stop", "{robot}", *SPEED, "--csv", "{out}"], ".csv"),
    "study": (["study", "{study}", "--html", "{out}"], ".html"),
}


@pytest.fixture
def files(robot: str, tmp_path: Path) -> dict[str, str]:
    machine = pl.load(robot)
    run = pl.simulate(machine, pl.assemble(machine), until=0.002).save(tmp_path / "run.npz")
    space = {"speed": {"drive": 1.0}}
    plans: dict[str, dict[str, Any]] = {
        "scenario": {"until": 0.002},
        "study": {"space": space, "sampling": {"method": "grid", "count": 1}, "jobs": 1},
    }
    written = {"robot": robot, "run": str(run)}
    for name, plan in plans.items():
        file = tmp_path / f"a.{name}.yaml"
        file.write_text(yaml.safe_dump({"format": f"pinloop-{name}-1", "robot": robot} | plan))
        written[name] = str(file)
    return written


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
@pytest.mark.parametrize("name", WRITING)
def test_a_full_device_is_told_and_stays(
    name: str, files: dict[str, str], tmp_path: Path, capsys: Captured
) -> None:
    words, suffix = WRITING[name]
    out = tmp_path / f"out{suffix}"
    out.symlink_to("/dev/full")
    assert cli.run([word.format(out=out, **files) for word in words]) == 2
    assert "cannot be written: no space left on device" in capsys.readouterr().err
    assert os.readlink(out) == "/dev/full" and not list(tmp_path.glob(".pinloop-*"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
@pytest.mark.parametrize("name", WRITING)
def test_a_pipe_gets_what_a_file_would(name: str, files: dict[str, str], tmp_path: Path) -> None:
    words, suffix = WRITING[name]
    out = tmp_path / f"out{suffix}"
    os.mkfifo(out)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(out.read_bytes()), daemon=True)
    reader.start()
    # 1: a case of the study did not end at rest.
    assert cli.run([word.format(out=out, **files) for word in words]) in (0, 1)
    reader.join(timeout=20)
    assert out.is_fifo() and len(got) == 1 and len(got[0]) > 500
