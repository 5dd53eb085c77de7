"""Robot formats that are not pinloop's own: `load` asks them first what a file is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from ..boundary.values import Registry
from ..errors import LoadError, PinloopError
from ..model.description import Description


class RobotFormat(ABC):
    """A format of robot files; `pinloop.load` knows a class with a name once it is defined."""

    name: ClassVar[str]
    """Name for messages."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Enter a class that has a name."""
        super().__init_subclass__(**kwargs)
        if "name" in vars(cls):
            _FORMATS.enter(cls.name, cls)

    @abstractmethod
    def recognises(self, content: bytes, suffix: str) -> bool:
        """Whether a file is of this format.

        Args:
            content: the whole file.
            suffix: end of its name, such as ``.csv``; empty for a text that is no file.
        """

    @abstractmethod
    def read(self, content: bytes, source: str) -> Description:
        """Describe the robot.

        Args:
            content: the whole file.
            source: its name, for messages.

        Raises:
            LoadError: what is wrong in the file.
        """


_FORMATS: Registry[RobotFormat] = Registry("robot format")


def read_own_format(content: bytes, source: str, suffix: str) -> Description | None:
    """Read a file in the format that recognises it; None if none does.

    Raises:
        LoadError: the file is wrong, or what reads it failed.
    """
    for cls in _FORMATS:
        try:
            robot_format = cls()
            if robot_format.recognises(content, suffix):
                return robot_format.read(content, source)
        except PinloopError:
            raise
        except Exception as error:
            problem = f"the robot format {cls.name} failed on it: {type(error).__name__}: {error}"
            raise LoadError(problem, source=source) from error
    return None
