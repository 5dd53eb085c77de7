"""Vocabularies: what is not in them is reported, and what readers ask for is in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pinloop as pl
from pinloop.boundary.xml import Remarks, parse_xml
from pinloop.errors import listed
from pinloop.io import vocabulary
from pinloop.io.vocabulary import MJCF, SDF, URDF, report_unread

TABLE = {"a": "name size | b c x:*", "a/b": "| *", "b": "deep", "c": "name"}


def reported(text: str) -> tuple[str, ...]:
    remarks = Remarks()
    report_unread(parse_xml(text, "some/folder/t.xml"), TABLE, remarks)
    return remarks.texts()


def test_attributes_and_children_that_are_not_in_the_table_are_reported() -> None:
    assert reported('<a name="n" size="1" xmlns:x="u"><b><any/></b><x:y z="1"/><c/></a>') == ()
    assert reported('<a sizee="1"/>') == (
        "t.xml:1: <a> has an attribute 'sizee' that is not read; did you mean 'size'?",
    )
    assert reported('<a><b deep="1"/></a>') == (
        "t.xml:1: <b> has an attribute 'deep' that is not read",
    )
    assert reported("<a><d/>\n<d name='n'/><d/></a>") == (
        "t.xml:1: <d> in <a> is not read; likewise 'n', line 2",
    )
    assert reported('<a><c p="1" q="2"/>\n<c p="1" q="2"/></a>') == (
        "t.xml:1: <c> has attributes 'p', 'q' that are not read; likewise line 2; <c> has name",
    )


def test_reports_end() -> None:
    many = "".join(f"<d{k}/>" for k in range(5000))
    texts = reported(f"<a>{many}</a>")
    assert len(texts) == 201 and texts[-1].startswith("further elements or attributes")


def test_lists_of_names_end() -> None:
    assert listed([]) == ""
    assert listed(["a", 3, "a"], "; ") == "; 'a', line 3"
    assert listed("abcdefgh") == "'a', 'b', 'c', 'd', 'e', 'f' and 2 more"


READERS = Path(vocabulary.__file__).parent
ASKED = re.compile(
    r"\.(?:get|require|vector|number|first|need|all|text_number|text_vector)\(\s*"
    r'((?:"[\w:]+"(?:,\s*)?)+)'
)
# Inside of elements that are not looked into, or of other files.
ELSEWHERE = {
    "URDF": "color rgba actuator command_interface mechanicalReduction mechanical_reduction "
    "drake:gear_ratio drake:rotor_inertia value child_model",
    "SDF": "diffuse ambient simbody must_be_loop_joint uri scale submesh radius length size radii "
    "linear angular child_model mesh value",
}


@pytest.mark.parametrize(
    ("table", "name", "pattern"), [(URDF, "URDF", "urdf/*.py"), (SDF, "SDF", "sdf/*.py")]
)
def test_readers_ask_for_nothing_that_their_vocabulary_lacks(
    table: dict[str, str], name: str, pattern: str
) -> None:
    known = {word for entry in table.values() for word in entry.split()} | set(table)
    known |= {key.rpartition("/")[2] for key in table} | set(ELSEWHERE[name].split())
    asked = {
        word
        for path in READERS.glob(pattern)
        for match in ASKED.finditer(path.read_text(encoding="utf-8"))
        for word in re.findall(r'"([\w:]+)"', match[1])
    }
    assert len(asked) > 30
    assert asked <= known | set(SDF) | {w for entry in SDF.values() for w in entry.split()}


def test_every_entry_is_reached_from_the_root() -> None:
    for table, root in ((URDF, "robot"), (SDF, "sdf"), (MJCF, "mujoco")):
        reached = {root}
        for key, entry in table.items():
            inside = entry.partition("|")[2].split()
            reached |= {f"{key.rpartition('/')[2]}/{tag}" for tag in inside} | {*inside}
        unreached = {key for key in table if key not in reached}
        # "*" reaches all: default classes of MJCF.
        assert unreached <= {"default/equality"}


def test_a_mistake_in_every_format_is_reported(tmp_path: Path) -> None:
    shape = "<geometry><sphere radius='1'/></geometry>"
    urdf = f'<robot name="r"><link name="b"><visual nmae="c">{shape}</visual></link></robot>'
    sdf = '<sdf version="1.9"><model name="m"><link name="a"><inertal/></link></model></sdf>'
    mjcf = '<mujoco><worldbody><body name="a" qaut="1 0 0 0"/></worldbody></mujoco>'
    for text, said in (
        (urdf, "'nmae' that is not read; did you mean 'name'?"),
        (sdf, "<inertal> in <link> is not read; did you mean 'inertial'?"),
        (mjcf, "'qaut' that is not read; did you mean 'quat'?"),
    ):
        assert any(said in warning for warning in pl.load(text).warnings), said
    table: dict[str, list[str]] = {"bodies": [], "joints": [], "actuatd": []}
    with pytest.raises(pl.LoadError, match="actuatd is not a known key; did you mean 'actuated'"):
        pl.load(table)
    with pytest.raises(pl.LoadError, match="lops is not a known key; did you mean 'loops'"):
        pl.load(urdf.replace(' nmae="c"', ""), loops={"lops": []})
    gepetto: dict[str, list[str]] = {"closed_loop": [], "type": [], "name_mott": []}
    robot = pl.load(urdf.replace(' nmae="c"', ""), loops=gepetto)
    assert "key 'name_mott' is not read; did you mean 'name_mot'?" in robot.warnings[0]
