"""The report of a study: one HTML file with distributions, maps, worst cases and their replays.

Its size does not depend on the number of cases: pictures show bins, and only the worst cases are
replayed. Nothing is fetched when it is opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from ...boundary.files import as_path, may_replace, write_text
from ...errors import BadValue
from ...safety.studies.cases import WorstCase
from ...safety.studies.study import Study
from ...tables.report import Section
from .report_manifest import FORMAT, manifest_text
from .study_page import page_of

__all__ = ["write_report"]


def write_report(
    study: Study,
    path: str | Path,
    *,
    worst: Iterable[str] | Mapping[str, WorstCase] | None = None,
    sections: Iterable[Section] = (),
    stamp: bool = False,
) -> Path:
    """Write the report of a study as one HTML file that any browser shows without a network.

    What it was made from is in the page and in a file beside it, ``<path>.manifest.json``; its form
    is that of docs/schemas/study-manifest.schema.json. The same study gives the same bytes, unless
    it is stamped.

    Args:
        study: the study.
        path: file to write.
        worst: criteria whose worst samples are replayed, see `worst.criteria`, or worst cases that
            were found by `worst_case`; by default those that matter most.
        sections: further parts of one's own.
        stamp: say when it was written.

    Returns:
        The path of the file.

    Raises:
        UnknownName: a criterion that the study does not have.
        BadValue: a file cannot be written.
    """
    target = as_path(path)
    beside = target.with_name(f"{target.name}.manifest.json")
    if not may_replace(beside, FORMAT.encode()):
        raise BadValue(f"'{beside}' exists, and pinloop did not write it; name another report")
    manifest = manifest_text(study)
    text = page_of(study, manifest, worst=worst, sections=sections, stamp=stamp)
    write_text(target, text)
    write_text(beside, manifest)
    return target
