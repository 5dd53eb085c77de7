"""Tests of `pinloop.boundary.xml`: what is read, and what is said about what cannot be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinloop.boundary.xml import Element, parse_xml, pose_of, pose_rpy
from pinloop.errors import LoadError, PinloopError

ROBOT = """<?xml version="1.0"?>
<!-- a comment -->
<robot name="arm">
  <link name="base"/>
  <link name="tip">
    <mass> 2.5 </mass>
    <axis
       xyz="0 0 1"/>
    <axis>1 -2 3e-1</axis>
  </link>
  <drake:joint name="j"/>
</robot>
"""


def element(attributes: str = "", inside: str = "") -> Element:
    """A `<joint>` in line 2 of robot.urdf."""
    return parse_xml(f"<robot>\n<joint {attributes}>{inside}</joint></robot>", "robot.urdf").need(
        "joint"
    )


def test_elements_know_their_line_order_and_file() -> None:
    robot = parse_xml(ROBOT, "arm.urdf")
    assert (robot.tag, robot.get("name"), robot.line) == ("robot", "arm", 3)
    assert [(child.tag, child.line) for child in robot.children] == [
        ("link", 4),
        ("link", 5),
        ("drake:joint", 11),
    ]
    assert [link.get("name") for link in robot.all("link")] == ["base", "tip"]
    assert len(robot.all("link", "drake:joint")) == 3
    assert robot.first("drake:joint", "link") is robot.children[0]
    assert robot.first("joint") is None
    assert robot.get("version") is None
    axis = robot.children[1].need("axis")
    assert (axis.line, axis.source) == (7, "arm.urdf")


def test_bytes_and_text_give_the_same() -> None:
    document = '<?xml version="1.0" encoding="{}"?><robot name="Grüße"/>'
    for encoding in ("utf-8", "utf-16", "iso-8859-1"):
        declared = document.format(encoding)
        assert parse_xml(declared, "s").get("name") == "Grüße"
        assert parse_xml(declared.encode(encoding), "s").get("name") == "Grüße"
    assert parse_xml(b"\xef\xbb\xbf<robot/>", "s").tag == "robot"
    assert parse_xml("\ufeff<robot/>", "s").tag == "robot"


def test_an_element_names_itself() -> None:
    assert repr(element("name='elbow'")) == "<joint name='elbow'>"
    assert repr(element()) == "<joint>"
    error = element("name='elbow'").error("is broken")
    assert isinstance(error, PinloopError)
    assert str(error) == "robot.urdf:2: <joint name='elbow'> is broken"
    assert (error.source, error.line) == ("robot.urdf", 2)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("<robot>\n<link>\n</robot>", 3),
        ("<robot>\n\n<link name=x/></robot>", 3),
        ("<robot>\n<link a='1' a='2'/></robot>", 2),
        ("<robot>\n&undeclared;</robot>", 2),
        ("<robot>\n<link", 2),
        ("<robot/>\n<robot/>", 2),
        ("<robot>\n\x00</robot>", 2),
        ("just words", 1),
        ("", 1),
        (b"", 1),
        (" \n ", 2),
    ],
)
def test_malformed_documents_say_file_and_line(text: str | bytes, line: int) -> None:
    with pytest.raises(LoadError, match=rf"^bad\.urdf:{line}: malformed XML: \w") as caught:
        parse_xml(text, "bad.urdf")
    assert (caught.value.source, caught.value.line) == ("bad.urdf", line)


@pytest.mark.parametrize(
    "text",
    [
        "<robot name='\ud800'/>",
        '<robot name="é"/>'.encode("utf-16")[1:],
    ],
)
def test_undecodable_documents_are_load_errors(text: str | bytes) -> None:
    with pytest.raises(LoadError, match=r"^bad\.urdf.*malformed XML"):
        parse_xml(text, "bad.urdf")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('<?xml version="1.0" encoding="gb2312"?>\n<link name="机"/>'.encode("gb2312"), "机"),
        ('<?xml version="1.0" encoding="shift_jis"?><link name="腕"/>'.encode("cp932"), "腕"),
        ('<?xml version="1.0" encoding="utf8"?><link name="é"/>'.encode(), "é"),
        # An encoding that nobody knows, that is not of text, or not the one of the bytes.
        ('<?xml version="1.0" encoding="utf-9"?><link name="é"/>'.encode(), "é"),
        (b'<?xml version="1.0" encoding="hex"?><link name="a"/>', "a"),
        (b'<?xml version="1.0" encoding="utf-16"?><link name="a"/>', "a"),
        (b'<?xml version="1.0" encoding="utf-16"?><link name="ab"/>', "ab"),
        ('<?xml version="1.0" encoding="us-ascii"?>\n<link name="é"/>'.encode(), "é"),
        (b'<?xml version="1.0" encoding="utf-8"?>\n<link name="\xe9"/>', "é"),
        (b"<!-- 90\xb0 --><link name='\xe9'/>", "é"),
        ('\ufeff\n<?xml version="1.0"?>\n<link name="é"/>'.encode(), "é"),
        ('\ufeff\n<?xml version="1.0"?>\n<link name="é"/>', "é"),
    ],
)
def test_encodings_are_read_as_by_readers_that_do_not_look_at_them(
    text: str | bytes, name: str
) -> None:
    assert parse_xml(text, "s").get("name") == name


@settings(derandomize=True, deadline=None, database=None)
@given(st.one_of(st.binary(), st.text(), st.text("<>/&;!?[]='\" \nab").map("<a>{}".format)))
def test_nothing_but_a_load_error_escapes(text: str | bytes) -> None:
    try:
        root = parse_xml(text, "noise")
    except LoadError as error:
        assert str(error).startswith("noise")
    else:
        assert root.tag


LAUGHS = "".join(f'<!ENTITY lol{i} "{f"&lol{i - 1};" * 10}">\n' for i in range(1, 10))


@pytest.mark.parametrize(
    "declarations",
    [
        f'<!ENTITY lol0 "lol">\n{LAUGHS}',
        '<!ENTITY lol9 "harmless">',
        '<!ENTITY lol9 SYSTEM "file:///etc/passwd">',
        '<!ENTITY % lol9 "parameter">',
        '<!ENTITY % lol9 SYSTEM "http://localhost/evil.dtd"> %lol9;',
        '<!ENTITY lol9 SYSTEM "picture.png" NDATA png>',
    ],
    ids=["billion laughs", "harmless", "file", "parameter", "remote", "unparsed"],
)
@pytest.mark.parametrize("where", ["<robot>&lol9;</robot>", "<robot name='&lol9;'/>", "<robot/>"])
def test_entity_declarations_are_rejected(declarations: str, where: str) -> None:
    with pytest.raises(LoadError, match=r"^bomb\.urdf:2: .*entities"):
        parse_xml(f"<!DOCTYPE robot [\n{declarations}\n]>\n{where}", "bomb.urdf")


def test_predefined_entities_and_character_references_are_text() -> None:
    robot = parse_xml("<robot name='a&lt;b &#x3b1;'>&amp;<![CDATA[<x>]]></robot>", "s")
    assert robot.get("name") == "a<b \u03b1"
    assert robot.text == "&<x>"


def test_entities_of_an_external_dtd_are_not_dropped() -> None:
    with pytest.raises(LoadError):
        parse_xml('<!DOCTYPE robot SYSTEM "robot.dtd"><mass>1&half;2</mass>', "s")


@pytest.mark.parametrize("text", ["<a>\n<b/></a>\r\n\0", b"<a>\n<b/></a>\0\0"])
def test_the_end_of_a_string_of_c_is_no_part_of_the_document(text: str | bytes) -> None:
    assert [child.tag for child in parse_xml(text, "x").children] == ["b"]


def test_numbers() -> None:
    joint = element("limits='-1 2.5e-3\n +.5' gain=' 4 '")
    np.testing.assert_array_equal(joint.vector("limits"), [-1.0, 0.0025, 0.5])
    assert joint.number("gain") == 4.0
    np.testing.assert_array_equal(joint.numbers("1 2 3 4", None, "row"), [1, 2, 3, 4])
    assert joint.numbers("", None, "row").shape == (0,)


def test_defaults_stand_in_for_what_is_missing_only() -> None:
    joint = element("xyz='1 2 3' gain='0'", "<v>4</v><w>5 6 7</w>")
    assert joint.number("gain", 9.0) == 0.0
    assert joint.number("other", 9.0) == 9.0
    np.testing.assert_array_equal(joint.vector("xyz", (0.0, 0.0, 0.0)), [1, 2, 3])
    default = np.array([7.0, 8.0, 9.0])
    other = joint.vector("other", default)
    np.testing.assert_array_equal(other, default)
    assert not np.shares_memory(other, default)
    assert (joint.text_number("v", 0.0), joint.text_number("z", 0.0)) == (4.0, 0.0)
    np.testing.assert_array_equal(joint.text_vector("w", (0.0, 0.0, 0.0)), [5, 6, 7])
    np.testing.assert_array_equal(joint.text_vector("z", (1.0, 0.0, 0.0)), [1, 0, 0])


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ("", "needs an attribute 'xyz'"),
        ("xyz=''", "has xyz '': 0 numbers where 3 are needed"),
        ("xyz='1 2'", "has xyz '1 2': 2 numbers where 3 are needed"),
        ("xyz='1 2 3 4'", "4 numbers where 3 are needed"),
        ("xyz='1,2,3'", "has xyz '1,2,3', which is not a list of numbers"),
        ("xyz='a b c'", "not a list of numbers"),
        ("xyz='0x1 2 3'", "not a list of numbers"),
        ("xyz='1 nan 2'", "has xyz '1 nan 2', which is not finite"),
        ("xyz='1 2 -inf'", "not finite"),
        ("xyz='1 2 1e999'", "not finite"),
    ],
)
def test_bad_vectors_are_named(attributes: str, says: str) -> None:
    with pytest.raises(LoadError) as caught:
        element(f"name='j' {attributes}").vector("xyz")
    assert str(caught.value).startswith("robot.urdf:2: <joint name='j'> ")
    assert says in str(caught.value)


@pytest.mark.parametrize("text", ["", "x", "1 2", "nan", "inf"])
def test_bad_scalars_are_errors_even_where_there_is_a_default(text: str) -> None:
    joint = element(f"gain='{text}' xyz='{text}'", f"<v>\n{text}</v>")
    with pytest.raises(LoadError, match=r"robot\.urdf:2: <joint> has gain"):
        joint.number("gain", 1.0)
    with pytest.raises(LoadError, match=r"robot\.urdf:2: <joint> has xyz"):
        joint.vector("xyz", (0.0, 0.0, 0.0))
    with pytest.raises(LoadError, match=r"robot\.urdf:2: <v> has the value"):
        joint.text_number("v", 1.0)
    with pytest.raises(LoadError, match=r"robot\.urdf:2: <v> has the value"):
        joint.text_vector("v", (0.0, 0.0, 0.0))


def test_python_notation_is_not_xml_notation() -> None:
    with pytest.raises(LoadError):
        element("gain='1_000'").number("gain")


def test_missing_children_and_attributes_are_named() -> None:
    joint = element("type=' ball ' name='  '")
    assert joint.require("type") == "ball"
    for attribute in ("name", "other"):
        with pytest.raises(LoadError, match=rf"robot\.urdf:2: .*needs an attribute '{attribute}'"):
            joint.require(attribute)
    with pytest.raises(LoadError, match=r"robot\.urdf:2: .*needs an attribute 'gain'"):
        joint.number("gain")
    with pytest.raises(LoadError, match=r"robot\.urdf:2: .*needs a <parent>"):
        joint.need("parent", "link1")
    for read in (joint.text_number, joint.text_vector):
        with pytest.raises(LoadError, match=r"robot\.urdf:2: .*needs a <pose>"):
            read("pose")


def test_unit_vectors() -> None:
    joint = element()
    np.testing.assert_allclose(
        joint.unit_vector(np.array([0.0, 3.0, -4.0])), [0.0, 0.6, -0.8], atol=1e-16
    )
    np.testing.assert_array_equal(joint.unit_vector(np.array([1e-6, 0.0, 0.0])), [1, 0, 0])
    for zero in (np.zeros(3), np.array([0.0, 1e-12, 0.0])):
        with pytest.raises(LoadError, match=r"robot\.urdf:2: <joint> has a zero normal"):
            joint.unit_vector(zero, "normal")


def test_pose_rpy_turns_about_fixed_axes() -> None:
    """Quarter turns by hand: roll takes y to z, pitch takes z to x, yaw takes x to y."""
    quarter = np.pi / 2
    p = np.array([1.0, 2.0, 3.0])
    for rpy, images in {
        (quarter, 0.0, 0.0): "x z -y",
        (0.0, quarter, 0.0): "-z y x",
        (0.0, 0.0, quarter): "y -x z",
        (quarter, 0.0, quarter): "y z x",  # y: roll to z, yaw leaves it
        (quarter, quarter, 0.0): "-z x -y",  # y: roll to z, pitch to x
    }.items():
        T = pose_rpy(p, np.array(rpy))
        for column, image in zip(T.rotation.T, images.split(), strict=True):
            sign = -1.0 if image.startswith("-") else 1.0
            expected = sign * np.eye(3)["xyz".index(image[-1])]
            np.testing.assert_allclose(column, expected, atol=1e-15)
        np.testing.assert_array_equal(T.translation, p)


def test_pose_of_reads_angles_or_a_quaternion() -> None:
    assert pose_of(None).isIdentity(0.0)
    assert pose_of(element()).isIdentity(0.0)
    # A quarter turn about z takes x to y; xyzw is (0, 0, sin 45, cos 45), of any length.
    quarter = [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    for turn in (f"rpy='0 0 {np.pi / 2}'", "quat_xyzw='0 0 3 3'"):
        T = pose_of(element(f"xyz='1 2 3' {turn}"))
        np.testing.assert_allclose(T.rotation, quarter, atol=1e-15)
        np.testing.assert_array_equal(T.translation, [1, 2, 3])


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ("quat_xyzw='0 0 0 0'", "zero quaternion"),
        ("quat_xyzw='0 0 1'", "3 numbers where 4 are needed"),
        ("rpy='0 0'", "2 numbers where 3 are needed"),
        ("xyz='0 0 up'", "has xyz '0 0 up'"),
    ],
)
def test_pose_of_names_what_is_wrong(attributes: str, says: str) -> None:
    with pytest.raises(LoadError, match=rf"robot\.urdf:2: .*{says}"):
        pose_of(element(attributes))
