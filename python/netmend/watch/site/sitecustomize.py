"""Loaded by every Python that `netmend watch` starts, before the program; then makes way for the sitecustomize that would
have been loaded without us."""
import os
import sys


def _start():
    import importlib.util
    here = os.path.dirname(os.path.abspath(__file__))
    folder = os.path.dirname(here)
    spec = importlib.util.spec_from_file_location("_netmend_watch", os.path.join(folder, "__init__.py"),
                                                  submodule_search_locations=[folder])
    module = importlib.util.module_from_spec(spec)
    sys.modules["_netmend_watch"] = module
    spec.loader.exec_module(module)
    module.watch(os.environ["NETMEND_WATCH"])


def _make_way():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [one for one in sys.path if os.path.abspath(one or ".") != here]
    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError:
        if own is not None:
            sys.modules["sitecustomize"] = own


if os.environ.get("NETMEND_WATCH"):
    try:
        _start()
    except Exception:  # a program never fails because it is watched
        pass
_make_way()
