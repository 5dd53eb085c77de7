"""Programs without loops or branches, recorded while Python computes with symbols.

`Recorder` notes each operation on its symbols as one assignment that C and Python read alike; what
is computed twice is noted once, zeros and ones vanish, and what no result needs is left out. Arrays
of symbols are NumPy arrays of objects, so that formulas are written as for numbers. Numbers stay
numbers. What is computed is nobody's business here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Value: TypeAlias = "Symbol | float"


class Symbol:
    """An intermediate result of a program that is being recorded."""

    __slots__ = ("_recorder", "name")

    def __init__(self, recorder: Recorder, name: str) -> None:
        self._recorder, self.name = recorder, name

    def __add__(self, other: Any) -> Any:
        return self._noted("+", other, lambda x: self if x == 0.0 else None)

    def __mul__(self, other: Any) -> Any:
        return self._noted("*", other, self._multiple)

    def __sub__(self, other: Any) -> Any:
        return self._noted("-", other, lambda x: self if x == 0.0 else None)

    def __truediv__(self, other: Any) -> Any:
        return self._noted("/", other, lambda x: self if x == 1.0 else None)

    def __rsub__(self, other: float) -> Any:
        return -self if other == 0.0 else self._recorder.note(f"{_text(other)} - {self.name}", self)

    def __rtruediv__(self, other: float) -> Any:
        return 0.0 if other == 0.0 else self._recorder.note(f"{_text(other)} / {self.name}", self)

    def __neg__(self) -> Symbol:
        return self._recorder.note(f"-{self.name}", self)

    __radd__, __rmul__ = __add__, __mul__

    def _noted(self, sign: str, other: Any, shorter: Callable[[float], Value | None]) -> Any:
        """The result of an operation; ``shorter`` is what it comes to with some numbers."""
        if isinstance(other, Symbol):
            names = [self.name, other.name]
            if sign in "+*":
                names.sort()  # a + b is b + a
            return self._recorder.note(f" {sign} ".join(names), self, other)
        if not isinstance(other, (int, float)):
            return NotImplemented  # arrays go through their entries
        short = shorter(float(other))
        if short is not None:
            return short
        return self._recorder.note(f"{self.name} {sign} {_text(other)}", self)

    def _multiple(self, factor: float) -> Value | None:
        if factor == 0.0:
            return 0.0
        if factor == 1.0:
            return self
        return -self if factor == -1.0 else None


class Recorder:
    """A program while it is recorded."""

    def __init__(self) -> None:
        self._lines: dict[str, tuple[str, tuple[str, ...]]] = {}
        """By right-hand side the name of its result, and the names that it needs."""

    def note(self, text: str, *needs: Symbol) -> Symbol:
        """The symbol of a right-hand side, computed once, or of what is given, as ``q[3]``."""
        name = f"t{len(self._lines)}"
        line = self._lines.setdefault(text, (name, tuple(need.name for need in needs)))
        return Symbol(self, line[0])

    def call(self, function: str, *arguments: Any) -> Symbol:
        """A function that C's math.h and Python's math share."""
        text = ", ".join(x.name if isinstance(x, Symbol) else _text(x) for x in arguments)
        return self.note(f"{function}({text})", *(x for x in arguments if isinstance(x, Symbol)))

    def program(self, results: Mapping[str, Value], declare: str = "") -> list[str]:
        """Assignments to intermediate results, then to those that are asked for.

        Args:
            results: values by what they are assigned to, such as ``J[0][2]``.
            declare: what stands before the name of an intermediate result.
        """
        needed = {value.name for value in results.values() if isinstance(value, Symbol)}
        lines = list[str]()
        for text, (name, needs) in reversed(self._lines.items()):
            if name in needed:
                needed.update(needs)
                lines.append(f"{declare}{name} = {text}")
        lines.reverse()
        return lines + [
            f"{target} = {value.name if isinstance(value, Symbol) else _text(value)}"
            for target, value in results.items()
        ]


def _text(number: float) -> str:
    """A number as both languages read it, negative ones in brackets."""
    text = repr(float(number))
    return f"({text})" if text.startswith("-") else text
