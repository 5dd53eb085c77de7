"""What the documents say: every program and command is run, every example loaded, every number
compared, every link followed."""

from __future__ import annotations

import importlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.show.scene.solids import meshcat

from .. import rounded
from ..pages import blocks as fenced
from ..pages import run_page
from ..show.browser import end_server

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FORMATS = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")

_BLOCK = re.compile(r"(?:<!-- ([^\n]*) -->\n)?```(\w+)\n(.*?)```", re.DOTALL)


def blocks(text: str, language: str) -> list[str]:
    return [body for _, found, body in _BLOCK.findall(text) if found == language]


EXAMPLES = [
    pytest.param(note, body, id=f"line {FORMATS[: FORMATS.index(body)].count(chr(10))}")
    for note, language, body in _BLOCK.findall(FORMATS)
    if language not in ("python", "text")
]
TREE = next(body for note, _, body in _BLOCK.findall(FORMATS) if note == "file: bars.urdf")


def _said(note: str) -> re.Match[str]:
    """What the note over an example says: where it belongs, and how many freedoms it has."""
    what = re.fullmatch(
        r"(?:file: (?P<file>\S+)|in: bars\.urdf|beside: bars\.urdf as (?P<beside>[\w.]+))"
        r"(?:, freedoms (?P<freedoms>\d))?",
        note,
    )
    assert what is not None, f"an example needs a note that says where it belongs, not {note!r}"
    return what


def written_example(note: str, body: str, folder: Path) -> Path:
    """Write an example with what it needs; returns the path of the robot."""
    (folder / "bars.urdf").write_text(TREE)
    what = _said(note)
    path = folder / (what["file"] or "bars.urdf")
    if what["file"]:
        path.write_text(body)
    elif what["beside"]:
        (folder / what["beside"]).write_text(body)
    else:
        path.write_text(TREE.replace("</robot>", f"{body}</robot>"))
    return path


@pytest.mark.parametrize("note, body", EXAMPLES)
@pytest.mark.filterwarnings("error")
def test_every_example_of_a_format_is_the_linkage(note: str, body: str, tmp_path: Path) -> None:
    what, path = _said(note), written_example(note, body, tmp_path)
    report = pl.diagnose(pl.load(path, kinematics_only=True))
    assert report.assembled
    # A parallelogram has one freedom; the tree alone, which is the first example, three.
    tree = body == TREE
    assert report.mobility == int(what["freedoms"] or (3 if tree else 1))
    # Nothing but what the text says of the example: no or odd masses, a pair or a cut not told.
    told = (
        "has no mass",
        "not positive definite",
        "SDF's default",
        "joined by a spherical pair",
        "has a second parent",
        *(["cannot move (mobility 0)"] if what["freedoms"] == "0" else []),
    )
    assert not [text for text in report.warnings if not any(part in text for part in told)]


@pytest.mark.parametrize("count", [3, 4, 5, 6, 9])
@pytest.mark.parametrize("note, body", [one for one in EXAMPLES if one.values[1] != TREE])
def test_every_example_survives_rounding(note: str, body: str, count: int, tmp_path: Path) -> None:
    exact = pl.load(written_example(note, body, tmp_path), kinematics_only=True)
    turned = rounded.in_other_frames(exact, np.random.default_rng(count))
    path = rounded.saved_with_digits(turned, tmp_path / "rounded.urdf", count)
    reports = [pl.diagnose(r) for r in (exact, pl.load(path, kinematics_only=True))]
    numbers = [(r.assembled, r.mobility, r.rank, r.reduced_rows) for r in reports]
    assert numbers[0] == numbers[1]


def test_all_formats_have_an_example() -> None:
    sections = re.split(r"^## ", FORMATS, flags=re.MULTILINE)[1:]
    numbers = [int(section.partition(".")[0]) for section in sections if section[0].isdigit()]
    assert numbers == list(range(1, 15))
    assert all("```" in section for section in sections if section[0].isdigit())


def test_the_example_of_objects_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, _ = blocks(FORMATS, "python")
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
        "pip install . && pinloop stop six_axis_arm\n",
        "pip install '.[test]' && pytest -n auto\n",
    ]


def test_it_is_short_and_teaches_before_it_lists() -> None:
    """One idea and a program of fifteen lines; tables come after them."""
    assert README.count("\n") <= 175
    (program,) = blocks(README, "python")
    assert len([line for line in program.splitlines() if line.strip()]) <= 15
    assert (
        README.index("close, reduce, lock, stop") < README.index("```python") < README.index("\n|")
    )


def test_the_loop_joint_is_one_of_the_robot() -> None:
    (element,) = blocks(README, "xml")
    shipped = (ROOT / "urdf" / "palletizer.urdf").read_text(encoding="utf-8")
    assert re.sub(r"\s+", " ", element.strip()) in re.sub(r"\s+", " ", shipped)


# -- all pages ------------------------------------------------------------------------------

PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "upstream").glob("*.md")),
]

NOT_RUN = {
    "pinloop compare ur5_robot.urdf": "by tests/safety/standards/test_comparing_documented.py",
    "pinloop fit ur5_robot.urdf": "by tests/safety/standards/test_comparing_documented.py",
    "pinloop study urdf/six_axis_arm.study.yaml": "by tests/cli/test_study_commands.py, shorter",
    "pinloop worst urdf/six_axis_arm.study.yaml": "by tests/cli/test_study_commands.py, shorter",
}
"""Beginnings of commands that are not run here, and where they are."""


