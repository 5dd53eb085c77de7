"""Measures of the source: how large it is, what imports what, what is used once, how it reads.

Run with ``python -m tools.house`` from the root of the repository; ``--all`` lists every place that
exceeds a target, not only the first ones. `tests/project/test_house.py` holds the source to them.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import resolve_name
from pathlib import Path

import numpy as np
from scipy.sparse.csgraph import connected_components

__all__ = ["MEASURES", "Measure", "Package", "report"]

SOURCE = Path(__file__).parents[1] / "src" / "pinloop"
SPECIAL = ("__init__", "__main__")
WORDS = {"one", "found", "made", "told", "kept", "said"}
"""Names that say nothing of what they name."""
SMALL, LONG, MOST_PARAMETERS = 120, 60, 8
LISTED = 12

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """A file of a package.

    Args:
        path: the file, relative to the package.
        name: its name for imports.
        text: what is in it.
    """

    path: Path
    name: str
    text: str

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Everything in its syntax tree."""
        return tuple(ast.walk(ast.parse(self.text)))

    @property
    def folder(self) -> str:
        """The folder of the first level that it is in; empty for those beside them."""
        return self.path.parts[0] if len(self.path.parts) > 1 else ""

    @property
    def is_special(self) -> bool:
        """Whether its name is not of its own choice."""
        return self.path.stem in SPECIAL

    @property
    def lines(self) -> int:
        """Number of its lines."""
        return self.text.count("\n")

    def functions(self) -> Iterator[Function]:
        """Functions and methods, those inside others too."""
        return (node for node in self.nodes if isinstance(node, Function))

    def at(self, node: ast.stmt | ast.expr | ast.arg, what: str = "") -> str:
        """Where something is."""
        return f"{self.path}:{node.lineno} {what}".rstrip()


class Package:
    """All files of a package, and what they import of each other.

    Args:
        root: the folder of the package.
    """

    def __init__(self, root: Path = SOURCE) -> None:
        self.modules: dict[str, Module] = {}
        for file in sorted(root.rglob("*.py")):
            path = file.relative_to(root)
            parts = (root.name, *path.with_suffix("").parts)
            name = ".".join(parts[:-1] if path.stem == "__init__" else parts)
            self.modules[name] = Module(path, name, file.read_text(encoding="utf-8"))

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """Per module those that it imports: in functions and for type checkers too."""
        return {name: set(self._imported(module)) for name, module in self.modules.items()}

    def _imported(self, module: Module) -> Iterator[str]:
        package = module.name if module.path.stem == "__init__" else module.name.rpartition(".")[0]
        for node in module.nodes:
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = resolve_name("." * node.level + (node.module or ""), package)
                full = [f"{base}.{alias.name}" for alias in node.names]
                names = [name if name in self.modules else base for name in full]
            yield from (name for name in names if name in self.modules and name != module.name)


def _file_names(package: Package) -> Iterator[str]:
    folders: dict[str, list[str]] = defaultdict(list)
    for module in package.modules.values():
        if not module.is_special:
            folders[module.path.name].append(str(module.path.parent))
    return (f"{name}: {', '.join(at)}" for name, at in folders.items() if len(at) > 1)


def _prefixes(package: Package) -> Iterator[str]:
    """Folders that are written as the first word of three file names or more."""
    counts = Counter(
        module.path.parent / module.path.stem.partition("_")[0]
        for module in package.modules.values()
        if "_" in module.path.stem.strip("_")
    )
    return (f"{prefix}_*" for prefix, count in counts.items() if count > 2)


