"""Notebooks as pages of the site, run when it is built: they are kept without what they print.

Only mkdocs imports this file (``hooks`` of ``mkdocs.yml``).
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.structure.files import File
from nbclient import NotebookClient

__all__ = ["on_files"]

FOLDER = Path(__file__).parents[1] / "examples" / "notebooks"
_ADDRESS = "http://127.0.0.1"
"""Of a live viewer, which a page of the site has no server for."""


def on_files(files: Any, *, config: Any) -> Any:
    """Add a page per notebook, and its pictures.

    Args:
        files: the files of the site.
        config: the configuration of mkdocs.

    Returns:
        The same files and more.
    """
    for path in sorted(FOLDER.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
        place = {"metadata": {"path": str(FOLDER)}}
        NotebookClient(notebook, timeout=300, kernel_name="python3", resources=place).execute()
        text, pictures = page(notebook, path.stem)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text))
        for name, content in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    return files


def page(notebook: Any, stem: str) -> tuple[str, dict[str, bytes]]:
    """A notebook that has run as Markdown, and its pictures by the names of their files."""
    parts = list[str]()
    pictures = dict[str, bytes]()
    for cell in notebook.cells:
        if cell.cell_type != "code":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            data = output.get("data", {"text/plain": output.get("text", "")})
            if "image/png" in data:
                name = f"{stem}_{len(pictures) + 1}.png"
                pictures[name] = base64.b64decode(data["image/png"])
                parts.append(f"![What the program above draws]({name})")
            elif data.get("text/plain", "").strip() and _ADDRESS not in str(data):
                parts.append(f"```text\n{data['text/plain'].rstrip()}\n```")
    parts.append(f"From `examples/notebooks/{stem}.ipynb`, as it ran when this site was built.")
    return "\n\n".join(parts) + "\n", pictures
