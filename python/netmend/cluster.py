"""Evaluation shared out over a cluster that exists: the shards of one pass as tasks of Ray or Dask, merged here into the
result of one process, bit for bit.

    nm.cluster.ray("model.onnx", "images:/shared/test", shards=64)
    nm.cluster.dask(client, "model.onnx", "images:/shared/test", shards=64)

The model travels with the tasks. Data is read by each worker: it is a spec, or nm.Data(…, keep=FOLDER), on a file system that all
of them see. netmend is installed on every worker (the wheel brings the program).
"""
import os
import tempfile

from . import _program
from ._data import Data
from ._errors import NetmendInputError
from ._models import Model
from ._results import result_of
from ._workspace import Workspace


def shard(model, words, number, shards):
    """What a worker does: part `number` of `shards` (from 1), of a model given as bytes. Returns the state as bytes,
    or None for a part without inputs."""
    with tempfile.TemporaryDirectory(prefix="netmend-") as folder:
        file, state = os.path.join(folder, "model.onnx"), os.path.join(folder, "part.state")
        with open(file, "wb") as out:
            out.write(model)
        done = _program.run(["eval", file, *words, "--shard=%d/%d" % (number, shards), "-o", state], progress=False)
        if done.document["samples"] == 0:
            return None  # more parts than there are chunks of data
        with open(state, "rb") as found:
            return found.read()


def ray(model, data, shards=None, **options):
    """Evaluates with Ray. shards: how many tasks (default: one per CPU of the cluster). options: those of nm.eval, jobs
    among them, which is 1 here because Ray places a task on each CPU."""
    import ray as engine

    if not engine.is_initialized():
        engine.init()
    if shards is None:
        shards = max(1, int(engine.cluster_resources().get("CPU", 1)))
    content, words = _prepare(model, data, shards, options)
    kept, task = engine.put(content), engine.remote(shard)
    waiting = [task.remote(kept, words, number + 1, shards) for number in range(shards)]
    try:
        return _merge(model, words, [engine.get(one) for one in waiting])
    except engine.exceptions.RayTaskError as error:
        for one in waiting:
            engine.cancel(one)
        raise error.cause if isinstance(error.cause, Exception) else error


def dask(client, model, data, shards=None, **options):
    """The same with a dask.distributed Client."""
    if shards is None:
        shards = max(1, sum(client.nthreads().values()))
    content, words = _prepare(model, data, shards, options)
    kept = client.scatter(content, broadcast=True)
    waiting = [client.submit(shard, kept, words, number + 1, shards, pure=False) for number in range(shards)]
    try:
        return _merge(model, words, client.gather(waiting))
    finally:
        client.cancel(waiting)


def _prepare(model, data, shards, options):
    """The model as bytes and the words of the command, checked as nm.eval checks them."""
    from ._commands import Command, describe

    if not isinstance(shards, int) or isinstance(shards, bool) or shards < 1:
        raise NetmendInputError("shards=%r is not a number of parts" % (shards,))
    if not isinstance(data, (str, os.PathLike, Data)):
        raise NetmendInputError("Workers cannot reach a %s" % type(data).__name__,
                                "Save it where all of them see it: nm.Data(loader, keep='/shared/test.data').")
    command = Command(next(entry for entry in describe()["commands"] if entry["name"] == "eval"))
    given = command.bind((), {"jobs": 1, **options})
    wrong = [name for name in ("shard", "o", "out", "data", "model", "progress") if name in given]
    if wrong:
        raise NetmendInputError("%s is set by the cluster itself" % wrong[0])
    workspace = Workspace()
    words = [word for option in command.options for word in option.words(given.get(option.name), workspace, None)]
    spec = data.spec if isinstance(data, Data) else os.fspath(data)
    with open(_onnx_file(model, data), "rb") as file:
        return file.read(), words + ["--data=" + spec]


def _onnx_file(model, data):
    if isinstance(model, Model):
        return model.file
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model)
    raise NetmendInputError("A %s cannot be sent to workers" % type(model).__name__, "Export it first: nm.Model(module, data=data).")


def _merge(model, words, states):
    workspace = Workspace()
    files = []
    for number, state in enumerate(one for one in states if one is not None):
        files.append(workspace.path("%d.state" % number))
        with open(files[-1], "wb") as file:
            file.write(state)
    merged = ["lab", "merge"] + files
    return result_of("eval", merged, _program.run(merged, progress=False), workspace, {}, {})
