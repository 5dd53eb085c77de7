"""YAML with lines, and dataclasses that say what does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import jsonschema
import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.json_schema import json_schema_of, key_table

from pinloop.boundary.marks import (
    INTERNAL,
    As,
    Check,
    Direction,
    Name,
    NotNegative,
    Positive,
    Range,
    Short,
    Vector3,
    existing,
    nonempty,
)
from pinloop.boundary.schema import read_data
from pinloop.boundary.yaml import line_of, read_yaml
from pinloop.errors import LoadError


def without_dots(name: str) -> None:
    if "." in name:
        raise ValueError("a name has no dots")


@dataclass(frozen=True)
class Part:
    """A part.

    Args:
        name: what it is called.
        mass: how heavy it is
            in the end [kg].
        xyz: where it is [m].
    """

    name: Annotated[Name, Check(without_dots, {})]
    mass: float = 1.0
    xyz: Vector3 = (0.0, 0.0, 0.0)
    axis: Annotated[Direction, "its direction"] = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        if self.name == "feather" and self.mass > 1:
            raise ValueError("a feather is light")


@dataclass(frozen=True)
class Document:
    """Parts and a table."""

    parts: tuple[Part, ...] = ()
    table: Mapping[Name, tuple[float, ...]] = field(default_factory=dict)


GOOD = """\
# a comment
parts:
  - name: crank
    mass: 2.5
    xyz: [0, 1e-3, .5]
  - {name: rod, axis: [0, 3, 4]}
table:
  j1: [1, 2]
