"""Output that fails, signals, and several processes at once: exit status, words and files are in order afterwards.

usage: disturbed_test.py NETMEND [fast|slow]
"""
import contextlib, fcntl, os, resource, signal, sqlite3, subprocess, time

from shell import *

MODEL = None
DATA = ("--data", "glyphs:test", "--limit", "500")


def setUpModule():
    global MODEL
    MODEL = model("mlp:784-16-10", "--data", "glyphs", "--limit", 4000)


class Output(Case):
    """One command for each way that something is printed."""
    COMMANDS = (("--help",), ("--version",), ("info", "--help"), ("info", "MODEL"), ("info", "MODEL", "--json"),
                ("why", "dead-units"))

    def commands(self):
        return [[MODEL if word == "MODEL" else word for word in words] for words in self.COMMANDS]

    def test_that_is_full_or_closed_is_an_error(self):
        for arguments in self.commands():
            for closed in (False, True):
                with self.subTest(arguments=arguments, closed=closed), open("/dev/full", "w") as full:
                    done = subprocess.run([NETMEND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True,
                                          preexec_fn=(lambda: os.close(1)) if closed else None)
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertIn("error: cannot write to standard output", done.stderr)

    def test_words_that_nobody_can_read_do_no_harm(self):
        for arguments, code in ((["info", MODEL], 0), (["info", "missing.onnx"], 2), (["info", "--no-such-flag"], 2)):
            for closed in (False, True):
                with self.subTest(arguments=arguments, closed=closed), open("/dev/full", "w") as full:
                    done = subprocess.run([NETMEND, *arguments], stdout=subprocess.PIPE, stderr=full,
                                          preexec_fn=(lambda: os.close(2)) if closed else None)
                    self.assertEqual(done.returncode, code)

    def test_a_closed_stream_is_never_mistaken_for_a_file(self):
        self.ok("eval", MODEL, *DATA, "--out", "whole")
        subprocess.run([NETMEND, "eval", MODEL, *DATA, "--out", "run"],
                       preexec_fn=lambda: [os.close(file) for file in (0, 1, 2)])
        self.assertEqual(sorted(os.listdir("whole")), sorted(os.listdir("run")))
        self.assertEqual(read("whole/samples.csv"), read("run/samples.csv"))
        parse(read("run/eval.json"))

    def test_a_reader_that_leaves_ends_it_quietly(self):
        done = subprocess.run(f"'{NETMEND}' info '{MODEL}' | head -1", shell=True, capture_output=True, text=True)
        self.assertEqual(done.stderr, "")


class Signals(Case):
    DELAYS = [0.02, 0.15, 0.4]

    def test_end_with_130_from_the_first_moment_on(self):
        """130, or 0 when it was already done; never by the signal itself, and nothing half-written is left."""
        for which in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for delay in self.DELAYS:
                with self.subTest(signal=which.name, delay=delay):
                    job = start("eval", MODEL, "--data", "glyphs:test", "--out", "run")
                    time.sleep(delay)
                    job.send_signal(which)
                    said = job.communicate(timeout=60)[1]
                    self.assertIn(job.returncode, (0, 130), said)
                    left = os.listdir("run") if os.path.isdir("run") else []
                    self.assertFalse([name for name in left if ".part" in name or name == ".lock"])

    def test_leave_what_an_earlier_run_left_whole(self):
        command = ("check", MODEL, "--data", "glyphs:test", "--out", "run", "--budget", "quick")
        self.assertIn(run(*command).returncode, (0, 1))
        names = [name for name in os.listdir("run") if os.path.isfile(os.path.join("run", name))]
        before = {name: read_bytes(os.path.join("run", name)) for name in names}
        for delay in (0, *self.DELAYS[len(self.DELAYS) // 2:]):
            with self.subTest(delay=delay):
                shutil.rmtree("run/partial", ignore_errors=True)
                job = start(*command)
                while not os.path.exists("run/.lock"):  # which is there before any work is done
                    time.sleep(0.005)
                time.sleep(delay)
                job.send_signal(signal.SIGINT)
                said = job.communicate(timeout=60)[1]
                if delay == 0:
                    self.assertEqual(job.returncode, 130, said)
                    self.assertEqual(before, {name: read_bytes(os.path.join("run", name)) for name in names})
                self.assertFalse(read_json("run/evidence.json")["partial"])
                self.assertNotIn("partial", read_json("run/findings.json"))
                if os.path.exists("run/partial/findings.json"):
                    self.assertEqual(job.returncode, 130, said)
                    self.assertTrue(read_json("run/partial/findings.json")["partial"])

    def test_are_heard_while_a_table_is_read(self):
        with open("large.csv", "w") as file:
            file.write("a,b,c,label\n" + "1.25,2.5,3.75,0\n4.5,5.25,6.5,1\n" * 1500000)
        job = start("data", "csv:large.csv,label=label")
        time.sleep(1.2)
        job.send_signal(signal.SIGTERM)
        before = time.monotonic()
        said = job.communicate(timeout=60)[1]
        self.assertIn(job.returncode, (0, 130), said)
        self.assertLess(time.monotonic() - before, 5)

    def test_that_are_ignored_stay_ignored(self):
        job = start("eval", MODEL, *DATA, "--out", "run", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        time.sleep(0.3)
        job.send_signal(signal.SIGHUP)
        job.communicate(timeout=60)
        self.assertEqual(job.returncode, 0)


class SlowSignals(Signals):
    DELAYS = [0.01 * step for step in range(1, 60)]


class SlowLimits(Case):
    """What the system allows of a process: too little of it is an error with words, or enough."""

    def limited(self, kind, amount, *arguments):
        done = subprocess.run([NETMEND, *arguments], capture_output=True, text=True,
                              preexec_fn=lambda: resource.setrlimit(kind, (amount, amount)))
        self.assertIn(done.returncode, (0, 2, 127), (amount, done.stderr))  # 127: not even the libraries can be loaded
        if done.returncode == 2:
            self.assertIn("error: ", done.stderr)
        return done

    def test_of_the_size_of_a_file(self):
        write("w.npz", "what was there before")
        for size in (0, 1024, 16384):
            done = self.limited(resource.RLIMIT_FSIZE, size, "weights", MODEL, "-o", "w.npz")
            self.assertEqual(done.returncode, 2)
            self.assertEqual(read("w.npz"), "what was there before")
            self.assertEqual(os.listdir("."), ["w.npz"])

    def test_of_open_files_and_of_memory(self):
        for kind, amounts in ((resource.RLIMIT_NOFILE, (6, 8, 12)), (resource.RLIMIT_AS, (400 << 20, 1200 << 20))):
            for amount in amounts:
                with self.subTest(kind=kind, amount=amount):
                    self.limited(kind, amount, "eval", MODEL, *DATA, "--out", "run")


class SeveralAtOnce(Case):
    ACCEPTED, ROUNDS = 6, 1

    def test_one_run_folder_has_one_writer(self):
        os.mkdir("run")
        with open("run/.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.write("process 17 on elsewhere since 2026-01-01 10:00:00")
            lock.flush()
            said = self.refused("eval", MODEL, *DATA, "--out", "run")
            self.assertIn("run is in use by process 17 on elsewhere since 2026-01-01 10:00:00", said)
        self.ok("eval", MODEL, *DATA, "--out", "run")  # whoever was killed holds nothing
        self.assertNotIn(".lock", os.listdir("run"))

    def test_acceptances_are_not_lost(self):
        made = self.json("check", MODEL, *DATA, "--out", "run", "--only", "weak-classes")
        one = made["findings"][0]
        ids = [f"weak-class:{number}" for number in range(self.ACCEPTED)]
        write_json("run/findings.json", {**made, "findings": [{**one, "id": id, "kind": "weak-class", "where": id.split(":")[1]} for id in ids]})
        jobs = [start("accept", id, "--reason", "known", "--run", "run") for id in ids]
        for job in jobs:
            said = job.communicate(timeout=60)[1]
            self.assertEqual(job.returncode, 0, said)
        self.assertEqual(sorted(row["id"] for row in self.json("accept", "--list")["accepted"]), ids)
        self.assertNotIn(".netmend.toml.lock", os.listdir("."))


    def at_once(self, command, product):
        """Two of the same: each finishes or says that the other is there, and what is there afterwards is the product
        of one that was alone."""
        self.ok(*command, "--out", "alone")
        alone = read_bytes(product)
        for start_over in self.begun_anew(product):
            jobs = [start(*command, "--out", f"run{i}") for i in range(2)]
            ends = []
            for job in jobs:
                said = job.communicate(timeout=120)[1]
                ends.append(job.returncode)
                self.assertIn(job.returncode, (0, 2), said)
                if job.returncode == 2:
                    self.assertIn("is in use by process", said)
            self.assertIn(0, ends, start_over)
            self.assertEqual(read_bytes(product), alone)
        self.assertFalse([name for name in os.listdir(".") if name.endswith(".lock")])

    def begun_anew(self, product):
        for round in range(self.ROUNDS):
            for name in (product, "q", "c"):
                if os.path.exists(name):
                    os.unlink(name)
            yield round

    def test_one_queue_has_one_writer(self):
        self.at_once(("stress", MODEL, "--data", "glyphs:test", "--limit", 200, "--method", "fuzz", "--steps", 3, "--criteria", "NC:0.5",
                      "-o", "f.npz", "--queue", "q", "--quiet"), "f.npz")

    def test_one_checkpoint_has_one_writer(self):
        self.at_once(("train", MODEL, "--data", "glyphs:train", "--limit", 2000, "--epochs", 3, "--checkpoint", "c", "--resume", "-o", "t.onnx",
                      "--quiet"), "t.onnx")

    def test_one_study_has_one_writer(self):
        command = ("lab", "study", "check-quality", "--models", f"{MODEL}@glyphs:test,limit=300", "--parts", "quiet", "--out", "study", "--quiet")
        jobs = [start(*command) for _ in range(2)]
        ends = [(job.communicate(timeout=120)[1], job.returncode) for job in jobs]
        self.assertIn(0, [code for _, code in ends], ends)
        for said, code in ends:
            self.assertIn(code, (0, 2), said)
            if code == 2:
                self.assertIn("is in use by process", said)
        with contextlib.closing(sqlite3.connect("study/trials.db")) as store:
            self.assertEqual(store.execute("PRAGMA integrity_check").fetchone(), ("ok",))


class SlowSeveralAtOnce(SeveralAtOnce):
    ACCEPTED, ROUNDS = 48, 10


if __name__ == "__main__":
    main()
