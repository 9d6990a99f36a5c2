"""The notebook of examples/, cell by cell."""
import os
import unittest

from netmend import _program

from .program import InFolder
from .support import HERE, missing, needs_torch

try:
    import ipykernel  # noqa: F401, the kernel that runs it
    import nbclient
    import nbformat
    import onnx  # noqa: F401, which PyTorch exports with
except ImportError as error:
    nbclient, LACKING = None, missing(error.name)

NOTEBOOK = os.path.join(os.path.dirname(HERE), "examples", "notebook.ipynb")


@needs_torch
@unittest.skipIf(nbclient is None, "" if nbclient else LACKING)
class Notebook(InFolder):
    def test_every_cell_runs(self):
        os.environ["NETMEND_PROGRAM"] = _program.program()
        before = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = HERE
        self.addCleanup(lambda: os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before))
        notebook = nbformat.read(NOTEBOOK, as_version=4)
        self.assertFalse([c for c in notebook.cells if c.cell_type == "code" and c.outputs], "outputs are not committed")
        nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": "."}}).execute()
        pages = [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs if "<iframe" in str(o.get("data", {}).get("text/html"))]
        self.assertEqual(len(pages), 1)
        screens = [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs if "The whole report" in str(o.get("data"))]
        self.assertTrue(screens)
        said = "".join(o.get("text", "") for c in notebook.cells if c.cell_type == "code" for o in c.outputs)
        self.assertIn("accuracy on the tests", said)
