"""JSON schemas in ``docs/schemas`` and tables of keys in the pages, from the classes of the files.

Run with ``python -m tools.schemas`` from the root of the repository: it writes what has changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pinloop.cli import examples, sheets
from pinloop.integrate import MuntheKaas
from pinloop.io.loading import RobotFile
from pinloop.io.loopsfile import LoopsFile
from pinloop.safety.brakes.file import BrakeFile
from pinloop.safety.brakes.joint_brake import Parameter
from pinloop.safety.stopping import result_document
from pinloop.safety.stopping.plan import Trigger
from pinloop.safety.stopping.prepared_robot import Payload
from pinloop.safety.studies import studyfile
from pinloop.safety.studies.space import Space
from pinloop.scenarios import results as run_document
from pinloop.scenarios import scenario_entries as scenario
from pinloop.show import study_report

from .json_schema import json_schema_of, key_table
from .pages import DOCS

__all__ = ["SCHEMAS", "TABLES", "parameter_table", "schema_of", "text_of", "with_tables"]

SCHEMAS: Mapping[str, Any] = {
    "assembly": sheets.AssemblyDocument,
    "brakes": BrakeFile,
    "examples": examples.ExamplesDocument,
    "loops": LoopsFile,
    "regularization": sheets.RegularizationDocument,
    "run": run_document.RunDocument,
    "scenario": scenario.Scenario,
    "stop": result_document.Document,
    "study": studyfile.StudyFile,
    "study-manifest": study_report.Manifest,
}
"""What is in each file or document, by the name of the schema."""

TABLES: Mapping[str, Mapping[str, type[Any]]] = {
    "scenario": {
        "the file": scenario.Scenario,
        "robot": scenario.RobotEntry,
        "start": scenario.StartEntry,
        "forces": scenario.ForcesEntry,
        "pd": scenario.DriveEntry,
        "joint_spring": scenario.JointSpringEntry,
        "joint_friction": scenario.FrictionEntry,
        "spring": scenario.SpringEntry,
        "damper": scenario.DamperEntry,
        "point_force": scenario.PointForceEntry,
        "events": scenario.EventEntry,
        "when": scenario.WhenEntry,
        "limits": scenario.LimitsEntry,
        "method": MuntheKaas,
        "stabilization": scenario.StabilizationEntry,
        "outputs": scenario.OutputsEntry,
    },
    "studies": {
        "the file": studyfile.StudyFile,
        "robot": RobotFile,
        "category": studyfile.CategoryEntry,
        "payload": Payload,
        "trigger": Trigger,
        "space": Space,
        "sampling": studyfile.SamplingEntry,
        "search": studyfile.SearchEntry,
        "person": studyfile.PersonEntry,
        "obstacles": studyfile.ObstacleEntry,
    },
}
"""Pages with tables of keys: each stands between ``<!-- keys of NAME -->`` and ``<!-- end -->``."""


def schema_of(name: str) -> dict[str, Any]:
    """A schema by its name."""
    return json_schema_of(SCHEMAS[name])


def with_tables(page: str, text: str) -> str:
    """A page with its tables of keys as they are now."""
    for name, kind in TABLES[page].items():
        mark = f"<!-- keys of {name} -->\n"
        before, _, rest = text.partition(mark)
        text = before + mark + key_table(kind) + "<!-- end -->" + rest.partition("<!-- end -->")[2]
    return text


def parameter_table(parameters: Mapping[str, Parameter]) -> str:
    """Parameters of brakes as a table in Markdown, as the documentation shows them."""
    rows = [
        ("parameter", "unit", "on a sliding joint", "default", "range", "meaning"),
        ("---",) * 6,
    ]
    for name, parameter in parameters.items():
        unit = parameter.unit or "-"
        default = f"`{'null' if parameter.default is None else parameter.default}`"
        nothing = f"; null: {parameter.otherwise}" if parameter.otherwise else ""
        meaning, limits = parameter.meaning + nothing, parameter.range or "any number"
        rows.append((f"`{name}`", unit, parameter.sliding or unit, default, limits, meaning))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows) + "\n"


def text_of(name: str) -> str:
    """What the file of a schema has to say."""
    return json.dumps(schema_of(name), indent=2) + "\n"


def main() -> None:
    """Write what has changed."""
    texts = {DOCS / "schemas" / f"{name}.schema.json": text_of(name) for name in SCHEMAS}
    for page in TABLES:
        path = DOCS / f"{page}.md"
        texts[path] = with_tables(page, path.read_text(encoding="utf-8"))
    for path, text in texts.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"written: {path.name}")


if __name__ == "__main__":
    main()
