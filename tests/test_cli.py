"""The command line: output, exit codes, and that no mistake ends in a traceback."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import pinloop as pl
from pinloop import cli
from tests.view.scenes import Played
from tests.view.test_html import commands_of

LINK = """<link name="{0}"><inertial><mass value="1"/>
  <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>"""

HINGE = """<joint name="{name}" type="revolute"><origin xyz="{x} 0 0"/>
  <parent link="{parent}"/><child link="{child}"/><axis xyz="0 1 0"/>
  <limit lower="-3" upper="3" velocity="1" effort="1"/></joint>"""

LOOP = """<loop_joint name="closer" type="revolute"><axis xyz="0 1 0"/>
  <link1 link="coupler" xyz="{reach} 0 0"/><link2 link="rocker" xyz="0 0 0.4"/></loop_joint>"""


def fourbar(folder: Path, *, reach: float = 0.6, loop: bool = True, name: str = "bars") -> Path:
    """A four-bar in the xz plane that is open at neutral: rocker upright at x = 0.6.

    Crank 0.3 and coupler ``reach`` along x; the loop closes unless the bars are too short.
    """
    parts = [
        f'<robot name="{name}"><link name="base"/>',
        *(LINK.format(link) for link in ("crank", "coupler", "rocker")),
        HINGE.format(name="drive", x=0, parent="base", child="crank"),
        HINGE.format(name="knee", x=0.3, parent="crank", child="coupler"),
        HINGE.format(name="swing", x=0.6, parent="base", child="rocker"),
        LOOP.format(reach=reach) if loop else "",
        "</robot>",
    ]
    path = folder / f"{name.replace('/', '')}.urdf"
    path.write_text("\n".join(parts), encoding="utf-8")
    return path


@pytest.fixture
def robot(tmp_path: Path) -> str:
    return str(fourbar(tmp_path))


@pytest.fixture
def apart(tmp_path: Path) -> str:
    """The coupler ends 1.2 to 1.8 from the crank's axis, the rocker 0.2 to 1.0: 0.2 too far."""
    return str(fourbar(tmp_path, reach=1.5, name="apart"))


Captured = pytest.CaptureFixture[str]


# -- check ----------------------------------------------------------------------------------


def test_check_prints_the_report(robot: str, capsys: Captured) -> None:
    assert cli.run(["check", robot]) == 0
    out, err = capsys.readouterr()
    assert out == f"{pl.diagnose(pl.load(robot))}\n"
    assert err == ""
    assert "\x1b" not in out


def test_check_as_json(robot: str, capsys: Captured) -> None:
    assert cli.run(["check", robot, "--json"]) == 0
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert err == ""
    assert set(report) == {field.name for field in fields(pl.Diagnosis)}
    # 3 coordinates, 5 rows of a revolute loop of which a planar mechanism needs 2.
    assert (report["nv"], report["rows"], report["rank"], report["mobility"]) == (3, 5, 2, 1)
    assert report["assembled"] is True
    assert report["loops"][0]["bodies"] == ["coupler", "rocker"]
    assert len(report["ranks"]) == 7


