"""Runs a function right after a module was loaded, without loading anything by ourselves: import order, thread settings
and seeds stay the program's."""
import importlib.abc
import importlib.machinery
import sys


class _Loader(importlib.abc.Loader):
    def __init__(self, loader, then):
        self.loader, self.then = loader, then

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        try:
            module.__spec__.loader = module.__loader__ = self.loader  # nobody finds us later
        except Exception:
            pass
        self.then(module)

    def __getattr__(self, name):
        return getattr(self.loader, name)


class AfterImport(importlib.abc.MetaPathFinder):
    def __init__(self, then):
        self.then, self.busy = dict(then), set()

    def find_spec(self, name, path=None, target=None):
        if name not in self.then or name in self.busy:
            return None
        self.busy.add(name)
        try:
            for finder in sys.meta_path:
                if finder is self or not hasattr(finder, "find_spec"):
                    continue
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    break
            else:
                return None
        finally:
            self.busy.discard(name)
        if spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._once(name))
        return spec

    def _once(self, name):
        then = self.then.pop(name)

        def run(module):
            try:
                then(module)
            except Exception as error:  # a framework that we do not know well enough is left alone
                from . import complain
                complain("%s is not watched: %s: %s" % (name, type(error).__name__, error))

        return run


def after_import(then):
    """`then`: functions by module name. Modules that are loaded already are handed over at once."""
    for name in [name for name in then if name in sys.modules]:
        then[name](sys.modules[name])
        del then[name]
    finder = AfterImport(then)
    sys.meta_path.insert(0, finder)
    return finder
