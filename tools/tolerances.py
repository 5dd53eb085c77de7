"""The table of `docs/tolerances.md`, from `pinloop.tolerances` and from who uses what.

Run with ``python -m tools.tolerances`` from the root of the repository; it prints the table.
``--write`` puts it into the page.
"""

from __future__ import annotations

import ast
import inspect
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pinloop.tolerances

from .house import Package
from .pages import DOCS, print_or_write, table

__all__ = ["PAGE", "Tolerance", "list_tolerances", "tolerance_table"]

PAGE = DOCS / "tolerances.md"
MEASURED = Path(__file__).with_name("scaled_tolerances.json")
"""Per tolerance a test that notices a factor, and the factor: see `tools.scaled_tolerances`."""
HEAD = ["name", "value", "unit", "what it decides", "used in", "fails when scaled by"]


@dataclass(frozen=True)
class Tolerance:
    """A line of the table.

    Args:
        name: by which the package uses it.
        value: the number.
        unit: its unit; 1 for a share.
        reason: what it decides.
        users: the folders whose files use it.
        test: one that fails when the number is scaled; empty if none was found.
        factor: by which it is scaled then.
    """

    name: str
    value: float
    unit: str
    reason: str
    users: tuple[str, ...]
    test: str
    factor: float

    @property
    def measured(self) -> str:
        """Which test notices by which factor it is scaled; empty if none was found."""
        if not self.test:
            return ""
        path, _, function = self.test.partition("[")[0].partition("::")
        return f"{self.factor:.0e}: `{path.removeprefix('tests/')}` `{function}`"


def list_tolerances(package: Package) -> Iterator[Tolerance]:
    """All tolerances, in the order of their file."""
    users = _users(package)
    noticed = json.loads(MEASURED.read_text(encoding="utf-8"))
    body = ast.parse(inspect.getsource(pinloop.tolerances)).body
    owners = [(pinloop.tolerances, "", body)]
    for node in body:
        if isinstance(node, ast.ClassDef):
            owners.append((getattr(pinloop.tolerances, node.name), f"{node.name}.", node.body))
    for owner, prefix, block in owners:
        for node, text in pairwise(block):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                if not (isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)):
                    raise ValueError(f"{prefix}{name} has no text that says its unit and meaning")
                unit, _, reason = " ".join(str(text.value.value).split()).partition(": ")
                yield Tolerance(
                    f"{prefix}{name}",
                    getattr(owner, name),
                    unit,
                    reason,
                    tuple(sorted(users[f"{prefix}{name}"])),
                    *noticed.get(f"{prefix}{name}", ("", 1.0)),
                )


def _users(package: Package) -> dict[str, set[str]]:
    """By name, plain or with the class before it, the folders in whose files it occurs."""
    users: dict[str, set[str]] = defaultdict(set)
    for module in package.modules.values():
        if module.path.stem == "tolerances":
            continue
        for node in module.nodes:
            if isinstance(node, ast.Name):
                users[node.id].add(module.folder)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                users[f"{node.value.id}.{node.attr}"].add(module.folder)
    return users


def tolerance_table(package: Package) -> str:
    """The table of the page."""
    rows = [
        [f"`{t.name}`", f"{t.value:g}", t.unit, t.reason, ", ".join(t.users), t.measured]
        for t in list_tolerances(package)
    ]
    return table(HEAD, rows, "lrllll")


def main() -> None:
    """Print the table, or write it into the page."""
    print_or_write(PAGE, [("tolerances", tolerance_table(Package()))], __doc__)


if __name__ == "__main__":
    main()