def left_out(code: str) -> bool:
    return any(code.startswith(beginning) for beginning in NOT_RUN)


@pytest.fixture
def viewers_end(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Viewers of meshcat that a page opens are closed after it."""
    windows: list[Any] = []
    cls = meshcat.visualizer.ViewerWindow
    construct = cls.__init__

    def remember(window: Any, *arguments: Any, **options: Any) -> None:
        construct(window, *arguments, **options)
        windows.append(window)

    monkeypatch.setattr(cls, "__init__", remember)
    yield
    for window in windows:
        end_server(window)


@pytest.mark.usefixtures("viewers_end")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_programs_and_commands_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "urdf", tmp_path / "urdf")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.syspath_prepend(tmp_path)  # the page's own modules
    text = page.read_text(encoding="utf-8")
    run = run_page(text, page.name, left_out, lambda: capsys.readouterr().out)
    programs = [block for block in fenced(text) if not block.note.startswith("file: ")]
    wanted = [block.body for block in programs if block.language == "python"]
    for block in programs:
        if block.language == "sh":
            wanted += [line for line in block.body.splitlines() if line.startswith("pinloop ")]
    assert run == sum(not left_out(code) for code in wanted)


@pytest.mark.parametrize(
    "pages, most",
    [(("derivatives", "drives", "optimal_control"), 15), (("upstream/*",), 20)],
)
def test_gradients_and_reports_take_few_lines(pages: tuple[str, ...], most: int) -> None:
    """Each program shows one thing whole, without a line to scroll."""
    for page in (path for name in pages for path in (ROOT / "docs").glob(f"{name}.md")):
        for program in blocks(page.read_text(encoding="utf-8"), "python"):
            lines = [line for line in program.splitlines() if line.strip()]
            assert len([line for line in lines if not line.startswith("#")]) <= most, page
            assert max(map(len, lines)) <= 100, page


def test_what_is_not_run_is_on_a_page() -> None:
    said = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert not [command for command in NOT_RUN if f"\n{command}" not in said]


def test_commands_in_blocks_are_ours_or_install() -> None:
    """What the test above does not run is nothing but these."""
    for page in PAGES:
        for block in fenced(page.read_text(encoding="utf-8")):
            for line in block.body.splitlines() if block.language == "sh" else ():
                assert re.match(r"pinloop |pip install |python -m |python examples/", line), line


def test_an_example_that_fails_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def go(text: str) -> int:
        return run_page(text, "page", left_out, lambda: "1.0 m, 3e-17 rad\n")

    with pytest.raises(ZeroDivisionError):
        go("```python\n1 / 0\n```\n")
    with pytest.raises(AssertionError, match=r"pinloop check nothing\.urdf"):
        go("```sh\npinloop check nothing.urdf\n```\n")
    shown = "```python\n1\n```\n\n<!-- output -->\n```text\n{}\n```\n"
    assert go(shown.format("1.0 m, 5e-16 rad")) == 1
    with pytest.raises(AssertionError, match="output in line 7"):
        go(shown.format("1.1 m, 3e-17 rad"))


ROOMS = {"pl": pl} | {
    f"pl.{name}": room for name in pl.__all__ if isinstance(room := getattr(pl, name), ModuleType)
}
"""The package and its public namespaces, as a user writes them."""


def glossary() -> dict[str, str]:
    """Words of the glossary, without code marks, and their meanings."""
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    entries = re.findall(r"^\| `?([^|`]+)`? \| (.+) \|$", text, re.MULTILINE)
    assert len(entries) == len(dict(entries)), "a word is there twice"
    return {word: meaning for word, meaning in entries if meaning != "meaning"}


def test_the_glossary_has_every_public_noun() -> None:
    """Classes and constants, under one of the names by which they are public."""
    words = set(glossary())
    public: dict[str, set[str]] = {}
    for room, module in ROOMS.items():
        for name in module.__all__:
            if name[0].isupper():
                public.setdefault(name, set()).add(f"{room}.{name}")
    assert not [name for name, paths in public.items() if not paths & words]
    known = set().union(*public.values())
    assert not [word for word in words if word.startswith("pl.") and word not in known]


def test_the_glossary_is_alphabetical_with_one_sentence_each() -> None:
    entries = glossary()
    words = [re.sub("[-_ ]", "", word.rpartition(".")[2]).casefold() for word in entries]
    assert words == sorted(words)
    for word, meaning in entries.items():
        assert re.fullmatch(r"[A-Z].*\.", meaning), word
        assert not re.search(r"[.!?] +[A-Z]", meaning), f"{word}: more than one sentence"


def test_every_public_name_has_its_place_in_the_reference() -> None:
    pages = sorted((ROOT / "docs" / "api").glob("*.md"))
    paths = [
        path
        for page in pages
        for path in re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(paths) == len(set(paths))
    described = []
    for path in paths:
        module, _, name = path.rpartition(".")
        described.append((name, getattr(importlib.import_module(module), name)))
    missing = [
        f"{path}.{name}"
        for path, room in ROOMS.items()
        for name in room.__all__
        if not isinstance(value := getattr(room, name), ModuleType)
        and not any(name == other and value is known for other, known in described)
    ]
    assert not missing, "add a line '::: module.name' to a page of docs/api for each"


def test_every_schema_is_named() -> None:
    text = (ROOT / "docs" / "schemas.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\(schemas/([\w.-]+)\)", text))
    assert named == {path.name for path in (ROOT / "docs" / "schemas").glob("*.json")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists() or "://" in target, target
