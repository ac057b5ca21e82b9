"""Run notebooks at full size and write them back, with outputs and nothing of this machine."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from fastbandit.progress import Progress, progress_bar, silent

HERE = Path(__file__).parent
_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def read(path: Path) -> Any:
    """Read a notebook."""
    return nbformat.read(path, as_version=4)


def with_sizes(notebook: Any, sizes: Mapping[str, Any]) -> Any:
    """Put other values into the cell tagged `parameters`; it must hold those names."""
    (cell,) = (c for c in notebook.cells if "parameters" in c.metadata.get("tags", ()))
    known = {line.partition(" = ")[0] for line in cell.source.splitlines()}
    if unknown := set(sizes) - known:
        raise KeyError(f"The sizes are {sorted(known)}: got {sorted(unknown)}. Correct the names.")
    cell.source += "".join(f"\n{name} = {value!r}" for name, value in sizes.items())
    return notebook


def execute(notebook: Any, folder: Path, *, progress: Progress = silent) -> Any:
    """Run all cells in a folder; the first error ends it."""
    count = len(notebook.cells)
    NotebookClient(
        notebook,
        timeout=None,
        kernel_name="python3",
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
        on_cell_start=lambda cell, cell_index: progress(cell_index, count, "running cells"),
    ).execute()
    return notebook


def strip(notebook: Any) -> Any:
    """Drop what changes from run to run and says nothing: times of cells, the version of Python."""
    notebook.metadata = nbformat.from_dict(_METADATA)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    return notebook


def write(notebook: Any, path: Path) -> None:
    """Write beside, then rename."""
    part = path.with_suffix(".part")
    nbformat.write(notebook, part)
    os.replace(part, path)


def main(names: list[str]) -> None:
    """Run the notebooks named, or all of them, in folders that are thrown away."""
    known = {path.stem: path for path in sorted(HERE.glob("*.ipynb"))}
    if unknown := sorted(set(names) - set(known)):
        sys.exit(f"The notebooks are {', '.join(known)}: got {unknown[0]!r}. Name one of these.")
    for name in names or known:
        with tempfile.TemporaryDirectory() as folder, progress_bar(name) as progress:
            notebook = execute(read(known[name]), Path(folder), progress=progress)
        write(strip(notebook), known[name])


if __name__ == "__main__":
    main(sys.argv[1:])
