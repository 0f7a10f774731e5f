"""The notebook of the documentation runs from its first cell to its last."""

import json
import os
from pathlib import Path

import nbclient
import nbformat
import pytest
from journal_maker import JournalMaker

from lockkeeper.message.destination import queue

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebooks" / "journal.ipynb"


def outputs_of(cell):
    """Return what a cell shows, as text."""
    return " ".join(json.dumps(output.get("data", {})) for output in cell.get("outputs", []))


def test_the_notebook_is_kept_without_its_outputs():
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    assert all(not cell.get("outputs") and not cell.get("execution_count") for cell in cells)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_cell_of_the_notebook_runs(tmp_path, monkeypatch):
    maker = JournalMaker(tmp_path / "journal")
    maker.add(1, 0).add(2, 1000).add(3, 2000).add(4, 2000, queue("OTHER")).clock(2000).flush()
    maker.remove(1).clock(2080).flush().remove(2).clock(2500).flush()
    monkeypatch.setenv("JOURNAL", str(maker.directory))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    environment = dict(os.environ)
    client = nbclient.NotebookClient(notebook, timeout=500, resources={"metadata": {}})
    client.execute(cwd=str(tmp_path), env=environment)
    shown = [outputs_of(cell) for cell in notebook.cells if cell.cell_type == "code"]
    assert "acknowledged" in shown[1] and "OTHER" in shown[1]
    assert "2080" in shown[2]
    assert shown[3].count("<title>") == 3
    assert "db-1.log" in shown[5]
    assert "ORDERS" in shown[6]
