"""Which tests notice that a tolerance is scaled: a plugin of pytest that measures it.

Run with ``pytest -p tools.scaled_tolerances --scaled FILE.json -m fast`` from the root of the
repository. Each test runs as it is, and again with each tolerance that it used scaled, until a test
fails for that tolerance. ``FILE.json`` holds, per tolerance, the test and the factor. It is
continued where it exists, and an entry is tried again where its test is among those that run.
`docs/tolerances.md` shows `scaled_tolerances.json`. The marks fast and physics take about an hour
of one core.
"""

from __future__ import annotations

import ast
import builtins
import json
import sys
import time
from collections import Counter
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from .pages import ROOT

__all__ = ["FACTORS"]

FACTORS = (1e3, 1e-3, 1e9, 1e-9)

_MOST, _SLOW = 40, 3.0
"""Tests per tolerance that are tried, and seconds of a test that is not."""
_SOURCE = ROOT / "src" / "pinloop"


def _names() -> set[str]:
    """The tolerances, plain or with their class before them."""
    names = set()
    for node in ast.parse((_SOURCE / "tolerances.py").read_text(encoding="utf-8")).body:
        block = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        names |= {prefix + ast.unparse(n.targets[0]) for n in block if isinstance(n, ast.Assign)}
    return names


class _Uses(ast.NodeTransformer):
    """Lets every use of a tolerance pass through ``tolerance_used``."""

    names = _names()

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._wrapped(node) if isinstance(node.ctx, ast.Load) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        wrapped = self._wrapped(node)
        return self.generic_visit(node) if wrapped is node else wrapped

    def _wrapped(self, node: ast.expr) -> ast.expr:
        name = ast.unparse(node)
        if name not in self.names:
            return node
        called = ast.Name("tolerance_used", ast.Load())
        return ast.copy_location(ast.Call(called, [ast.Constant(name), node], []), node)


class _Plugin:
    def __init__(self, path: Path) -> None:
        self._path, self._factor = path, dict[str, float]()
        self._used: set[str] = set()
        self._tried: Counter[str] = Counter()
        self._noticed: dict[str, list[Any]] = {}
        self._earlier = json.loads(path.read_text()) if path.exists() else {}
        vars(builtins)["tolerance_used"] = self._use

    def _use(self, name: str, value: float) -> float:
        self._used.add(name)
        return value * self._factor.get(name, 1.0)

    def _passes(self, item: pytest.Item) -> bool:
        item._initrequest()  # type: ignore[attr-defined]
        # What comes next is of the same file, but not this item, which would not be set up again.
        following: Any = item.parent
        reports = runtestprotocol(item, log=False, nextitem=following)
        return all(report.passed for report in reports)

    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        self._used.clear()
        began = time.monotonic()
        fine = self._passes(item) and time.monotonic() - began < _SLOW and self._passes(item)
        for name in sorted(self._used) if fine else ():
            test, factor = self._earlier.get(name, (item.nodeid, None))
            if name in self._noticed or test != item.nodeid or self._tried[name] >= _MOST:
                continue
            self._tried[name] += 1
            for each in FACTORS if factor is None else (factor,):
                self._factor = {name: each}
                noticed = not self._passes(item)
                self._factor = {}
                if noticed:
                    self._noticed[name] = [item.nodeid, each]
                    break
        item.session._setupstate.teardown_exact(nextitem)
        return True

    def pytest_sessionfinish(self) -> None:
        lost = [name for name in self._earlier if self._tried[name] and name not in self._noticed]
        kept = {name: at for name, at in self._earlier.items() if name not in lost}
        self._path.write_text(json.dumps(dict(sorted((kept | self._noticed).items())), indent=1))
        unnoticed = sorted(set(self._tried) - set(self._noticed))
        print(f"\nnoticed: {len(self._noticed)}; not: {', '.join(unnoticed) or 'none'}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the file of the results."""
    parser.addoption("--scaled", type=Path, required=True, help="file of the results")


def pytest_configure(config: pytest.Config) -> None:
    """Watch the tolerances of all modules that are imported from now on."""
    sys.dont_write_bytecode = True
    compile_plain = SourceFileLoader.source_to_code

    def source_to_code(self: Any, data: Any, path: Any, *, _optimize: int = -1) -> Any:
        place = Path(str(path))
        if _SOURCE in place.parents and place.name != "tolerances.py":
            data = ast.fix_missing_locations(_Uses().visit(ast.parse(data)))
        return compile_plain(self, data, path, _optimize=_optimize)

    SourceFileLoader.source_to_code = source_to_code  # type: ignore[method-assign]
    # Modules compiled before would not be watched.
    SourceFileLoader.get_code = _get_code_anew  # type: ignore[method-assign, assignment]
    config.pluginmanager.register(_Plugin(config.getoption("--scaled")), "scaled tolerances")


_get_code = SourceFileLoader.get_code


def _get_code_anew(self: SourceFileLoader, fullname: str) -> Any:
    path = self.get_filename(fullname)
    if _SOURCE not in Path(path).parents:
        return _get_code(self, fullname)
    return self.source_to_code(self.get_data(path), path)
