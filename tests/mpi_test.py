"""mpirun -n N netmend …: 2 to 4 real ranks give the bits of one process, and end together.

usage: mpi_test.py NETMEND
"""
import os, re, shutil, signal, subprocess, time, unittest

from shell import NETMEND, OneFolder, main, model, parse, read, read_bytes, run, write

FOR_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl": "self,tcp", "OMPI_MCA_btl_tcp_if_include": "lo",
           "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_plm_rsh_agent": ""}
TIMES = re.compile(r'"(\w*seconds|samples_per_second|run)": *("[^"]*"|[-+.\deE]+|null)')


def together(ranks, *words, program=NETMEND, timeout=600, environment=None):
    return subprocess.run(["mpirun", "-n", str(ranks), program, *map(str, words)], capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, env={**os.environ, **FOR_MPI, **(environment or {})})


def without_times(text):
    return TIMES.sub("", text)


@unittest.skipUnless(shutil.which("mpirun"), "there is no mpirun (Debian: openmpi-bin)")
class Ranks(OneFolder):
    @classmethod
    def make(cls):
        done = together(2, "--version")
        if done.returncode:
            raise unittest.SkipTest("mpirun does not start here: " + done.stderr[-300:])
        shutil.copy(model("lenet1", "--data", "glyphs", epochs=1), "model.onnx")

    def same(self, ranks, *words, files=(), code=0):
        for folder in ("alone", "shared"):
            shutil.rmtree(folder, ignore_errors=True)
        alone = run(*words, "--out", "here", "--json")
        self.assertEqual(alone.returncode, code, alone.stderr)
        os.rename("here", "alone")
        shared = together(ranks, *words, "--out", "here", "--json")
        self.assertEqual(shared.returncode, code, shared.stderr)
        os.rename("here", "shared")
        self.assertEqual(without_times(shared.stdout), without_times(alone.stdout))
        parse(shared.stdout)  # one document, not one from each rank
        self.assertEqual(sorted(os.listdir("alone")), sorted(os.listdir("shared")))
        for name in files:
            self.assertEqual(read_bytes(f"alone/{name}"), read_bytes(f"shared/{name}"), name)
        self.assertIn(f"{ranks} ranks:", shared.stderr)

    def test_eval(self):
        for ranks in (2, 3, 4):
            self.same(ranks, "eval", "model.onnx", "--data", "glyphs:test", "--units", files=("samples.csv", "samples.npz", "units.csv"))

    def test_eval_of_less_than_a_chunk_each(self):
        self.same(4, "eval", "model.onnx", "--data", "glyphs:test", "--limit", 70, files=("samples.csv",))

    def test_coverage(self):
        self.same(3, "coverage", "model.onnx", "--data", "glyphs", "--limit", 600)

    def test_locate(self):
        self.same(2, "locate", "model.onnx", "--data", "glyphs:test", "--limit", 800)

    def test_explain(self):
        self.same(2, "explain", "model.onnx", "--data", "glyphs:test", "--limit", 300)

    def test_check(self):
        self.same(2, "check", "model.onnx", "--data", "glyphs", "--limit", 600, "--budget", "quick", files=("findings.json",))

    def test_stress(self):
        product = "here.npz"
        alone = run("stress", "model.onnx", "--data", "glyphs:test", "--limit", 200, "--method", "pgd", "-o", product, "--out", "here")
        self.assertEqual(alone.returncode, 0, alone.stderr)
        first, changes = read_bytes(product), read_bytes("here/changes.csv")
        shutil.rmtree("here")
        shared = together(3, "stress", "model.onnx", "--data", "glyphs:test", "--limit", 200, "--method", "pgd", "-o", product, "--out", "here")
        self.assertEqual(shared.returncode, 0, shared.stderr)
        self.assertEqual(read_bytes(product), first)
        self.assertEqual(read_bytes("here/changes.csv"), changes)
        shutil.rmtree("here")

    def test_ranks_with_different_files_are_refused(self):
        other = model("lenet1", "--data", "glyphs", epochs=1, seed=2)
        write("rank.sh", '#!/bin/sh\nmkdir -p "$OMPI_COMM_WORLD_RANK" && cd "$OMPI_COMM_WORLD_RANK" && exec "$@"\n')
        os.chmod("rank.sh", 0o755)
        for rank, file in enumerate(("model.onnx", "model.onnx", other)):
            os.makedirs(str(rank), exist_ok=True)
            shutil.copy(file, f"{rank}/model.onnx")
        done = together(3, NETMEND, "eval", "model.onnx", "--data", "glyphs:test", program="./rank.sh")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("ranks 0 and 2 of 3 differ"), 1, done.stderr)

    def test_a_file_that_one_rank_lacks(self):
        write("rank.sh", '#!/bin/sh\n[ "$OMPI_COMM_WORLD_RANK" = 1 ] && cd /\nexec "$@"\n')
        os.chmod("rank.sh", 0o755)
        done = together(3, NETMEND, "eval", "model.onnx", "--data", "glyphs:test", program="./rank.sh", timeout=120)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("rank 1 of 3: error: cannot read model.onnx", done.stderr)

    def test_a_mistake_is_told_once(self):
        done = together(3, "eval", "missing.onnx", "--data", "glyphs:test")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("error: "), 1, done.stderr)

    def test_a_rank_that_dies_ends_the_job(self):
        job = subprocess.Popen(["mpirun", "-n", "3", NETMEND, "stress", "model.onnx", "--data", "glyphs:test", "--method", "pgd",
                                "--steps", "100000", "-o", "made.npz"], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **FOR_MPI}, start_new_session=True)
        ranks = []
        while len(ranks) < 3 and job.poll() is None:
            ranks = self.children(job.pid)
            time.sleep(0.05)
        self.assertEqual(len(ranks), 3)
        time.sleep(0.5)
        os.kill(ranks[1], signal.SIGKILL)
        began = time.monotonic()
        said = job.communicate(timeout=60)[1]
        self.assertLess(time.monotonic() - began, 30)
        self.assertNotEqual(job.returncode, 0)
        self.assertRegex(said, r"exited on signal 9|killed")
        until = time.monotonic() + 10
        while any(map(self.at_work, ranks)) and time.monotonic() < until:
            time.sleep(0.1)
        self.assertEqual([pid for pid in ranks if self.at_work(pid)], [], "ranks are left")

    @staticmethod
    def at_work(pid):
        try:
            return read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False

    def children(self, parent):
        """Ranks have process groups of their own."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                fields = read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
                if int(fields[1]) == parent and read(f"/proc/{pid}/comm").strip() == "netmend-engine":
                    found.append(int(pid))
            except OSError:
                pass
        return found

    def test_commands_that_cannot_be_shared_say_so(self):
        for words in (("info", "model.onnx"), ("compare", "model.onnx", "model.onnx", "--data", "glyphs:test"), ("why", "dead-units"),
                      ("train", "model.onnx", "--data", "glyphs", "-o", "trained.onnx"), ("lab", "merge", "a.state")):
            done = together(2, *words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(done.stderr.count("cannot be shared by ranks"), 1, done.stderr)
            self.assertEqual(done.stdout, "")
        done = together(2, "eval", "model.onnx", "--data", "glyphs:test", "--shard", "1/2", "-o", "part.state")
        self.assertIn("--shard is for processes that know nothing of each other", done.stderr)
        for words in (("stress", "model.onnx", "--data", "glyphs:test", "--method", "fuzz", "-o", "made.npz"), ("eval", "model.onnx", "--data", "glyphs:test", "--budget", "20s")):
            done = together(2, *words)
            self.assertEqual((done.returncode, done.stderr.count("error: ")), (2, 1), done.stderr)

    def test_without_the_library(self):
        done = run("eval", "model.onnx", "--data", "glyphs:test", "--limit", 64, env={**os.environ, "OMPI_COMM_WORLD_SIZE": "1"})
        self.assertEqual(done.returncode, 0, done.stderr)
        done = run("eval", "model.onnx", "--data", "glyphs:test", "--limit", 64, env={**os.environ, "OMPI_COMM_WORLD_SIZE": "4", "NETMEND_MPI": "no"})
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    main(slow=True)
