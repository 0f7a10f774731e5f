"""The notebooks of the documentation run from their first cells to their last ones.

Each in a process of its own: one has a Spark of this machine, the other a client without any.
"""

import json
import os
from pathlib import Path

import pytest
from journal_maker import JournalMaker

from lockkeeper.message.destination import queue

PROJECT = Path(__file__).parents[2]
NOTEBOOKS = sorted((PROJECT / "docs" / "notebooks").glob("*.ipynb"))


def outputs_of(cell):
    """Return what a cell shows, as text."""
    return " ".join(json.dumps(output.get("data", {})) for output in cell.get("outputs", []))


def shown_by(name, directory, **environment):
    """Return what each code cell of a notebook shows."""
    # Not for those who only list the tests: seconds of building grammars.
    import nbclient
    import nbformat

    notebook = nbformat.read(PROJECT / "docs" / "notebooks" / name, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=500, resources={"metadata": {}})
    client.execute(cwd=str(directory), env={**os.environ, **environment})
    return [outputs_of(cell) for cell in notebook.cells if cell.cell_type == "code"]


@pytest.fixture
def journal(tmp_path, monkeypatch):
    """Return a journal of four messages, two of which are acknowledged."""
    maker = JournalMaker(tmp_path / "journal")
    maker.add(1, 0).add(2, 1000).add(3, 2000).add(4, 2000, queue("OTHER")).clock(2000).flush()
    maker.remove(1).clock(2080).flush().remove(2).clock(2500).flush()
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    return str(maker.directory)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_its_outputs(notebook):
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    assert all(not cell.get("outputs") and not cell.get("execution_count") for cell in cells)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_cell_of_the_notebook_runs(journal, tmp_path):
    shown = shown_by("journal.ipynb", tmp_path, JOURNAL=journal)
    assert "acknowledged" in shown[1] and "OTHER" in shown[1]
    assert "2080" in shown[2]
    assert shown[3].count("<title>") == 3
    assert "db-1.log" in shown[5]
    assert "ORDERS" in shown[6]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_cell_of_the_notebook_runs_by_spark_connect(journal, tmp_path):
    # Where the package is among the modules that are listed, as an installation has it.
    listed = str(PROJECT / "analytics")
    shown = shown_by("connect.ipynb", tmp_path, JOURNAL=journal, PYTHONPATH=listed)
    assert "acknowledged" in shown[1] and "OTHER" in shown[1]
    assert "ID:maker-1:1:1:1:1" in shown[2] and "2080" in shown[2]
