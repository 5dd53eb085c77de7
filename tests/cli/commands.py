"""The command line as tests call it, in this process and as a program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import jsonschema
import pytest

from pinloop.cli import main as cli

Captured = pytest.CaptureFixture[str]


def printed_json(
    capsys: Captured,
    *words: str,
    code: int = 0,
    schema: Mapping[str, Any] | None = None,
    quiet: bool = False,
) -> dict[str, Any]:
    """What a command prints as JSON, by a schema; if it is quiet, it does not warn."""
    assert cli.run([*words, "--json"]) == code
    out, err = capsys.readouterr()
    assert err == "" or not quiet
    data = json.loads(out)
    if schema is not None:
        jsonschema.Draft202012Validator(schema).validate(data)
    assert isinstance(data, dict)
    return data


@contextmanager
def program(*words: str, **more: Any) -> Iterator[subprocess.Popen[str]]:
    """A command in a process of its own, which ends with the block."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = {"env": {**os.environ, "PYTHONUNBUFFERED": ""}}
    process = subprocess.Popen(
        [sys.executable, "-m", "pinloop", *words], **{**pipes, **environment, **more}
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
