"""What the documents say: every example is loaded, every number compared, every link followed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import pinloop as pl
from pinloop import cli

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FORMATS = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")

_BLOCK = re.compile(r"(?:<!-- ([^\n]*) -->\n)?```(\w+)\n(.*?)```", re.DOTALL)


def blocks(text: str, language: str) -> list[str]:
    return [body for _, found, body in _BLOCK.findall(text) if found == language]


EXAMPLES = [
    pytest.param(note, body, id=f"line {FORMATS[: FORMATS.index(body)].count(chr(10))}")
    for note, language, body in _BLOCK.findall(FORMATS)
    if language != "python"
]
TREE = next(body for note, _, body in _BLOCK.findall(FORMATS) if note == "file: bars.urdf")


@pytest.mark.parametrize("note, body", EXAMPLES)
@pytest.mark.filterwarnings("error")
def test_every_example_of_a_format_is_the_linkage(note: str, body: str, tmp_path: Path) -> None:
    (tmp_path / "bars.urdf").write_text(TREE)
    what = re.fullmatch(
        r"(?:file: (?P<file>\S+)|in: bars\.urdf|beside: bars\.urdf as (?P<beside>[\w.]+))"
        r"(?:, freedoms (?P<freedoms>\d))?",
        note,
    )
    assert what is not None, f"an example needs a note that says where it belongs, not {note!r}"
    path = tmp_path / (what["file"] or "bars.urdf")
    if what["file"]:
        path.write_text(body)
    elif what["beside"]:
        (tmp_path / what["beside"]).write_text(body)
    else:
        path.write_text(TREE.replace("</robot>", f"{body}</robot>"))
    report = pl.diagnose(pl.load(path, kinematics_only=True))
    assert report.assembled
    # A parallelogram has one freedom; the tree alone, which is the first example, three.
    tree = body == TREE
    assert report.mobility == int(what["freedoms"] or (3 if tree else 1))
    # Nothing but what the text says of the example: no masses, a pair or a cut not told.
    told = ("has no mass", "SDF's default", "joined by a spherical pair", "has a second parent")
    assert not [text for text in report.warnings if not any(part in text for part in told)]


def test_all_thirteen_formats_have_an_example() -> None:
    sections = re.split(r"^## ", FORMATS, flags=re.MULTILINE)[1:]
    numbers = [int(section.partition(".")[0]) for section in sections if section[0].isdigit()]
    assert numbers == list(range(1, 14))
    assert all("```" in section for section in sections)


def test_the_example_of_objects_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (program,) = blocks(FORMATS, "python")
    (tmp_path / "bars.urdf").write_text(TREE)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(program, names)
    robot = names["robot"]
    assert isinstance(robot, pl.Mechanism)
    assert pl.diagnose(robot).mobility == 1


# -- README ---------------------------------------------------------------------------------


def test_the_two_commands_stand_alone_in_their_blocks() -> None:
    commands = [body for body in blocks(README, "sh") if body.startswith("pip install")]
    assert commands == [
        "pip install . && pinloop stop urdf/six_axis_arm.urdf\n",
        "pip install '.[test]' && pytest\n",
    ]


def test_the_program_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program, _ = blocks(README, "python")
    (tmp_path / "urdf").symlink_to(ROOT / "urdf")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(program, names)
    assert "palletizer" in capsys.readouterr().out
    assert (tmp_path / "palletizer.html").stat().st_size > 500_000
    robot, smaller = names["robot"], names["smaller"]
    assert isinstance(robot, pl.Mechanism) and isinstance(smaller, pl.Mechanism)
    assert (len(pl.Constraints(robot)), len(pl.Constraints(smaller))) == (15, 6)


def test_the_stop_prints_what_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, program = blocks(README, "python")
    (shown,) = blocks(README, "text")
    monkeypatch.chdir(ROOT)
    exec(program, {})
    # What is lost in the balance is rounding, and differs from one machine to the next.
    printed, shown = (re.sub(r"(closure error.*) \S+\n", r"\1\n", text) for text in
                      (capsys.readouterr().out, shown))  # fmt: skip
    above, below = shown.split("  ...\n")
    assert printed.startswith(above)
    assert printed.endswith(below)


def test_the_other_commands_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [line for body in blocks(README, "sh") for line in body.splitlines()]
    commands = [line for line in lines if line.startswith("pinloop ")]
    assert len(commands) == 5
    (tmp_path / "urdf").symlink_to(ROOT / "urdf")
    monkeypatch.chdir(tmp_path)
    for command in commands:
        assert cli.run(shlex.split(command)[1:]) == 0
    assert capsys.readouterr().err == ""


def test_the_loop_joint_is_one_of_the_robot() -> None:
    (element,) = blocks(README, "xml")
    shipped = (ROOT / "urdf" / "palletizer.urdf").read_text(encoding="utf-8")
    assert re.sub(r"\s+", " ", element.strip()) in re.sub(r"\s+", " ", shipped)


def test_the_table_of_robots_is_complete_and_right() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| [^|]+ \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", README, re.MULTILINE
    )
    assert [row[0] for row in rows] == sorted(path.stem for path in (ROOT / "urdf").glob("*.urdf"))
    for name, *numbers in rows:
        report = pl.diagnose(pl.load(ROOT / "urdf" / f"{name}.urdf"))
        facts = (len(report.loops), report.rows, report.reduced_rows, report.mobility)
        assert tuple(map(int, numbers)) == facts, name


@pytest.mark.parametrize("path", ["README.md", "docs/formats.md", "docs/notation.md"])
def test_links_lead_somewhere(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert ((ROOT / path).parent / target).exists(), target
