"""Studies without a results file leave nothing behind in the folder for temporary files."""

from collections.abc import Iterator
from importlib import import_module

import pytest


@pytest.fixture(scope="session", autouse=True)
def temporary_results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    module = import_module("pinloop.safety.studies.study")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "mkdtemp", lambda prefix: str(tmp_path_factory.mktemp(prefix)))
        yield
