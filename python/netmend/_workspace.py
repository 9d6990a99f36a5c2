"""Folders for what is handed to the program and what it makes: in memory where there is room, gone with the last object
that needs them."""
import os
import shutil
import tempfile
import weakref

_MEMORY = "/dev/shm"


def _roomy(path, needed):
    try:
        about = os.statvfs(path)
    except OSError:
        return False
    # Half of what is left: other programs use it too.
    return os.access(path, os.W_OK) and about.f_bavail * about.f_frsize // 2 >= needed


def new_folder(needed=0):
    """A folder for that many bytes, in shared memory if they fit. $NETMEND_SCRATCH names another place."""
    chosen = os.environ.get("NETMEND_SCRATCH")
    if not chosen and _roomy(_MEMORY, max(needed, 64 << 20)):
        chosen = _MEMORY
    return tempfile.mkdtemp(prefix="netmend-", dir=chosen or None)


class Workspace:
    """What belongs to one call: a folder that is made when something goes into it, and objects that must live as long.
    The folder is removed with the workspace, and at the end of Python."""

    def __init__(self):
        self.folder = None
        self.kept = []
        self.data = {}  # Data by the id of what the user gave, so that one call saves it once
        self.spec = None  # the first data that was given as a spec

    def path(self, name, needed=0):
        if self.folder is None:
            self.folder = new_folder(needed)
            self._end = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        return os.path.join(self.folder, name)
