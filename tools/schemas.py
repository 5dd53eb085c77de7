"""JSON schemas in ``docs/schemas`` and tables of keys in the pages, from the classes of the files.

Run with ``python -m tools.schemas`` from the root of the repository: it writes what has changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from pinloop.boundary.json import key_table
from pinloop.cli import sheets as cli_documents
from pinloop.io import loopsfile
from pinloop.safety.brakes import file as brakefile
from pinloop.safety.stopping import result as stop_document
from pinloop.safety.studies import studyfile
from pinloop.scenarios import results as run_document
from pinloop.scenarios import scenario_entries as scenario
from pinloop.show import study_report

from .pages import DOCS

__all__ = ["SCHEMAS", "text_of"]

SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "brakes": brakefile.json_schema,
    "loops": loopsfile.json_schema,
    "run": run_document.json_schema,
    "scenario": scenario.json_schema,
    "stop": stop_document.json_schema,
    "study": studyfile.json_schema,
    "study-manifest": study_report.json_schema,
    **{name: partial(cli_documents.json_schema, name) for name in cli_documents.DOCUMENTS},
}
"""What makes each schema, by the name of its file."""


TABLES = {"scenario": scenario.TABLES, "studies": studyfile.TABLES}
"""Pages with tables of keys: each stands between ``<!-- keys of NAME -->`` and ``<!-- end -->``."""


def with_tables(page: str, text: str) -> str:
    """A page with its tables of keys as they are now."""
    for name, kind in TABLES[page].items():
        mark = f"<!-- keys of {name} -->\n"
        before, _, rest = text.partition(mark)
        text = before + mark + key_table(kind) + "<!-- end -->" + rest.partition("<!-- end -->")[2]
    return text


def text_of(name: str) -> str:
    """What the file of a schema has to say."""
    return json.dumps(SCHEMAS[name](), indent=2) + "\n"


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
