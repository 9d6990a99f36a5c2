"""What goes wrong, as exceptions. A user's mistake is always told in parts: what is wrong, where, and what to try."""


class NetmendError(Exception):
    """Anything that netmend could not do."""


class NetmendInputError(NetmendError, ValueError):
    """The model, the data or an argument is at fault. `what` is the sentence, `hint` what to try."""

    def __init__(self, what, hint=""):
        self.what, self.hint = what, hint
        super().__init__("%s\n  %s" % (what, hint) if hint else what)

    def __reduce__(self):  # between processes
        return type(self), (self.what, self.hint)


class NetmendInternalError(NetmendError):
    """netmend itself is at fault."""


class NetmendMissingError(NetmendError, ImportError):
    """The program, or a package that this needs, is not installed."""


class RecorderError(NetmendInputError):
    def __init__(self, what, where, hint):
        super().__init__("%s\n  where: %s\n  try:   %s" % (what, where, hint))
        self.what, self.where, self.hint = what, where, hint

    def __reduce__(self):
        return type(self), (self.what, self.where, self.hint)


class PatchError(RecorderError):
    """Changes that could not be written back; `report` says which and why."""

    def __init__(self, what, where, hint, report=None):
        self.report = report
        super().__init__(what, where, hint)
