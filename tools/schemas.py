"""JSON schemas in ``docs/schemas``, from the forms that check the files.

Run with ``python -m tools.schemas`` from the root of the repository: it writes those that changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from pinloop.cli import sheets as cli_documents
from pinloop.io import loopsfile
from pinloop.safety.brakes import file as brakefile
from pinloop.safety.stopping import result_document as stop_document
from pinloop.safety.studies import studyfile
from pinloop.scenarios import run_summary as run_document
from pinloop.scenarios import scenario_entries as scenario
from pinloop.show.study_report import report_manifest as manifest

from .pages import DOCS

__all__ = ["SCHEMAS", "text_of"]

SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "brakes": brakefile.json_schema,
    "loops": loopsfile.json_schema,
    "run": run_document.json_schema,
    "scenario": scenario.json_schema,
    "stop": stop_document.json_schema,
    "study": studyfile.json_schema,
    "study-manifest": manifest.json_schema,
    **{name: partial(cli_documents.json_schema, name) for name in cli_documents.DOCUMENTS},
}
"""What makes each schema, by the name of its file."""


def text_of(name: str) -> str:
    """What the file of a schema has to say."""
    return json.dumps(SCHEMAS[name](), indent=2) + "\n"


if __name__ == "__main__":
    for name in SCHEMAS:
        path = DOCS / "schemas" / f"{name}.schema.json"
        if not path.exists() or path.read_text(encoding="utf-8") != text_of(name):
            path.write_text(text_of(name), encoding="utf-8")
            print(f"written: {path.name}")
