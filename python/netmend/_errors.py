"""What goes wrong, as exceptions. A user's mistake is always told in parts: what is wrong, where, and what to try. A message may
hold names from files and ends up on terminals, so all of it is made printable here."""
from ._files import printable


class NetmendError(Exception):
    """Anything that netmend could not do."""


class NetmendInputError(NetmendError, ValueError):
    """The model, the data or an argument is at fault. `what` is the sentence, `hint` what to try."""

    def __init__(self, what, hint=""):
        self.what, self.hint = printable(what), printable(hint)
        super().__init__("%s\n  %s" % (self.what, self.hint) if hint else self.what)

    def __reduce__(self):  # between processes
        return type(self), (self.what, self.hint)


class NetmendInternalError(NetmendError):
    """netmend itself is at fault."""

    def __init__(self, what=""):
        super().__init__(printable(what))


class NetmendMissingError(NetmendError, ImportError):
    """The program, or a package that this needs, is not installed."""


class RecorderError(NetmendInputError):
    def __init__(self, what, where, hint):
        super().__init__("%s\n  where: %s\n  try:   %s" % (what, where, hint))
        self.what, self.where, self.hint = printable(what), printable(where), printable(hint)

    def __reduce__(self):
        return type(self), (self.what, self.where, self.hint)


class PatchError(RecorderError):
    """Changes that could not be written back; `report` says which and why."""

    def __init__(self, what, where, hint, report=None):
        self.report = report
        super().__init__(what, where, hint)