def test_check_a_robot_that_cannot_be_assembled(apart: str, capsys: Captured) -> None:
    assert cli.run(["check", apart]) == 1
    assert "NOT CLOSED" in capsys.readouterr().out
    assert cli.run(["check", apart, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["assembled"] is False


def test_samples_and_seed_arrive(
    robot: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, int] = {}

    def noted(mechanism: pl.Mechanism, **options: int) -> pl.Diagnosis:
        seen.update(options)
        return pl.diagnose(mechanism, **options)

    monkeypatch.setattr(cli, "diagnose", noted)
    assert cli.run(["check", robot, "--samples", "2", "--seed", "5", "--json"]) == 0
    assert seen == {"samples": 2, "seed": 5}
    assert len(json.loads(capsys.readouterr().out)["ranks"]) == 3


def test_loops_come_from_a_file_elsewhere(tmp_path: Path, capsys: Captured) -> None:
    tree = fourbar(tmp_path, loop=False)
    loops = tmp_path / "elsewhere.yaml"
    loops.write_text(
        """loops:
  - name: closer
    pair: revolute
    axis: [0, 1, 0]
    a: {body: coupler, xyz: [0.6, 0, 0]}
    b: {body: rocker, xyz: [0, 0, 0.4]}
"""
    )
    assert cli.run(["check", str(tree), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mobility"] == 3
    assert cli.run(["check", str(tree), "--loops", str(loops), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mobility"] == 1


def test_floating_base(robot: str, capsys: Captured) -> None:
    assert cli.run(["check", robot, "--floating-base", "--kinematics-only", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mobility"] == 7


def test_links_without_mass(tmp_path: Path, capsys: Captured) -> None:
    path = fourbar(tmp_path)
    path.write_text(re.sub(r"<inertial>.*?</inertial>", "", path.read_text(), flags=re.DOTALL))
    assert cli.run(["check", str(path)]) == 2
    assert "mass" in capsys.readouterr().err
    assert cli.run(["check", str(path), "--kinematics-only"]) == 0


def test_package_folders(tmp_path: Path, capsys: Captured) -> None:
    path = fourbar(tmp_path)
    visual = '<visual><geometry><mesh filename="package://parts/x.stl"/></geometry></visual>'
    path.write_text(
        path.read_text().replace('<link name="base"/>', f'<link name="base">{visual}</link>')
    )
    (tmp_path / "store" / "parts").mkdir(parents=True)
    (tmp_path / "store" / "parts" / "x.stl").write_bytes(b"")
    assert cli.run(["check", str(path)]) == 0
    assert "warning" in capsys.readouterr().out
    assert cli.run(["check", str(path), "--package-dir", str(tmp_path / "store")]) == 0
    assert "warning" not in capsys.readouterr().out


# -- on a terminal --------------------------------------------------------------------------


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "200")


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.usefixtures("terminal")
def test_tables_say_what_the_plain_report_says(robot: str, capsys: Captured) -> None:
    assert cli.run(["check", robot]) == 0
    out = capsys.readouterr().out
    assert "\x1b[" in out and "╭" in out
    report = pl.diagnose(pl.load(robot))
    labels = [line[2:18].strip() for line in str(report).splitlines()[1:11]]
    assert labels[0] == "bodies" and labels[-1] == "closure"
    text = plain(out)
    for label in labels:
        assert f"│ {label}" in text
    for fact in ("3 moving, nq = 3, nv = 3", "1 degrees of freedom", "coupler - rocker", "closer"):
        assert fact in text
    for loop in report.loops:
        assert f"{loop.neutral_error:.1e}" in text
        assert ", ".join(loop.joints) in text


@pytest.mark.usefixtures("terminal")
def test_what_is_wrong_is_seen(apart: str, capsys: Captured) -> None:
    assert cli.run(["check", apart]) == 1
    out = capsys.readouterr().out
    assert "\x1b[1;31mNOT CLOSED" in out
    assert "\x1b[33mwarning: " in out


@pytest.mark.usefixtures("terminal")
def test_names_are_not_taken_for_markup(tmp_path: Path, capsys: Captured) -> None:
    path = fourbar(tmp_path, name="[bold]bars[/bold]")
    path.write_text(path.read_text().replace('"closer"', '"[red]closer[/red]"'))
    assert cli.run(["check", str(path)]) == 0
    text = plain(capsys.readouterr().out)
    assert "[bold]bars[/bold]" in text
    assert "[red]closer[/red]" in text


# -- mistakes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words, part",
    [
        (["check", "nowhere.urdf"], "nowhere.urdf: no such file"),
        (["check", "."], "is a folder"),
        (["check"], "FILE"),
        (["check", "{robot}", "--samples", "many"], "--samples"),
        (["check", "{robot}", "--samples", "-1"], "--samples"),
        (["check", "{robot}", "--loops", "nowhere.yaml"], "nowhere.yaml: no such file"),
        (["check", "{robot}", "--no-such-option"], "--no-such-option"),
        (["chek", "{robot}"], "chek"),
        (["view", "{robot}", "--html", "{out}", "--q", "drive"], "drive"),
        (["view", "{robot}", "--html", "{out}", "--q", "drive=fast"], "drive=fast"),
        (["view", "{robot}", "--html", "{out}", "--q", "drvie=0.1"], "did you mean 'drive'"),
        (["view", "{robot}", "--html", "{out}", "--q", "drive=5"], "limits"),
        (["view", "{robot}", "--html", "{out}", "--q", "drive=nan"], "finite"),
        (["view", "{robot}", "--html", "/nowhere/x.html"], "/nowhere/x.html cannot be written"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    robot: str, tmp_path: Path, capsys: Captured, words: list[str], part: str
) -> None:
    words = [word.format(robot=robot, out=tmp_path / "out.html") for word in words]
    assert cli.run(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert part.lower() in err.lower()
    assert err.count("\n") == 1


def test_mistakes_as_json(tmp_path: Path, capsys: Captured) -> None:
    broken = tmp_path / "broken.urdf"
    broken.write_text("<robot name='x'>\n<link")
    assert cli.run(["check", str(broken), "--json"]) == 2
    out, err = capsys.readouterr()
    assert "broken.urdf" in json.loads(out)["error"]
    assert err == f"error: {json.loads(out)['error']}\n"


@pytest.mark.parametrize("where", ["load", "get_command"])
def test_an_interrupt_is_not_a_traceback(
    robot: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, where, interrupted)
    assert cli.run(["check", robot]) == 130
    assert capsys.readouterr() == ("", "")


def test_a_defect_is_not_taken_for_an_answer(
    robot: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("of our own")

    monkeypatch.setattr(cli, "load", broken)
    assert cli.run(["check", robot]) == 70
    assert "ZeroDivisionError: of our own" in capsys.readouterr().err


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


def test_view_shows_what_cannot_be_assembled(apart: str, tmp_path: Path, capsys: Captured) -> None:
    target = tmp_path / "out.html"
    assert cli.run(["view", apart, "--html", str(target)]) == 1
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


@contextmanager
def program(*words: str, **more: object) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "pinloop.cli", *words],
        **{
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
            "env": {**os.environ, "PYTHONUNBUFFERED": ""},
            **more,
        },  # type: ignore[call-overload]
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


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


# -- help -----------------------------------------------------------------------------------


def test_version(capsys: Captured) -> None:
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out == f"pinloop {pl.__version__}\n"


@pytest.mark.parametrize("words", [[], ["--help"], ["check", "--help"], ["view", "--help"]])
def test_help_has_an_example(words: list[str], capsys: Captured) -> None:
    assert cli.run(words) == 0
    out = capsys.readouterr().out
    assert "Usage: pinloop" in out
    assert re.search(r"Example: pinloop (check|view) urdf/\w+\.urdf", out)


def test_the_shell_can_complete_commands(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_PINLOOP_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "pinloop ch")
    monkeypatch.setenv("COMP_CWORD", "1")
    with pytest.raises(SystemExit):
        cli.run([])
    assert capsys.readouterr().out.split() == ["check"]
