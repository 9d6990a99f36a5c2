"""Every reader of files, given files that are sound but for some changes at random: it reads or refuses them, in memory that
a small file may ask for and in time that it may take. Files that were found wanting once (fuzz/finds/READER) are read first.

usage: mutated_test.py NETMEND slow. NETMEND_CASES=N changes N files per reader (default: 10,000), NETMEND_SEED=N
takes others. fuzz/run does the same with libFuzzer.
"""
import glob, os, subprocess, sys

from shell import *

PROGRAM = os.path.join(os.path.dirname(NETMEND), "netmend-mutate")
SEEDS = None


def setUpModule():
    global SEEDS
    SEEDS = os.path.join(shared(), "seeds")
    subprocess.run([sys.executable, os.path.join(SOURCE, "fuzz", "seeds.py"), NETMEND, SEEDS], check=True)


class SlowChanged(OneFolder):
    COUNT = 10_000

    def test_files_are_read_or_refused(self):
        seed = int(os.environ.get("NETMEND_SEED", "1"))
        count = int(os.environ.get("NETMEND_CASES", self.COUNT))
        names = sorted(name for name in os.listdir(SEEDS) if name not in ("model", "dictionaries"))
        self.assertGreaterEqual(len(names), 31)
        for name in names:
            with self.subTest(name):
                files = glob.glob(os.path.join(SEEDS, name, "*")) + glob.glob(os.path.join(SOURCE, "fuzz", "finds", name, "*"))
                done = subprocess.run([PROGRAM, name, str(count), str(seed), *sorted(files)], capture_output=True, text=True, timeout=1200,
                                      env={**os.environ, "NETMEND_SEEDS": SEEDS, "LAST": "last", "OPENBLAS_NUM_THREADS": "1"})
                print(done.stdout, end="", flush=True)
                if done.returncode:
                    kept = os.path.join(tempfile.gettempdir(), f"netmend-find-{name}")
                    shutil.copy("last", kept)
                    self.fail(f"{name} ended with {done.returncode}: {done.stderr[-600:]}\n{kept} is what it read")
                self.assertLess(float(done.stdout.split(",")[-1]), 5, "seconds for one file")


if __name__ == "__main__":
    main()