"""


def check(text: str) -> Document:
    return read_data(Document, read_yaml(text, "robot.yaml"), "robot.yaml")


def test_plain_data() -> None:
    data = read_yaml(GOOD, "robot.yaml")
    assert data == yaml.safe_load(GOOD)
    document = check(GOOD)
    assert document.parts[0].xyz == (0.0, 0.001, 0.5)
    assert document.parts[1].axis == (0.0, 3.0, 4.0)
    assert document.table == {"j1": (1.0, 2.0)}


def test_bytes_with_mark_are_text() -> None:
    assert read_yaml("\ufeffname: Zürich".encode(), "f") == {"name": "Zürich"}
    assert read_yaml("", "f") is None


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), None),
        (("parts",), 2),
        (("parts", 0), 3),
        (("parts", 0, "mass"), 4),
        (("parts", 0, "xyz", 2), 5),
        (("parts", 1, "axis"), 6),
        (("table", "j1", 7), 8),
        (("parts", 0, "nothing"), 3),
    ],
)
def test_lines(path: tuple[str | int, ...], line: int | None) -> None:
    assert line_of(read_yaml(GOOD, "f"), path) == line


def test_shared_values_and_merge_keys() -> None:
    text = "a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\nc:\n  <<: [*a, *b]\n  x: 9\nd: *a\n"
    data = read_yaml(text, "f")
    assert data == yaml.safe_load(text)
    assert line_of(data, ("c", "y")) == 1
    assert line_of(data, ("c", "z")) == 2
    assert line_of(data, ("c", "x")) == 5


BOMB = "a: &x0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"k{i}: &x{i} [{', '.join([f'*x{i - 1}'] * 10)}]\n" for i in range(1, 40)
)
MERGE_BOMB = "k0: &x0 {a: 1}\n" + "".join(
    f"k{i}: &x{i} {{<<: [{', '.join([f'*x{i - 1}'] * 10)}]}}\n" for i in range(1, 40)
)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3", 3, "key 'a' is given twice, first in line 1"),
        ("a:\n  - {k: 1,\n     k: 2}", 3, "key 'k' is given twice"),
        ("a: 1\nb: {c", 3, "malformed YAML"),
        ("a: 1\n\tb: 2", 2, "malformed YAML"),
        ("a: *nowhere", 1, "nowhere"),
        ("--- 1\n--- 2", 2, "several documents"),
        ("a: &x [*x]", 1, "contains itself"),
        ("a: !!python/object/apply:os.system [ls]", 1, "not supported"),
        ("a: !!set {b, c}", 1, "not supported"),
        ("? [1]\n: 2", 1, "single word"),
        ("a: 1\n<<: 3", 2, "merge key"),
        ("a: !!int ''", 1, "no valid int"),
        ("a: !!bool maybe", 1, "no valid bool"),
        ("a: 2001-13-45", 1, "no valid timestamp"),
        ('a: "\\ud800"', 1, "malformed YAML"),
        ('a: "\\U00110000"', 1, "malformed YAML"),
        ("a: b\0c", None, "not allowed"),
        ("[" * 20_000, 1, "too deeply"),
        ("{a: " * 20_000, 1, "too deeply"),
        ("- " * 1_000_000, 1, "too deeply"),
        ("[" + "1," * 400_000, 1, "more than 300000 values"),
        ("a" * (16 * 2**20 + 1), None, "more than 16 million characters"),
        (BOMB, 6, "aliases expand"),
        (MERGE_BOMB, 7, "aliases expand"),
        ("a: 1" + 5_000 * "0", 1, "no valid int"),
    ],
)
def test_bad_yaml(text: str, line: int | None, words: str) -> None:
    with pytest.raises(LoadError, match=words) as info:
        read_yaml(text, "robot.yaml")
    assert info.value.line == line
    assert str(info.value).startswith("robot.yaml")


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("parts:\n- name: 3", 2, "parts[0].name is 3: expected a text"),
        ("parts:\n- name: a\n- name: ''", 3, "parts[1].name is '': expected a text that is not"),
        ("parts:\n- name: a.b", 2, "parts[0].name is 'a.b': a name has no dots"),
        ("parts:\n- mass: 3", 2, "parts[0].name is missing: what it is called"),
        ("parts:\n- name: a\n  mass: heavy", 3, "parts[0].mass is 'heavy': expected a number"),
        ("parts:\n- name: a\n  mass: yes", 3, "parts[0].mass is True: expected a number, not yes"),
        ("parts:\n- name: a\n  mass: .inf", 3, "parts[0].mass is inf: expected a finite number"),
        ("parts:\n- name: a\n  mass: .nan", 3, "parts[0].mass is nan: expected a finite number"),
        ("parts:\n- name: a\n  mass: 1e31", 3, "expected a number of at most 1e+30"),
        ("parts:\n- name: a\n  mass: 1" + 400 * "0", 3, "expected a number of at most 1e+30"),
        ("parts:\n- name: a\n  xyz: [1, 2]", 3, "parts[0].xyz is [1, 2]: it has too few items"),
        ("parts:\n- name: a\n  xyz: [1,2,3,4]", 3, "4 items where 3 are needed"),
        ("parts:\n- name: a\n  xyz: 5", 3, "parts[0].xyz is 5: expected a list"),
        ("parts:\n- name: a\n  xyz: [1,2,b]", 3, "parts[0].xyz[2] is 'b': expected a number"),
        ("parts:\n- name: a\n  axis: [0,0,0]", 3, "a zero vector has no direction"),
        ("parts:\n- nmae: a", 2, "parts[0].nmae is not a known key; did you mean 'name'? (and 1"),
        ("parts:\n- name: feather\n  mass: 2", 2, "parts[0]: a feather is light"),
        ("parts: crank", 1, "parts is 'crank': expected a list"),
        ("parts: [crank]", 1, "parts[0] is 'crank': expected a table"),
        ("qwerty: 1", 1, "qwerty is not a known key; known keys: parts, table"),
        ("table: {1: [2]}", 1, "table[1] is 1: expected a text"),
        ("table: {a: [b]}", 1, "table.a[0] is 'b'"),
        ("[1]", None, "the document is [1]: expected a table"),
        ("", None, "the document is None: expected a table"),
    ],
)
def test_sentences(text: str, line: int | None, sentence: str) -> None:
    with pytest.raises(LoadError) as info:
        check(text)
    assert sentence in info.value.problem
    assert info.value.line == line
    assert "\n" not in str(info.value)


def test_numpy_is_plain() -> None:
    part = {"name": "a", "mass": np.float32(0.5), "xyz": np.array([1, 2, 3])}
    document = read_data(Document, {"parts": (part,)}, "dict")
    assert document.parts[0].xyz == (1.0, 2.0, 3.0)
    assert document.parts[0].mass == 0.5


def test_any_mapping() -> None:
    part = MappingProxyType({"name": "a", "mass": "b"})
    with pytest.raises(LoadError, match=r"parts\[0\].mass is 'b': expected a number"):
        read_data(Document, MappingProxyType({"parts": [part]}), "dict")


def test_numpy_that_does_not_fit() -> None:
    part = {"name": "a", "xyz": np.array([1.0, np.inf, 0.0])}
    with pytest.raises(LoadError, match=r"^dict: parts\[0\].xyz\[1\] is inf: expected a finite"):
        read_data(Document, {"parts": [part]}, "dict")
    with pytest.raises(LoadError, match=r"parts\[0\].xyz is 5"):
        read_data(Document, {"parts": [{"name": "a", "xyz": np.array(5)}]}, "dict")


def test_endless_data() -> None:
    data: dict[str, object] = {}
    data["parts"] = [data]
    with pytest.raises(LoadError, match=r"parts\[0\].parts is not a known key"):
        read_data(Document, data, "dict")


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.integers(0, len(GOOD)),
    st.integers(0, 6),
    st.one_of(st.text(max_size=6), st.sampled_from(["&a ", "*a ", "<<: ", "!!", "? ", "- [", "{"])),
)
def test_mutated_text(start: int, length: int, inserted: str) -> None:
    text = GOOD[:start] + inserted + GOOD[start + length :]
    try:
        check(text)
    except LoadError as error:
        assert "robot.yaml" in str(error)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.binary(max_size=40))
def test_any_bytes(text: bytes) -> None:
    try:
        read_yaml(text, "robot.yaml")
    except LoadError as error:
        assert str(error).startswith("robot.yaml")


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.text(max_size=40))
def test_agrees_with_safe_load(text: str) -> None:
    try:
        data = read_yaml(text, "robot.yaml")
    except LoadError:
        return
    expected = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    assert data == expected or repr(data) == repr(expected)


# -- forms ----------------------------------------------------------------------------------------


def doubled(word: object) -> object:
    if not isinstance(word, str):
        raise ValueError("expected a word")
    return word * 2


@dataclass(frozen=True, kw_only=True)
class Everything:
    """All that an annotation can say."""

    whole: int = 0
    truth: bool = False
    word: Literal["a", "b", "c"] | None = None
    number: Literal[0, 1] = 0
    fraction: Annotated[float, Range(above=0, most=1)] = 1.0
    positive: Positive | None = 1.0
    extent: Annotated[tuple[float, float], Short(float, lambda end: (end, end))] = (0.0, 1.0)
    either: Annotated[tuple[float, ...], Short(float, lambda x: (x,))] | Mapping[Name, int] = ()
    part: Annotated[Part | None, "a part or its name"] = None
    short: Annotated[Part, Short(Name, "name")] = field(default_factory=lambda: Part("x"))
    twice: Annotated[str, As(Any, doubled, {"type": "string"})] = ""
    vector: Annotated[object, As(Vector3 | None, np.array)] = None
    inside: Annotated[object, INTERNAL] = None
    file: Annotated[Path, existing] | None = None
    filled: Annotated[Mapping[Name, NotNegative], nonempty] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("whole: 3", 3),
        ("whole: '3'", 3),
        ("whole: 3.0", 3),
        ("truth: yes", True),
        ("truth: 'off'", False),
        ("truth: 1", True),
        ("word: null", None),
        ("word: b", "b"),
        ("fraction: 1e-3", 0.001),
        ("positive: null", None),
        ("extent: 2", (2.0, 2.0)),
        ("extent: [1, 2]", (1.0, 2.0)),
        ("either: 2", (2.0,)),
        ("either: [2, 3]", (2.0, 3.0)),
        ("either: {a: 2}", {"a": 2}),
        ("part: {name: a}", Part("a")),
        ("short: a", Part("a")),
        ("short: {name: a, mass: 2}", Part("a", 2.0)),
        ("twice: ab", "abab"),
        ("filled: {a: 0}", {"a": 0.0}),
    ],
)
def test_values(text: str, value: object) -> None:
    made = read_data(Everything, read_yaml(text, "f"), "f")
    assert getattr(made, text.partition(":")[0]) == value


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("whole: 3.5", "whole is 3.5: expected a whole number"),
        ("whole: yes", "whole is True: expected a number, not yes or no"),
        ("truth: 2", "truth is 2: expected yes or no"),
        ("truth: maybe", "truth is 'maybe': expected yes or no"),
        ("word: d", "word is 'd': expected 'a', 'b' or 'c'"),
        ("number: true", "number is True: expected 0 or 1"),
        ("fraction: 0", "fraction is 0: expected a number greater than 0"),
        ("fraction: 1.1", "fraction is 1.1: expected a number less than or equal to 1"),
        ("fraction: null", "fraction is None: expected a number"),
        ("positive: -1", "positive is -1: expected a number greater than 0"),
        ("extent: a", "extent is 'a': expected a number"),
        ("extent: [1]", "extent is [1]: it has too few items"),
        ("extent: {}", "extent is {}: expected a list"),
        ("either: a", "either is 'a': expected a number"),
        ("either: {a: b}", "either.a is 'b': expected a number"),
        ("part: 3", "part is 3: expected a table"),
        ("part: {mass: 3}", "part.name is missing: what it is called"),
        ("short: a.b", "short is 'a.b': a name has no dots"),
        ("short: 3", "short is 3: expected a text"),
        ("short: {mass: heavy, name: a}", "short.mass is 'heavy': expected a number"),
        ("twice: 3", "twice is 3: expected a word"),
        ("vector: [1, 2]", "vector is [1, 2]: it has too few items"),
        ("inside: 1", "inside is not a known key"),
        ("mass: 1", "mass is not a known key; it belongs in 'short'"),
        ("file: 3", "file is 3: expected a text"),
        ("file: no.yaml", "file is 'no.yaml': no.yaml: no such file"),
        ("filled: {}", "filled is {}: 0 items where 1 are needed"),
        ("filled: {'': 1}", "expected a text as key"),
        ("filled: {a: -1}", "filled.a is -1: expected a number greater than or equal to 0"),
    ],
)
def test_what_does_not_fit(text: str, sentence: str) -> None:
    with pytest.raises(LoadError) as info:
        read_data(Everything, read_yaml(text, "f"), "f")
    assert sentence in info.value.problem
    assert info.value.line == 1


def test_values_made_of_others(tmp_path: Path) -> None:
    (tmp_path / "there.txt").touch()
    data = {"vector": [1, 2, 3], "file": "there.txt"}
    made = read_data(Everything, data, "f", folder=tmp_path)
    assert isinstance(made.vector, np.ndarray) and made.vector.tolist() == [1, 2, 3]
    assert made.file == tmp_path / "there.txt"


def test_tables_of_keys() -> None:
    assert key_table(Part) == (
        "| key | needed | what it is |\n| --- | --- | --- |\n"
        "| `name` | yes | what it is called |\n"
        "| `mass` |  | how heavy it is in the end [kg] |\n"
        "| `xyz` |  | where it is [m] |\n"
        "| `axis` |  | its direction |\n"
    )


class Written(TypedDict):
    """What is written."""

    numbers: list[float]
    note: NotRequired[Annotated[str, "a remark"]]


FITTING: list[Any] = [
    {"whole": 3, "word": None, "extent": 2, "short": "a", "filled": {"a": 0}},
    {"either": {"a": 1}, "part": {"name": "a", "xyz": [1, 2, 3]}, "positive": None},
]
MISFITS: list[Any] = [
    {"whole": 0.5}, {"word": "d"}, {"fraction": 0}, {"fraction": 2}, {"extent": [1]}, {"x": 1},
    {"part": {"mass": 1}}, {"short": ""}, {"filled": {"a": -1}}, {"either": {"a": "b"}},
]  # fmt: skip


def test_the_schema_agrees_with_what_is_read() -> None:
    """An implementation of JSON schema that knows nothing of ours decides alike."""
    schema = json_schema_of(Everything)
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    for data in FITTING:
        read_data(Everything, data, "f")
        assert validator.is_valid(data), data
    for data in MISFITS:
        with pytest.raises(LoadError):
            read_data(Everything, data, "f")
        assert not validator.is_valid(data), data
    assert schema["properties"]["fraction"] == {
        "type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 1.0
    }  # fmt: skip


def test_the_schema_of_a_document() -> None:
    schema = json_schema_of(Written)
    assert schema["required"] == ["numbers"] and schema["additionalProperties"] is False
    assert schema["properties"]["numbers"] == {"type": "array", "items": {"type": "number"}}
    assert schema["properties"]["note"] == {"type": "string", "description": "a remark"}
