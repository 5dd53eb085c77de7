"""Rows of a study to a Parquet file, a block at a time, so that memory does not grow."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from ...boundary.files import replace_file
from ...errors import PinloopError

if TYPE_CHECKING:
    from .study import Study

__all__ = ["write_parquet"]

_BLOCK = 4096


def write_parquet(study: Study, path: Path) -> Path:
    """Write the rows of a study.

    Args:
        study: the study.
        path: file to write; units are in the names of the columns.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise PinloopError(
            "Parquet files need pyarrow; install it with: pip install pyarrow"
        ) from None
    words = ("outcome", "reason")
    schema = pa.schema(
        [(name, pa.string() if name in words else pa.float64()) for name in study.names]
    )
    rows = study.rows()
    with replace_file(path) as file, pq.ParquetWriter(file, schema) as writer:
        while block := list(islice(rows, _BLOCK)):
            writer.write_table(pa.Table.from_pylist(block, schema=schema))
    return path
