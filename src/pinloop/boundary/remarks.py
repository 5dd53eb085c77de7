"""What a reader did not understand or had to assume: equal remarks about many elements in one line.

Knows no format. Readers add a remark per element; the user reads one warning per kind.
"""

from __future__ import annotations

from collections.abc import Iterable

from .xml import Element

__all__ = ["Remarks", "listed"]


class Remarks:
    """Warnings of a reader, in the order in which they first came up."""

    def __init__(self) -> None:
        # Per kind of remark: its first sentence, the advice, and the names of the others.
        self._groups: dict[tuple[str, ...], tuple[str, str, list[str | int]]] = {}

    def add(self, element: Element, problem: str, advice: str = "") -> None:
        """Say something about an element.

        Args:
            element: what it is about.
            problem: the rest of the sentence whose subject is the element; elements of one kind
                with the same problem share a warning.
            advice: what to do, said once at the end.
        """
        name = element.get("name") or element.line
        kind = (element.source, element.tag, problem)
        self.about(kind, name, f"{element.where}: {element!r} {problem}", advice)

    def say(self, sentence: str) -> None:
        """Say something that is not about one element."""
        self.about((sentence,), "", sentence)

    def about(
        self, kind: tuple[str, ...], name: str | int, sentence: str, advice: str = ""
    ) -> None:
        """Say something about a named thing; those of one ``kind`` share the first sentence."""
        if kind in self._groups:
            self._groups[kind][2].append(name)
        else:
            self._groups[kind] = sentence, advice, []

    def texts(self) -> tuple[str, ...]:
        """The warnings."""
        return tuple(
            sentence + listed(others, "; likewise ") + advice
            for sentence, advice, others in self._groups.values()
        )


def listed(names: Iterable[str | int], before: str = "", most: int = 6) -> str:
    """Return names in quotes and numbers of lines, the first few, after ``before``; "" if none."""
    unique = [name for name in dict.fromkeys(names) if name]
    if not unique:
        return ""
    shown = [f"'{name}'" if isinstance(name, str) else f"line {name}" for name in unique[:most]]
    more = len(unique) - most
    return before + ", ".join(shown) + (f" and {more} more" if more > 0 else "")
