"""Files: read up to a size, pipes too; written whole or not at all, and devices stay devices."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

import pinloop as pl
from pinloop.boundary import files
from pinloop.boundary.files import read_bytes, replace_text_file, write_text

from ..safety.stopping.robots_to_stop import on_axis, wheel


def write(path: Path, text: str) -> None:
    write_text(path, text)


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "stop.json"
    write(target, "old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(pl.BadValue, match=r"stop\.json cannot be written: no space left"):
        write(target, "new")
    assert target.read_text() == "old" and list(tmp_path.iterdir()) == [target]


def test_an_interrupt_leaves_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "stop.json"
    write(target, "old")
    with pytest.raises(KeyboardInterrupt), replace_text_file(target) as file:
        file.write("ne")
        raise KeyboardInterrupt
    assert target.read_text() == "old" and list(tmp_path.iterdir()) == [target]


@pytest.mark.skipif(os.name == "nt", reason="permissions and links of POSIX")
def test_permissions_and_links_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    write(real, "old")
    plain = tmp_path / "plain"
    plain.write_text("")
    assert stat.S_IMODE(real.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    real.chmod(0o640)
    link.symlink_to(real)
    write(link, "new")
    assert link.is_symlink() and real.read_text() == "new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


@pytest.mark.skipif(os.name == "nt", reason="pipes of this kind exist on POSIX only")
def test_a_named_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    """Stands for all that is no plain file; no test may touch a device."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(pipe, "text")
        assert pipe.is_fifo() and os.read(reader, 99) == b"text"
    finally:
        os.close(reader)
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.mark.parametrize("name", ["nowhere/x.csv", ".", "x" * 300, "nul\0byte"])
def test_paths_that_cannot_be_written(name: str, tmp_path: Path) -> None:
    robot = wheel()
    result = pl.stop(robot, robot.neutral, [3.0], brakes=on_axis(dynamic_torque=4.0))
    for call in (result.to_csv, result.save_json):
        with pytest.raises(pl.BadValue, match=r"cannot be written|is a folder"):
            call(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


# -- reading --------------------------------------------------------------------------------------


def test_a_file_is_read_up_to_its_size(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 2**20)
    assert read_bytes(path, "note", 2**20) == b"x" * 2**20
    path.write_bytes(b"x" * (2**20 + 1))
    with pytest.raises(pl.LoadError, match=r"file: is larger than 1 MiB; this is no note"):
        read_bytes(path, "note", 2**20)


@pytest.mark.skipif(os.name == "nt", reason="pipes of this kind exist on POSIX only")
def test_a_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "robot.urdf"
    os.mkfifo(pipe)
    text = '<robot name="piped"><link name="base"/></robot>'
    writer = threading.Thread(target=pipe.write_text, args=(text,))
    writer.start()
    assert pl.load(pipe).name == "piped"
    writer.join()


@pytest.mark.skipif(os.name == "nt", reason="pipes and devices of POSIX")
def test_nothing_waits_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    monkeypatch.setattr(files, "_PATIENCE", 0.05)
    # Whatever reads a file.
    for read in (
        pl.load, pl.from_screws, pl.load_scenario, pl.load_trajectory, pl.Brakes.from_yaml,
        pl.safety.JointTrajectory.from_csv, pl.safety.StoppingTable.from_csv,
    ):  # fmt: skip
        with pytest.raises(pl.PinloopError, match=r"nothing was written for 0\.05 s"):
            read(pipe)
        for device in ("/dev/zero", "/dev/null"):
            with pytest.raises(pl.PinloopError, match="is a device"):
                read(device)
