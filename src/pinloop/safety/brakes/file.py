"""The brake file: YAML to brakes and back, its JSON schema and the table of its parameters.

What the file may say is the model `BrakeFile`, made from the list in `parameters`. Knows no robot:
whether a joint exists is for `Brakes.for_robot` to say.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import BeforeValidator, Field, WithJsonSchema, create_model

from ...boundary.files import read_bytes, write_text
from ...boundary.yaml import Name, Number, line_of, read_yaml, validated
from ...errors import BadValue, LoadError
from ...io.documents import schema_of
from ...io.entries import Entry
from .joint_brake import Chain, JointBrake, Source, first_problem
from .parameters import CHAIN_PARAMETERS, JOINT_PARAMETERS, Parameter, Value

__all__ = [
    "FORMAT",
    "BrakeFile",
    "Contents",
    "json_schema",
    "parameter_table",
    "parse_brakes",
    "read_brakes",
    "write_brakes",
]

FORMAT: Literal["pinloop-brakes-1"] = "pinloop-brakes-1"
"""Version tag of the brake file."""


@dataclass(frozen=True)
class Contents:
    """What a brake file says.

    Args:
        joints: brake per joint.
        chain: from the signal to the command.
        faults: what has been done to the brakes, in words.
        robot: name of the robot; empty if the file does not say.
    """

    joints: Mapping[str, JointBrake]
    chain: Chain
    faults: tuple[str, ...] = ()
    robot: str = ""


class _Given(Entry):
    """A value with its provenance."""

    source: Source | None = Field(None, description="where the value comes from")
    note: str = Field("", description="remark")


class _Block(Entry):
    """Parameters with a common provenance."""

    source: Source | None = Field(None, description="where plain values of this table come from")


def _value_type(parameter: Parameter) -> Any:
    """Type of the bare value of a parameter."""
    kind: Any
    if parameter.words:
        kind = Literal[parameter.words]
    else:
        limits = {
            ("ge", "minimum"): parameter.least,
            ("gt", "exclusiveMinimum"): parameter.above,
            ("le", "maximum"): parameter.most,
            ("lt", "exclusiveMaximum"): parameter.below,
        }
        given = {words: limit for words, limit in limits.items() if limit is not None}
        checks: dict[str, Any] = {ours: limit for (ours, _), limit in given.items()}
        # Behind the checks of a `Number`, pydantic no longer finds the words of JSON schema.
        schema = {"type": "number"} | {theirs: limit for (_, theirs), limit in given.items()}
        kind = Annotated[Number, Field(**checks), WithJsonSchema(schema)]
    return kind | None if parameter.otherwise else kind


def _as_table(value: object) -> object:
    """A bare value stands for a table with nothing else."""
    return value if isinstance(value, Mapping) else {"value": value}


def _or_empty(value: object) -> object:
    """A key with nothing behind it has an empty table."""
    return {} if value is None else value


def _block(name: str, text: str, parameters: Mapping[str, Parameter]) -> type[_Block]:
    """Model of a table of parameters."""
    fields: dict[str, Any] = {}
    for key, parameter in parameters.items():
        bare = _value_type(parameter)
        title = "".join(part.capitalize() for part in key.split("_"))
        given = create_model(
            title,
            __base__=_Given,
            __doc__=f"{parameter.meaning.capitalize()}.",
            value=(bare, Field(description="the value")),
        )
        either: Any = bare | given
        kind = Annotated[given, BeforeValidator(_as_table, json_schema_input_type=either)]
        fields[key] = (kind, Field(parameter.default, description=_description(parameter)))
    return create_model(name, __base__=_Block, __doc__=text, **fields)


def _description(parameter: Parameter) -> str:
    """Meaning, unit and what nothing means."""
    unit = f" [{_units(parameter)}]" if parameter.unit or parameter.sliding else ""
    return f"{parameter.meaning}{unit}" + _null(parameter)


def _null(parameter: Parameter) -> str:
    return f"; null: {parameter.otherwise}" if parameter.otherwise else ""


def _units(parameter: Parameter) -> str:
    """Unit on a turning joint and, where it differs, on a sliding one."""
    turning = parameter.unit or "-"
    return f"{turning} | {parameter.sliding}" if parameter.sliding else turning


_JointEntry: Any = _block("JointEntry", "Brake, gear and drive of a joint.", JOINT_PARAMETERS)
_ChainEntry: Any = _block("ChainEntry", "From the signal to the command.", CHAIN_PARAMETERS)


def _or_nothing(model: Any) -> Any:
    return Annotated[model, BeforeValidator(_or_empty, json_schema_input_type=model | None)]


_Format: Any = Literal["pinloop-brakes-1"]
_Joints: Any = dict[Name, _or_nothing(_JointEntry)]  # type: ignore[misc]

BrakeFile = create_model(
    "BrakeFile",
    __base__=Entry,
    __doc__="Brakes, gears and drives of a robot, for the analysis of its stops.",
    format=(_Format, Field(description="version of this format")),
    robot=(str, Field("", description="name of the robot")),
    source=(Source, Field("assumed", description="where plain values of this file come from")),
    chain=(
        _or_nothing(_ChainEntry),
        Field(default_factory=_ChainEntry, description="from the signal to the command"),
    ),
    defaults=(
        _or_nothing(_JointEntry),
        Field(default_factory=_JointEntry, description="parameters of every joint"),
    ),
    joints=(
        _Joints,
        Field(min_length=1, description="parameters per joint, instead of the defaults"),
    ),
    faults=(tuple[Name, ...], Field((), description="what has been done to the brakes, in words")),
)
"""The file as a whole."""


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of the brake file."""
    return schema_of(BrakeFile)