def _cycles(edges: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Groups of nodes that all reach each other."""
    places = {name: k for k, name in enumerate(edges)}
    matrix = np.zeros((len(places), len(places)), dtype=bool)
    for name, targets in edges.items():
        matrix[places[name], [places[target] for target in targets]] = True
    _, labels = connected_components(matrix, connection="strong")
    groups = defaultdict(list)
    for name, label in zip(edges, labels.tolist(), strict=True):
        groups[label].append(name)
    return (", ".join(group) for group in groups.values() if len(group) > 1)


def _module_cycles(package: Package) -> Iterator[str]:
    """Cycles between files; an ``__init__`` hands names on and is none of them."""
    own = {name for name, module in package.modules.items() if module.path.stem != "__init__"}
    return _cycles({name: package.imports[name] & own for name in package.modules if name in own})


def _folder_cycles(package: Package) -> Iterator[str]:
    folders = {name: module.folder for name, module in package.modules.items()}
    edges: dict[str, set[str]] = {folder: set() for folder in folders.values() if folder}
    for name, targets in package.imports.items():
        if folders[name]:
            edges[folders[name]] |= {folders[target] for target in targets} - {"", folders[name]}
    return _cycles(edges)


def _inner_imports(package: Package) -> Iterator[str]:
    """Imports inside functions; those of nested functions count once."""
    for module in package.modules.values():
        places = {
            module.at(node)
            for function in module.functions()
            if function.name != "__getattr__"
            for node in ast.walk(function)
            if isinstance(node, ast.Import | ast.ImportFrom)
        }
        yield from sorted(places)


def _used_once(package: Package) -> Iterator[str]:
    importers = Counter(target for targets in package.imports.values() for target in targets)
    for name, module in package.modules.items():
        if importers[name] == 1 and module.lines < SMALL and not module.is_special:
            yield str(module.path)


def _long_functions(package: Package) -> Iterator[str]:
    """Functions with many lines; their docstrings are not counted."""
    for module in package.modules.values():
        for node in module.functions():
            first = node.body[0]
            size = (node.end_lineno or 0) - node.lineno + 1
            if ast.get_docstring(node) is not None:
                size -= (first.end_lineno or 0) - first.lineno + 1
            if size > LONG:
                yield module.at(node, f"{node.name} ({size})")


def _wide_functions(package: Package) -> Iterator[str]:
    """Functions with many parameters; commands of the command line have one per option."""
    for module in package.modules.values():
        for node in module.functions():
            given = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
            count = sum(argument.arg not in ("self", "cls") for argument in given)
            if count > MOST_PARAMETERS and module.folder != "cli":
                yield module.at(node, f"{node.name} ({count})")


def _empty_words(package: Package) -> Iterator[str]:
    for module in package.modules.values():
        for node in module.nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in WORDS:
                yield module.at(node, node.id)
            elif isinstance(node, ast.arg) and node.arg in WORDS:
                yield module.at(node, node.arg)


def _exceptions(package: Package) -> Iterator[str]:
    """Lines that the type checker or the formatter is told to leave alone."""
    for module in package.modules.values():
        for number, line in enumerate(module.text.splitlines(), 1):
            yield from (f"{module.path}:{number}" for _ in re.finditer(_LEFT_ALONE, line))


def _bare_tolerances(package: Package) -> Iterator[str]:
    """Numbers near zero that have no name in `pinloop.tolerances`."""
    for module in package.modules.values():
        if module.path.as_posix() in _OTHER_NUMBERS:
            continue
        for node in module.nodes:
            if isinstance(node, ast.Constant) and _is_near_zero(node.value):
                yield module.at(node, repr(node.value))


def _is_near_zero(value: object) -> bool:
    return isinstance(value, float) and 0 < abs(value) < 1e-4


_OTHER_NUMBERS = {"tolerances.py", "units.py", "integrate/tableaux.py"}
"""Where numbers near zero may stand: the table, factors of units, coefficients of methods."""
_LEFT_ALONE = r"#\s*(?:type: ignore|fmt: skip)"


@dataclass(frozen=True)
class Measure:
    """Something that is counted.

    Args:
        name: what is counted.
        target: how much there may be in the end.
        places: finds everything that counts.
        is_listed: whether the places are worth reading.
    """

    name: str
    target: int
    places: Callable[[Package], Iterable[str]]
    is_listed: bool = True


def _lines(package: Package) -> Iterator[str]:
    return (line for module in package.modules.values() for line in module.text.splitlines())


MEASURES = (
    Measure("lines", 43_500, _lines, is_listed=False),
    Measure("files", 180, lambda package: package.modules, is_listed=False),
    Measure("files beside the folders", 6, lambda package: [
        str(module.path) for module in package.modules.values() if len(module.path.parts) == 1
    ]),
    Measure("file names used twice", 8, _file_names),
    Measure("folders written as prefixes", 0, _prefixes),
    Measure("cycles between modules", 0, _module_cycles),
    Measure("cycles between folders", 0, _folder_cycles),
    Measure("imports inside functions", 10, _inner_imports),
    Measure("small modules with one user", 15, _used_once),
    Measure("long functions", 0, _long_functions),
    Measure("functions with many parameters", 6, _wide_functions),
    Measure("names that say nothing", 50, _empty_words),
    Measure("lines left alone by tools", 40, _exceptions),
    Measure("tolerances outside the table", 0, _bare_tolerances),
)  # fmt: skip


def report(package: Package, most: int = LISTED) -> str:
    """What is counted, as text: a table, and the places behind what exceeds its target.

    Args:
        package: the package.
        most: so many places of each are listed.
    """
    places = {measure: list(measure.places(package)) for measure in MEASURES}
    lines = [f"{'':34}{'is':>8}{'target':>8}"]
    lines += [f"{one.name:34}{len(at):8}{one.target:8}" for one, at in places.items()]
    for measure, at in places.items():
        if measure.is_listed and len(at) > measure.target:
            lines += ["", f"{measure.name}:", *(f"  {place}" for place in at[:most])]
            lines += [f"  and {len(at) - most} more"] if len(at) > most else []
    return "\n".join(lines)


def main() -> None:
    """Print the measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="list every place")
    arguments = parser.parse_args()
    print(report(Package(), most=10**6 if arguments.all else LISTED))


if __name__ == "__main__":
    main()
