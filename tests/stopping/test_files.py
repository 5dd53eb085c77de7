"""Files of results: whole or not there; links, permissions and devices stay what they are."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

import pinloop as pl
from pinloop.stopping.files import written_whole

from .robots_to_stop import on_axis, wheel


def write(path: Path, text: str) -> None:
    with written_whole(path) as file:
        file.write(text)


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
    with pytest.raises(KeyboardInterrupt), written_whole(target) as file:
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