def parameter_table(parameters: Mapping[str, Parameter] = JOINT_PARAMETERS) -> str:
    """Return the parameters as a table in Markdown, as the documentation shows them."""
    rows = [
        ("parameter", "unit", "on a sliding joint", "default", "range", "meaning"),
        ("---",) * 6,
    ]
    for name, parameter in parameters.items():
        unit = parameter.unit or "-"
        default = f"`{_scalar(parameter.default)}`"
        meaning = parameter.meaning + _null(parameter)
        limits = parameter.range or "any number"
        row = (f"`{name}`", unit, parameter.sliding or unit, default, limits, meaning)
        rows.append(row)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows) + "\n"


def read_brakes(path: str | Path) -> Contents:
    """Read a brake file.

    Raises:
        LoadError: names file, line and key.
    """
    source = str(path)
    return parse_brakes(read_yaml(read_bytes(path, "brake file"), source), source)


def parse_brakes(data: object, source: str) -> Contents:
    """Check what a brake file holds.

    Args:
        data: what `read_yaml` returned, or a dict of the same form.
        source: name of the file, for messages.

    Raises:
        LoadError: says what is wrong, and in which line where it can be known.
    """
    file: Any = validated(BrakeFile, data, source)
    chain = _values([file.chain], CHAIN_PARAMETERS, file.source)
    joints = {}
    for name, entry in file.joints.items():
        values = _values([file.defaults, entry], JOINT_PARAMETERS, file.source)
        bare = {key: value for key, value in values.items() if key in JOINT_PARAMETERS}
        problem = first_problem(bare)
        if problem is not None:
            key, sentence = problem
            line = _line(data, name, key)
            where = f"joints.{name}.{key} is {bare.get(key, JOINT_PARAMETERS[key].default)}"
            raise LoadError(f"{where}: {sentence}", source=source, line=line)
        joints[name] = JointBrake(**values)
    return Contents(joints, Chain(**chain), file.faults, file.robot)


def _values(
    blocks: list[_Block], parameters: Mapping[str, Parameter], file_source: Source
) -> dict[str, Any]:
    """Arguments of a record from tables, of which the later ones win."""
    values: dict[str, Any] = {}
    sources: dict[str, Source] = {}
    notes: dict[str, str] = {}
    for block in blocks:
        for name in parameters:
            if name not in block.model_fields_set:
                continue
            given = getattr(block, name)
            values[name] = given.value
            sources[name] = given.source or block.source or file_source
            notes.pop(name, None)
            if given.note:
                notes[name] = given.note
    return {**values, "sources": sources, "notes": notes}


def _line(data: object, joint: str, parameter: str) -> int | None:
    """Line that gives a parameter of a joint: its own one, that of the defaults, or the joint's."""
    tables: Any = data
    for block in (("joints", joint), ("defaults",)):
        table = tables
        for key in block:
            table = (table.get(key) if isinstance(table, Mapping) else None) or {}
        if parameter in table:
            return line_of(data, (*block, parameter))
    return line_of(data, ("joints", joint))


# -- writing ------------------------------------------------------------------------------------


_COLUMN = 46
"""Where the comments of a line begin, unless the line is longer."""


