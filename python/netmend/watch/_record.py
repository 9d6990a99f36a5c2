"""The record of a training run: JSON Lines, appended to, readable while it is written, bounded (docs/training.md)."""
import json
import math
import os
import sys
import time

VERSION = 1
MOST_BYTES = 90 * 1024 * 1024  # a record never grows beyond this: what comes later is counted, not written
END_BYTES = 2 * 1024 * 1024  # of them kept for what is only known at the end, so that a full record ends like any other
AT_END = {"summary", "end", "failed", "nonfinite", "ring", "stopped", "modes", "order", "overlap", "fact", "loss", "data", "schedule", "probe", "checkpoint"}
FULL = 8192  # steps whose losses are kept one by one; from there on groups, whose length doubles with the steps


def number(value):
    """A float as JSON: NaN and Inf as words, the rest with seven digits."""
    if value is None or isinstance(value, (bool, int)):
        return value
    value = float(value)
    if math.isfinite(value):
        return float("%.7g" % value)
    return "NaN" if math.isnan(value) else ("Inf" if value > 0 else "-Inf")


def plain(value, depth=16):
    """Anything as JSON: what has no form of its own becomes short text, also what is nested deeply or holds itself."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)[:300]
    if isinstance(value, int):
        return int(value) if -1 << 63 <= value < 1 << 63 else "a number of %d bits" % int(value).bit_length()
    if isinstance(value, float):
        return number(value)
    if isinstance(value, (dict, list, tuple)) and depth == 0:
        return "a %s" % type(value).__name__
    if isinstance(value, dict):
        return {named(key): plain(one, depth - 1) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one, depth - 1) for one in value]
    try:
        return number(float(value))
    except Exception:
        return named(value)


def named(value):
    try:
        return str(value)[:200]
    except Exception:  # of the object's own __str__
        return "a %s" % type(value).__name__


def user_source(start=2, most=60):
    """`train.py:12`: the innermost line that belongs neither to a library nor to us."""
    here = os.path.dirname(os.path.abspath(__file__))
    frame = sys._getframe(start)
    while frame is not None and most:
        name = frame.f_code.co_filename
        if not (name.startswith((here, "<")) or "-packages" + os.sep in name or os.sep + "lib" + os.sep + "python" in name):
            return "%s:%d" % (os.path.basename(name), frame.f_lineno)
        frame, most = frame.f_back, most - 1
    return ""


class Record:
    """Opened by the first thing that is said. One process writes one file: a second one takes a name of its own."""

    def __init__(self, path):
        self.path = path
        self.begin()

    def begin(self):
        """Nothing is said yet; again in a process that was forked and writes a record of its own."""
        self.file, self.bytes, self.full = None, 0, False
        self.start, self.pid = time.time(), os.getpid()
        self.clock = time.perf_counter()
        self.pending, self.flushed, self.spoken = [], 0.0, False
        self.broken = ""  # why nothing can be written any more; the program goes on

    def _open(self):
        os.makedirs(os.path.dirname(os.path.abspath(self.path)), exist_ok=True)
        name = self.path
        stem, end = os.path.splitext(name)
        for attempt in range(1000):
            try:
                self.file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
                break
            except FileExistsError:
                name = "%s-%d%s%s" % (stem, self.pid, "-%d" % attempt if attempt else "", end)
        header = {"netmend": "training-record", "version": VERSION, "time": round(self.start, 3), "pid": self.pid,
                  "python": sys.version.split()[0], "program": [str(one)[:300] for one in getattr(sys, "argv", [])[:50]],
                  "rank": os.environ.get("RANK", "")}
        self._write(json.dumps(header) + "\n")

    def _write(self, text):
        data = text.encode("utf-8", "replace")
        self.bytes += len(data)
        while data:
            data = data[os.write(self.file, data):]

    def say(self, event, now=False, held=False, **fields):
        """A line. `now`: it is on its way to the disk when this returns. `held`: it makes no record by itself, it waits for another."""
        if os.getpid() != self.pid or (self.full and event not in AT_END):  # a fork that nobody told us of must not write into our file
            return
        line = {"e": event, "t": round(time.perf_counter() - self.clock, 4)}
        line.update(fields)
        self.pending.append((event, json.dumps(plain(line), separators=(",", ":"))))
        self.spoken = self.spoken or not held
        if self.spoken and (now or time.perf_counter() - self.flushed > 0.2):
            self.flush()

    def flush(self):
        if not self.pending or os.getpid() != self.pid:
            return
        lines, self.pending = self.pending, []
        try:
            if self.file is None:
                self._open()
            if not self.full and self.bytes + sum(len(text) + 1 for _, text in lines) > MOST_BYTES - END_BYTES:
                self.full = True
                lines = [("full", '{"e":"full"}')] + [one for one in lines if one[0] in AT_END]
            text = "".join(text + "\n" for _, text in lines)
            if self.bytes + len(text) <= MOST_BYTES:
                self._write(text)
        except OSError as error:  # a full disk: the missing end of the record shows it
            self.full, self.broken = True, error.strerror or str(error)
        self.flushed = time.perf_counter()


class Series:
    """Losses by step. Beyond FULL steps a group of steps is one value; the largest of the group stands beside it, so
    that a spike is never lost."""

    def __init__(self, record, optimizer):
        self.record, self.optimizer = record, optimizer
        self.step, self.values, self.largest, self.first = 0, [], [], 1
        self.sum, self.max, self.count, self.every = 0.0, -math.inf, 0, 1
        self.peak, self.total = (-math.inf, 0), 0.0  # the largest loss with its step, and the sum of all
        self.ring, self.wrote = [], time.perf_counter()  # others flush the record more often than losses are written

    def add(self, loss, rate):
        self.step += 1
        self.ring.append((self.step, loss, rate))
        if len(self.ring) > 128:
            del self.ring[:64]
        self.sum += loss
        self.total += loss
        self.count += 1
        if loss > self.max or loss != loss:
            self.max = loss
        if loss > self.peak[0]:
            self.peak = (loss, self.step)
        if self.count >= self.every:
            self.values.append(self.sum / self.count)
            self.largest.append(self.max)
            self.sum, self.max, self.count = 0.0, -math.inf, 0
            waited = time.perf_counter() - self.wrote
            if len(self.values) >= 512 or waited > 2.0 or (waited > 0.2 and len(self.values) >= 32):
                self.write()
            if self.step >= FULL * self.every:
                self.write()
                self.every *= 2

    def add_many(self, losses, rate):
        """Several steps at once."""
        if self.every > 1 or self.step + len(losses) >= FULL:
            for loss in losses:
                self.add(loss, rate)
            return
        self.ring.extend(zip(range(self.step + 1, self.step + 1 + len(losses)), losses, [rate] * len(losses)))
        if len(self.ring) > 256:
            del self.ring[:128]
        most = max(losses)
        self.total += sum(losses)
        if most > self.peak[0]:
            self.peak = (most, self.step + 1 + losses.index(most))
        self.step += len(losses)
        self.values.extend(losses)
        self.largest.extend(losses)
        if len(self.values) >= 512 or time.perf_counter() - self.wrote > 0.2:
            self.write()

    def write(self, now=False):
        self.wrote = time.perf_counter()
        if not self.values:
            return
        fields = {"optimizer": self.optimizer, "from": self.first, "every": self.every,
                  "loss": [number(one) for one in self.values]}
        if self.every > 1:
            fields["largest"] = [number(one) for one in self.largest]
        self.first += len(self.values) * self.every
        self.values, self.largest = [], []
        self.record.say("series", now=now, **fields)

    def write_ring(self):
        self.write()
        self.record.say("ring", now=True, optimizer=self.optimizer,
                        steps=[[step, number(loss), number(rate)] for step, loss, rate in self.ring[-64:]])


class Budget:
    """How often a step is looked at closely: the first ones always, later ones so that looking takes at most `share`
    of the time."""

    def __init__(self, share=0.025, first=(1, 2, 3, 6, 12, 25, 50), most=1.0):
        self.share, self.first, self.most, self.cost, self.free = share, first, most, 0.0, 0.0
        self.last = self.last_work = 0.0
        self.asked = 0

    def due(self, step):
        if step in self.first and self.free < self.most:
            return True
        wait = max(self.cost / self.share, 0.05)
        if step <= 3 or step < self.asked or time.perf_counter() - self.last <= wait:
            return False
        # On a busy machine most of the time passes without us: what counts is the work of this process. Asking for it
        # costs a system call, so not in every step.
        if time.process_time() - self.last_work > wait:
            return True
        self.asked = step + 16
        return False

    def spent(self, seconds):
        self.last, self.last_work, self.cost = time.perf_counter(), time.process_time(), seconds
        self.free += seconds
