"""What tests of the commands share: an empty folder each, and a network that was trained once for all of them."""
import atexit
import os
import shutil
import tempfile
import unittest

import netmend as nm
from netmend import _program

from .support import missing

try:
    _program.program()
    PROGRAM = True
except nm.NetmendMissingError:
    PROGRAM = False

needs_program = unittest.skipIf(not PROGRAM, "" if PROGRAM else missing("the program netmend"))


class Model:
    """A network trained once for all tests."""

    folder = None

    @classmethod
    def file(cls):
        if cls.folder is None:
            cls.folder = tempfile.mkdtemp(prefix="netmend-model-")
            atexit.register(shutil.rmtree, cls.folder, ignore_errors=True)
            here = os.getcwd()
            os.chdir(cls.folder)
            try:
                raw = nm.lab.new("mlp:784-24-10", seed=1)
                nm.train(raw.files["o"], "glyphs", limit=3000, epochs=2, o="model.onnx")
            finally:
                os.chdir(here)
        return os.path.join(cls.folder, "model.onnx")


@needs_program
class InFolder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="netmend-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.addCleanup(os.chdir, os.getcwd())
        model = Model.file()
        os.chdir(self.folder)
        shutil.copy(model, "model.onnx")