def write_brakes(path: str | Path, contents: Contents, origin: str = "") -> Path:
    """Write a brake file that a person can edit; `read_brakes` reads the same back.

    Args:
        path: file to write.
        contents: what it shall say.
        origin: where the numbers come from, for the comment at its head.

    Raises:
        BadValue: it cannot be written.
    """
    if not contents.joints:
        raise BadValue("there are no brakes to be written; give at least one joint a brake")
    return write_text(path, brakes_text(contents, origin))


def brakes_text(contents: Contents, origin: str = "") -> str:
    """Return the text of a brake file."""
    lines = [*_head(contents, origin), f"format: {FORMAT}"]
    if contents.robot:
        lines.append(f"robot: {_scalar(contents.robot)}")
    lines += [_commented("source: assumed", "of every plain value below"), ""]
    lines.append("chain:" if contents.chain.sources else "chain: {}")
    lines += _block_lines(contents.chain, CHAIN_PARAMETERS, "  ")
    lines += ["", "joints:"]
    for name, brake in contents.joints.items():
        rows = _block_lines(brake, JOINT_PARAMETERS, "    ")
        empty = all(row.lstrip().startswith("#") for row in rows)
        lines += [f"  {_scalar(name)}:" + (" {}" if empty else ""), *rows, ""]
    if contents.faults:
        lines += ["faults:", *(f"  - {_scalar(fault)}" for fault in contents.faults), ""]
    return "\n".join(lines)


def _head(contents: Contents, origin: str) -> list[str]:
    """What the file is, how it is edited, and what its parameters mean."""
    of = f" of robot {_scalar(contents.robot)}" if contents.robot else ""
    origin = f"\nMade from: {_scalar(origin)}\n" if origin else ""
    text = f"""\
Brakes, gears and drives{of}, for the analysis of its stops with pinloop.
{origin}
NOTHING IN THIS FILE IS CERTIFIED. A stop that is computed with it is a planning aid, no proof
of safety. Put in values of the maker's data sheet or of measurements, and say so.

A value is plain, or a table: {{value: 3.0, source: datasheet, note: "sheet 12, 20 C"}}. Its source
is {", ".join(f"'{word}'" for word in get_args(Source)[:-1])} or '{get_args(Source)[-1]}'; 'robot' \
is the robot's file. A line behind
a # is not given: it shows the default. 'defaults:' beside 'joints:' holds for every joint.

Parameters, with units on turning | sliding joints, and defaults:
"""
    legend = [
        f"  {name:<17} {parameter.meaning} [{_units(parameter)}]; {_default(parameter)}"
        for name, parameter in {**CHAIN_PARAMETERS, **JOINT_PARAMETERS}.items()
    ]
    return [f"# {line}".rstrip() for line in [*text.splitlines(), *legend]] + [""]


def _default(parameter: Parameter) -> str:
    return _scalar(parameter.default) + (f": {parameter.otherwise}" if parameter.otherwise else "")


def _block_lines(
    record: JointBrake | Chain, parameters: Mapping[str, Parameter], indent: str
) -> list[str]:
    """One line per parameter, as a comment where it is not given."""
    lines = []
    for name, parameter in parameters.items():
        value = getattr(record, name)
        source, note = record.sources.get(name), record.notes.get(name)
        given = source is not None or note is not None or value != parameter.default
        if not given and isinstance(record, JointBrake) and record.kind not in parameter.kinds:
            continue
        entry = _scalar(value)
        if note is not None or source not in (None, "assumed"):
            parts = [f"value: {entry}"]
            parts += [] if source in (None, "assumed") else [f"source: {source}"]
            parts += [] if note is None else [f"note: {_scalar(note, quoted=True)}"]
            entry = f"{{{', '.join(parts)}}}"
        hint = " or ".join(parameter.words) or _units(parameter)
        if not given:
            hint += f"; not given{_null(parameter).replace('; null', '')}"
        lines.append(_commented(f"{indent}{'' if given else '# '}{name}: {entry}", hint))
    return lines


def _commented(line: str, comment: str) -> str:
    return f"{line:<{_COLUMN}}  # {comment}"


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")


def _scalar(value: Value, *, quoted: bool = False) -> str:
    """A value as YAML 1.1 and 1.2 read it alike."""
    if value is None:
        return "null"
    if isinstance(value, str):
        plain = not quoted and _PLAIN.fullmatch(value) and yaml.safe_load(value) == value
        if plain:
            return value
        text = yaml.safe_dump(value, default_style='"', allow_unicode=True, width=math.inf)
        return str(text).strip()
    text = repr(value)
    # YAML 1.1 takes a number with exponent but without point for a word.
    return text.replace("e", ".0e") if "e" in text and "." not in text else text
