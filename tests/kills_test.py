"""Processes killed at random moments (SIGKILL) and started again: nothing that was finished is lost or done twice, no
file is half-written, and the end is the same, bit for bit, as without a kill.

NETMEND_KILLS=N kills as often in all (default 48); the seed is fixed, NETMEND_SEED=N takes another.
"""
import contextlib, os, random, signal, sqlite3, subprocess, time

from shell import *

SEED = int(os.environ.get("NETMEND_SEED", "1"))
KILLS = int(os.environ.get("NETMEND_KILLS", "48")) // 4
MODEL = None


def setUpModule():
    global MODEL
    MODEL = model("mlp:784-24-16-10", "--data", "glyphs", "--limit", 4000, "--rate", 0.003, epochs=2)


class SlowKills(Case):
    def started(self, *arguments):
        """Its output ends when all of it has ended."""
        return subprocess.Popen([NETMEND, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=quick())

    def disturb(self, command, look, again):
        """`look` is called after each kill and at the end; `again` makes the work begin anew when it is done.
        The delays are drawn over the time that the whole work takes."""
        began = time.monotonic()
        self.ok(*command)
        seconds = time.monotonic() - began
        look()
        again()
        draw, kills, ends = random.Random(SEED), 0, 0
        while kills < KILLS:
            job = self.started(*command)
            try:
                said = job.communicate(timeout=draw.uniform(0.02, max(0.3, 0.7 * seconds)))
                self.assertEqual(job.returncode, 0, said)
                ends += 1
                look()
                again()
            except subprocess.TimeoutExpired:
                job.kill()
                job.communicate()
                kills += 1
                look()
        self.ok(*command)
        look()
        print(f"{command[0]}: {kills} kills, finished {ends + 1} times between them", flush=True)

    def remove(self, *names):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(name) if os.path.isdir(name) else os.unlink(name)

    def no_leftovers(self, folder="."):
        """Of the run before the last kill: the next start removes what a killed one left beside its product."""
        left = [name for name in os.listdir(folder) if re.search(r"\.part\d+$", name)]
        self.assertLessEqual(len(left), 1, left)

    def test_training(self):
        command = ("train", MODEL, "--data", "glyphs:train", "--limit", 3000, "--epochs", 8, "--checkpoint", "c", "--resume",
                   "-o", "t.onnx", "--out", "run", "--quiet")
        self.products, self.epochs = set(), 0

        def look():
            self.no_leftovers()
            if os.path.exists("c"):
                header = json.loads(read_bytes("c").split(b"\n")[2])
                self.assertGreaterEqual(len(header["history"]), self.epochs)  # nothing finished is lost
                self.epochs = len(header["history"])
            else:
                self.assertEqual(self.epochs, 0)
            if os.path.exists("t.onnx"):
                self.products.add(read_bytes("t.onnx"))
                self.assertEqual(len(self.products), 1)

        def again():
            self.remove("c", "t.onnx")
            self.epochs = 0

        self.disturb(command, look, again)

    def test_fuzz(self):
        command = ("stress", MODEL, "--data", "glyphs:test", "--limit", 300, "--method", "fuzz", "--steps", 6, "--criteria",
                   "NC:0.5,TKNC", "-o", "f.npz", "--out", "run", "--quiet")
        self.products, self.queue = set(), b""

        def look():
            self.no_leftovers()
            queue = read_bytes("f.queue") if os.path.exists("f.queue") else b""
            # The last round may be on its way: what is whole stays and is only added to.
            shared_part = os.path.commonprefix([queue, self.queue])
            self.assertGreaterEqual(len(shared_part), len(self.whole(self.queue)))
            self.queue = queue
            if os.path.exists("f.npz"):
                self.products.add(read_bytes("f.npz"))
                self.assertEqual(len(self.products), 1)

        def again():
            self.remove("f.queue", "f.npz")
            self.queue = b""

        self.disturb(command, look, again)

    @staticmethod
    def whole(queue):
        """Its records that are complete."""
        at = len("netmend-queue 2\n")
        if len(queue) < at:
            return b""
        while len(queue) >= at + 24:
            length = struct.unpack_from("<q", queue, at)[0]
            if at + 24 + length > len(queue):
                break
            at += 24 + length
        return queue[:at]

    def test_study(self):
        for i in range(4):
            shutil.copy(MODEL, f"m{i}.onnx")
        command = ("lab", "study", "check-quality", "--models", *[f"m{i}.onnx@glyphs:test,limit=300" for i in range(4)],
                   "--parts", "quiet", "--out", "study", "--quiet")
        self.rows = {}

        def look():
            rows = {}
            if os.path.exists("study/trials.db"):
                with contextlib.closing(sqlite3.connect("study/trials.db")) as store:
                    self.assertEqual(store.execute("PRAGMA integrity_check").fetchone(), ("ok",))
                    if store.execute("SELECT 1 FROM sqlite_master WHERE name = 'trials'").fetchone():
                        rows = dict(store.execute("SELECT key, result FROM trials"))
            for key, result in self.rows.items():  # as it was, to the second that it took
                self.assertEqual(rows.get(key), result)
            self.rows = rows

        def again():
            self.remove("study")
            self.rows = {}

        self.disturb(command, look, again)

    def test_repair(self):
        must("lab", "plant", MODEL, "--kind", "random-weights", "--layer", "fc2", "--data", "glyphs:test", "-o", "bad.onnx", "--quiet")
        before = read_bytes("bad.onnx")
        command = ("repair", "bad.onnx", "--data", "glyphs:test", "--limit", 1500, "--method", "surgical", "-o", "r.onnx", "--plan",
                   "p.json", "--out", "run", "--force", "--quiet")
        self.products = {"r.onnx": set(), "p.json": set()}

        def look():
            self.no_leftovers()
            self.assertEqual(read_bytes("bad.onnx"), before)
            for name, seen in self.products.items():
                if os.path.exists(name):
                    seen.add(read_bytes(name))
                    self.assertEqual(len(seen), 1, name)

        self.disturb(command, look, lambda: self.remove("r.onnx", "p.json"))


if __name__ == "__main__":
    main()
