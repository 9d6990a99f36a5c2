"""netmend lab slurm and srun, with a munged, a slurmctld and a slurmd of the test's own on the loopback device.

usage: slurm_test.py NETMEND
"""
import glob, os, shutil, signal, socket, subprocess, tempfile, time, unittest

import database
from shell import NETMEND, Case, main, parse, read, read_bytes, run

PLACE = "a 'quoted' $(folder) #1"  # which a job's words must survive
STUDY = ("--kinds", "zeroed,scaled", "--models", "lenet1@glyphs", "--runs", 1, "--repairs", "none", "--jobs", 1)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Slurm:
    """One node, this machine. Users are known by munge, as on real clusters."""

    def __init__(self):
        missing = [name for name in ("slurmctld", "slurmd", "sbatch", "munged") if not shutil.which(name, path=self.path())]
        if missing:
            raise unittest.SkipTest(f"there is no {missing[0]} (Debian: slurm-wlm, munge)")
        if os.geteuid() != 0:
            raise unittest.SkipTest("slurmd runs as root alone")
        self.folder = tempfile.mkdtemp(prefix="netmend-slurm-")
        for name in ("state", "spool"):
            os.mkdir(os.path.join(self.folder, name))
        host = socket.gethostname().split(".")[0]
        with open(os.path.join(self.folder, "slurm.conf"), "w") as file:
            file.write(f"""ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={self.folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
InactiveLimit=0
KillWait=5
MinJobAge=300
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/spool
SlurmctldPidFile={self.folder}/ctld.pid
SlurmdPidFile={self.folder}/d.pid
SlurmctldLogFile={self.folder}/ctld.log
SlurmdLogFile={self.folder}/d.log
NodeName={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
""")
        self.environment = {**os.environ, "SLURM_CONF": self.folder + "/slurm.conf", "PATH": self.path()}
        self.running = []
        try:
            self.start_munge()
            for words in (["slurmctld", "-D"], ["slurmd", "-D", "-N", host]):
                self.running.append(subprocess.Popen(words, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            for _ in range(120):
                if self.ask("sinfo", "-h", "-o", "%T").strip() in ("idle", "idle*"):
                    if self.ask("sinfo", "-h", "-o", "%T").strip() == "idle":
                        return
                time.sleep(0.5)
            why = " ".join(line for name in ("ctld", "d") for line in self.log(name).splitlines() if "error" in line or "fatal" in line)
            raise unittest.SkipTest("Slurm does not start here: " + why[-600:])
        except BaseException:
            self.close()
            raise

    def start_munge(self):
        os.chmod(self.folder, 0o755)  # munge wants folders that others cannot write to, and a socket that all reach
        with open(os.path.join(self.folder, "munge.key"), "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(os.urandom(128))
        words = ["munged", "--foreground", "--force", *(f"--{what}={self.folder}/munge.{what.split('-')[0]}" for what in
                 ("key-file", "socket", "pid-file", "log-file", "seed-file"))]
        self.running.append(subprocess.Popen(words, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        for _ in range(100):
            if os.path.exists(self.folder + "/munge.socket"):
                return
            time.sleep(0.1)
        raise unittest.SkipTest("munged does not start here")

    @staticmethod
    def path():
        return os.environ["PATH"] + ":/usr/sbin:/sbin"

    def log(self, name):
        path = os.path.join(self.folder, name + ".log")
        return read(path) if os.path.exists(path) else ""

    def ask(self, *words):
        return subprocess.run(words, env=self.environment, capture_output=True, text=True).stdout

    def wait(self, *jobs, seconds=600):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if not self.ask("squeue", "-h", "-j", ",".join(jobs)).strip():
                return
            time.sleep(0.5)
        raise AssertionError(self.ask("squeue"))

    def close(self):
        for process in reversed(self.running):
            process.send_signal(signal.SIGTERM)
        for process in self.running:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Written(Case):
    def test_scripts_are_bash(self):
        for words in (("sbfl-repair", "--", "--sample", 0.02), ("deepimportance", "--sbatch=--comment=a b#c", "--", "--quick"),
                      ("planted-faults", "--store", "postgresql://me@server/st'udies", "--", "--runs", 2)):
            said = parse(self.ok("lab", "slurm", "--json", words[0], "--workers", 3, "--out", PLACE, *words[1:]).stdout)
            subprocess.run(["bash", "-n", said["script"]], check=True)
            self.assertIn('#SBATCH "--array=1-3"', read(said["script"]))
        self.assertIn("'postgresql://me@server/st'\\''udies'", read(said["script"]))

    def test_mistakes_are_told_before_anything_is_written(self):
        for words, says in ((("sbfl-repar", "--workers", 2), "did you mean sbfl-repair"),
                            (("sbfl-repair", "--workers", 0), "workers"),
                            (("sbfl-repair", "--workers", 2, "--", "--smaple", 1), "smaple"),
                            (("sbfl-repair", "--workers", 2, "--", "--sample", 7), "sample"),
                            (("sbfl-repair", "--workers", 2, "--", "--slice", "1/2"), "--slice"),
                            (("training-mutants", "--workers", 2), "has no slices"),
                            (("check-quality", "--workers", 2, "--store", "postgresql://a/b"), "one process"),
                            (("sbfl-repair", "--workers", 2, "--store", "postgresql://a:geheim@b/c"), "a password stands in the address"),
                            (("sbfl-repair", "--workers", 2, "--sbatch", "x\n#SBATCH --wrap=y"), "control character"),
                            (("sbfl-repair", "--workers", 2, "--out", "a\nb"), "control character")):
            self.assertNotIn("geheim", self.refused("lab", "slurm", *words, words=[says]))
            self.assertEqual(os.listdir("."), [])
        nowhere = {"PATH": "/nowhere", "HOME": "/"}
        self.refused("lab", "slurm", "sbfl-repair", "--workers", 2, "--submit", words=["sbatch"], env=nowhere)
        self.refused("lab", "slurm", "sbfl-repair", "--workers", 2, "--submit", "--store", "postgresql://a/b", words=["on its disk"],
                     env={**os.environ, "PGPASSWORD": "geheim"})


class Submitted(Case):
    @classmethod
    def setUpClass(cls):
        cls.slurm = Slurm()
        cls.addClassCleanup(cls.slurm.close)

    def submit(self, *words, **more):
        return parse(self.ok("lab", "slurm", "--submit", "--json", *words, env={**self.slurm.environment, **more}).stdout)

    def logs(self):
        return "\n".join(read(path) for path in sorted(glob.glob("slurm-*.out")))

    def test_workers_of_a_database(self):
        server = database.Server()
        self.addCleanup(server.close)
        said = self.submit("planted-faults", "--workers", 3, "--store", server.url(), "--out", PLACE, "--", *STUDY,
                           PGPASSFILE=server.passwords)
        self.slurm.wait(said["job"])
        self.assertEqual(server.sql("SELECT count(*), count(result) FROM netmend_trials"), [["2", "2"]], self.logs())
        reports = [read(os.path.join(PLACE, f"worker-{n}", "planted-faults.md")) for n in (1, 2, 3)]
        self.assertEqual(len(set(reports)), 1)
        self.assertNotIn(database.PASSWORD, read(said["script"]) + self.logs())

    def test_ranks_of_srun(self):
        self.ok("lab", "new", "lenet1", "-o", "model.onnx")
        words = ("eval", "model.onnx", "--data", "glyphs:test", "--anyway", "--jobs", 1, "--out")
        self.ok(*words, "alone")
        environment = {**self.slurm.environment, "OMPI_MCA_btl": "self,tcp", "OMPI_MCA_btl_tcp_if_include": "lo"}
        done = subprocess.run(["srun", "--mpi=pmix", "-n", "2", "--overcommit", NETMEND, *map(str, words), "shared"], env=environment,
                              capture_output=True, text=True, timeout=300)
        if "Invalid MPI type" in done.stderr:
            self.skipTest("srun's plugin for PMIx does not load (Debian: libpmix-dev has the name by which it asks)")
        self.assertEqual(done.returncode, 0, done.stderr + self.slurm.log("d")[-2000:])
        self.assertIn("2 ranks:", done.stderr)
        for name in ("samples.csv", "samples.npz"):
            self.assertEqual(read_bytes(f"shared/{name}"), read_bytes(f"alone/{name}"), name)

    def test_a_worker_that_is_cancelled(self):
        server = database.Server()
        self.addCleanup(server.close)
        said = self.submit("planted-faults", "--workers", 2, "--store", server.url(), "--out", "study", "--", *STUDY, "--lease", 5,
                           PGPASSFILE=server.passwords)
        while not os.path.exists("study/worker-1"):
            time.sleep(0.1)
        self.slurm.ask("scancel", "--signal=KILL", said["job"] + "_1")
        self.slurm.wait(said["job"])
        self.assertEqual(server.sql("SELECT count(*), count(result) FROM netmend_trials"), [["2", "2"]], self.logs())

    def test_slices_are_put_together(self):
        if not os.path.exists(os.path.join(os.environ.get("NETMEND_DATA", "/nowhere"), "fashion-mnist")):
            self.skipTest("NETMEND_DATA holds no fashion-mnist")
        words = ("--networks", "dnn1", "--sample", 0.01, "--limit", 300, "--jobs", 1)
        said = self.submit("sbfl-repair", "--workers", 2, "--out", PLACE, "--", *words)
        self.slurm.wait(said["job"], said["collect"])
        alone = parse(run("lab", "study", "sbfl-repair", *words, "--out", "alone", "--json").stdout)
        together = parse(read(os.path.join(PLACE, "sbfl-repair.json")))
        for document in (alone, together):
            document.pop("out", None)
        self.assertEqual(together, alone, self.logs())
        self.assertGreater(together["done"], 0)
        self.assertEqual(sorted(os.path.basename(path) for path in glob.glob(glob.escape(PLACE) + "/part-*")), ["part-1", "part-2"])


if __name__ == "__main__":
    main(slow=True)
