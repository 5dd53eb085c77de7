"""`pinloop view`, and the command line as a program: signals, pipes, full disks."""

from __future__ import annotations

import os
import signal
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from pinloop.cli import main as cli

from ..fourbar_files import fourbar
from ..show.scenes import Played
from ..show.test_html import commands_of
from .commands import Captured, program

# -- view -----------------------------------------------------------------------------------


def played(path: Path) -> Played:
    page = Played(())
    for command in commands_of(path.read_text(encoding="utf-8")):
        page.handle(command)
    return page


def test_view_writes_a_page(robot: str, tmp_path: Path, capsys: Captured) -> None:
    target = tmp_path / "out.html"
    assert cli.run(["view", robot, "--html", str(target), "--q", "drive=-1.2"]) == 0
    assert capsys.readouterr() == (f"{target}\n", "")
    page = played(target)
    pins = {side: page.matrix(*page.below("loops", "closer", side)[0])[:3, 3] for side in "AB"}
    assert_allclose(pins["A"], pins["B"], atol=1e-9)
    # Crank of 0.3 at -1.2 about y: its end is at 0.3 (cos, 0, sin 1.2), the coupler is 0.6 long.
    knee = 0.3 * np.array([np.cos(1.2), 0, np.sin(1.2)])
    assert np.linalg.norm(pins["A"] - knee) == pytest.approx(0.6)
    assert np.linalg.norm(pins["B"] - (0.6, 0, 0)) == pytest.approx(0.4)


def test_view_shows_what_cannot_be_assembled(
    open_robot: str, tmp_path: Path, capsys: Captured
) -> None:
    target = tmp_path / "out.html"
    assert cli.run(["view", open_robot, "--html", str(target)]) == 1
    assert "NOT CLOSED: " in capsys.readouterr().err
    page = played(target)
    first, second = (page.matrix(*page.below("loops", "closer", s)[0])[:3, 3] for s in "AB")
    assert np.linalg.norm(first - second) == pytest.approx(0.2, abs=0.02)


def test_view_past_the_limits_if_asked(robot: str, tmp_path: Path, capsys: Captured) -> None:
    words = ["view", robot, "--q", "drive=-4", "--html", str(tmp_path / "out.html")]
    assert cli.run(words) == 2
    assert "limits" in capsys.readouterr().err
    assert cli.run([*words, "--ignore-limits"]) == 0


def test_view_tells_what_loading_left_out(tmp_path: Path, capsys: Captured) -> None:
    path = fourbar(tmp_path)
    path.write_text(path.read_text().replace("</robot>", "<gizmo/></robot>"))
    assert cli.run(["view", str(path), "--html", str(tmp_path / "out.html")]) == 0
    err = capsys.readouterr().err
    assert err.startswith("warning: ") and "gizmo" in err


def test_view_tells_which_mesh_it_cannot_read(tmp_path: Path, capsys: Captured) -> None:
    path = fourbar(tmp_path)
    visual = '<visual><geometry><mesh filename="x.stl"/></geometry></visual>'
    path.write_text(
        path.read_text().replace('<link name="base"/>', f'<link name="base">{visual}</link>')
    )
    (tmp_path / "x.stl").write_bytes(b"no mesh")
    assert cli.run(["view", str(path), "--html", str(tmp_path / "out.html")]) == 0
    err = capsys.readouterr().err
    assert err.startswith("warning: ") and "x.stl" in err and err.count("\n") == 1


# -- as a program ---------------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="signals of this kind exist on POSIX only")
@pytest.mark.parametrize(
    "number, code", [(signal.SIGINT, 0), (signal.SIGTERM, 128 + signal.SIGTERM)]
)
def test_a_live_view_ends_cleanly(robot: str, number: signal.Signals, code: int) -> None:
    with program("view", robot) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with urllib.request.urlopen(url, timeout=20) as answer:
            assert answer.status == 200
        assert "Ctrl-C" in process.stdout.readline()
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out, err) == (code, "", "")
        with pytest.raises(urllib.error.URLError):
            urllib.request.urlopen(url, timeout=20)


@pytest.mark.skipif(os.name == "nt", reason="pipes of this kind exist on POSIX only")
def test_nobody_reads_the_output(robot: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with program("check", robot, stdout=writer) as process:
        os.close(writer)
        _, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (141, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_the_disk_is_full(robot: str) -> None:
    with open("/dev/full", "w") as full, program("check", robot, stdout=full) as process:
        _, err = process.communicate(timeout=60)
        assert process.returncode == 2
        assert err.startswith("error: the output cannot be written") and err.count("\n") == 1


def test_an_output_that_knows_little_of_unicode(tmp_path: Path) -> None:
    path = fourbar(tmp_path, name="Gelenkärm")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    with program("check", str(path), env=environment) as process:
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, "")
        assert "Gelenk\\xe4rm" in out
