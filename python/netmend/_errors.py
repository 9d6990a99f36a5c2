"""A user's mistake, always told in three parts: what is wrong, where, and what to try."""


class RecorderError(ValueError):
    def __init__(self, what, where, hint):
        self.what, self.where, self.hint = what, where, hint
        super().__init__("%s\n  where: %s\n  try:   %s" % (what, where, hint))


class PatchError(RecorderError):
    """Changes that could not be written back; `report` says which and why."""

    def __init__(self, what, where, hint, report=None):
        self.report = report
        super().__init__(what, where, hint)
