"""netmend stress as a user runs it: what is made opens again and is predicted as reported, nothing is lost when it is stopped.

usage: stress_test.py NETMEND
"""
import csv, json, os, random, shlex, shutil, signal, subprocess, sys, tempfile, time, unittest

NETMEND = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "netmend"
MODEL = None
DATA = ("--data", "glyphs:test", "--limit", 300)


def run(*arguments, timeout=600):
    return subprocess.run([NETMEND, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)


def make_model(folder):
    global MODEL
    MODEL = os.path.join(folder, "m.onnx")
    for step in (("lab", "new", "mlp:784-24-16-10", "-o", f"{folder}/raw.onnx", "--seed", 1),
                 ("train", f"{folder}/raw.onnx", "--data", "glyphs", "--limit", 8000, "--epochs", 1, "-o", MODEL, "--out", f"{folder}/run", "--quiet")):
        done = run(*step)
        assert done.returncode == 0, done.stderr


def content(path):
    with open(path, "rb") as file:
        return file.read()


class Stress(unittest.TestCase):
    def setUp(self):
        self.home = os.getcwd()
        self.folder = tempfile.mkdtemp(prefix="netmend-")
        os.chdir(self.folder)

    def tearDown(self):
        os.chdir(self.home)
        shutil.rmtree(self.folder, ignore_errors=True)

    def ok(self, *arguments, code=0):
        done = run(*arguments)
        self.assertEqual(done.returncode, code, (arguments, done.stdout[-800:], done.stderr[-800:]))
        return done

    def stress(self, *arguments, code=0, product="adv.npz", data=DATA):
        return json.loads(self.ok("stress", MODEL, *data, *arguments, "-o", product, "--out", "run", "--json", code=code).stdout)

    def refused(self, *arguments, words=(), model=None):
        said = self.ok("stress", model or MODEL, *arguments, code=2).stderr
        self.assertEqual(sum(line.startswith("error: ") for line in said.splitlines()), 1, said)
        for word in words:
            self.assertIn(word, said)

    def test_the_file_answers_as_reported(self):
        for flags in ((), ("--round",)):
            told = self.stress("--method", "fgsm,rotate,white-noise", "--eps", 0.1, *flags)
            self.assertEqual([m["method"] for m in told["methods"]], ["fgsm", "rotate", "white-noise"])
            self.assertEqual(told["inputs"], 3 * told["right"])
            self.assertTrue(os.path.exists("run/changed.png") and os.path.exists("run/changes.csv"))
            command = shlex.split(told["next"][0])
            self.assertEqual(command[0], "netmend")
            judged = json.loads(self.ok(*command[1:], "--json", "--out", "e").stdout)
            self.assertEqual(judged["samples"], told["success"]["of"])
            self.assertAlmostEqual(judged["accuracy"], 1 - told["success"]["rate"], places=9)
            rows = content("run/changes.csv").splitlines()
            self.assertEqual(len(rows) - 1, told["inputs"])
            for method in told["methods"]:
                self.assertEqual(sum(c["successes"] for c in method["per_class"]), method["success"]["count"])
                self.assertLessEqual(method["success"]["low"], method["success"]["rate"])
            self.assertLessEqual(told["methods"][0]["distortion"]["linf"]["max"], 0.1 + (0.003 if flags else 1e-5))

    def test_workers_and_repeats_change_nothing(self):
        for jobs, name in ((1, "a.npz"), (3, "b.npz"), (2, "c.npz")):
            self.stress("--method", "pgd,jsma,shear,random-noise,relevant-noise", "--jobs", jobs, product=name)
        self.assertEqual(content("a.npz"), content("b.npz"))
        self.assertEqual(content("a.npz"), content("c.npz"))

    def test_all_methods_are_told_of(self):
        told = self.stress("--method", "all", data=("--data", "glyphs:test", "--limit", 40), *("--steps", 10, "--unit", "fc1/3", "--criteria", "NC:0.5,TKNC"))
        done, skipped = {m["method"] for m in told["methods"]}, {s["method"]: s["reason"] for s in told["skipped"]}
        self.assertEqual(len(done), 21)
        self.assertEqual(set(skipped), {"token-drop", "token-swap", "token-replace", "column-noise", "column-permute", "category-swap"})
        self.assertTrue(all(skipped.values()))
        for criterion in told["coverage"]:
            self.assertGreaterEqual(criterion["after"], criterion["before"])
            self.assertEqual({m["method"] for m in criterion["methods"]}, done)
        self.assertNotIn("NaN", json.dumps(told))

    def test_tries_find_more(self):
        once, often = (self.stress("--method", "rotate", "--tries", tries)["success"]["count"] for tries in (1, 8))
        self.assertGreater(often, once)

    def test_on_aims(self):
        told = self.stress("--method", "fgsm", "--on", "class=3")
        self.assertEqual([c["class"] for c in told["methods"][0]["per_class"]], ["3"])

    def test_fuzz_goes_on_when_killed(self):
        flags = ("--method", "fuzz", "--steps", 6, "--criteria", "NC:0.5,TKNC,TKNP")
        whole = self.stress(*flags, product="whole.npz")
        fuzz = whole["methods"][0]["fuzz"]
        self.assertEqual((fuzz["rounds"], fuzz["resumed"]), (6, 0))
        self.assertGreater(fuzz["goals"], fuzz["goals_of_seeds"])
        rnd, kills = random.Random(3), 0
        for _ in range(6):
            process = subprocess.Popen([NETMEND, "stress", MODEL, *map(str, DATA), *map(str, flags), "-o", "part.npz", "--out", "run2", "--quiet"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(rnd.uniform(0.6, 2.0))
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                kills += 1
            process.wait()
        self.stress(*flags, product="part.npz")
        self.assertGreater(kills, 0)
        self.assertEqual(content("part.queue"), content("whole.queue"))
        self.assertEqual(content("part.npz"), content("whole.npz"))
        self.refused(*DATA, "--method", "fuzz", "--seed", 7, "-o", "part.npz", words=["part.queue", "--queue"])

    def test_interrupted_leaves_what_is_finished(self):
        process = subprocess.Popen([NETMEND, "stress", MODEL, "--data", "glyphs:test", "--method", "cw", "--all", "-o", "cw.npz", "--out", "run", "--json"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(4)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 130, err)
        told = json.loads(out)
        self.assertLess(told["inputs"], told["right"])
        if told["inputs"]:
            self.assertTrue(os.path.exists("cw.npz"))

    def test_tables(self):
        rnd = random.Random(5)
        with open("t.csv", "w") as file:
            file.write("age,job,hours,label\n")
            for _ in range(400):
                age, job, hours = rnd.randint(18, 70), rnd.choice("abc"), rnd.randint(5, 60)
                file.write(f"{age},{job},{hours},{'yes' if age + 10 * (job == 'a') + hours > 85 else 'no'}\n")
        data = "csv:t.csv,label=label"
        self.ok("lab", "new", "mlp:5-8-2", "-o", "raw.onnx")
        self.ok("train", "raw.onnx", "--train", data, "--test", data, "--epochs", 20, "-o", "t.onnx", "--out", "r", "--quiet")
        told = json.loads(self.ok("stress", "t.onnx", "--data", data, "--method", "all", "-o", "t.npz", "--out", "run", "--json").stdout)
        self.assertEqual({m["method"] for m in told["methods"]}, {"column-noise", "column-permute", "category-swap"})
        self.assertTrue(all("column" in s["reason"] or "token" in s["reason"] for s in told["skipped"] if s["method"] == "fgsm"))
        judged = json.loads(self.ok(*shlex.split(told["next"][0])[1:], "--json", "--out", "e").stdout)
        self.assertAlmostEqual(judged["accuracy"], 1 - told["success"]["rate"], places=9)

    def test_texts(self):
        if not os.environ.get("NETMEND_DATA"):
            self.skipTest("SKIPPED: needs NETMEND_DATA")
        self.ok("lab", "new", "textcnn", "-o", "raw.onnx")
        self.ok("train", "raw.onnx", "--train", "rt-polarity:train", "--test", "rt-polarity:test", "--limit", 2000, "--epochs", 1, "-o", "t.onnx",
                "--out", "r", "--quiet")
        told = json.loads(self.ok("stress", "t.onnx", "--data", "rt-polarity:test", "--limit", 200, "--method", "all", "--anyway", "-o", "t.npz",
                                  "--out", "run", "--json").stdout)
        self.assertEqual({m["method"] for m in told["methods"]}, {"token-drop", "token-swap", "token-replace"})
        self.assertIn("token", next(s["reason"] for s in told["skipped"] if s["method"] == "fgsm"))
        self.assertIsNone(told["distortion"]["l2"])
        judged = json.loads(self.ok(*shlex.split(told["next"][0])[1:], "--json", "--out", "e").stdout)
        self.assertAlmostEqual(judged["accuracy"], 1 - told["success"]["rate"], places=9)

    def test_bad_input(self):
        adv = ("-o", "adv.npz")
        self.refused(*DATA, "--method", "fgms", *adv, words=["did you mean fgsm"])
        self.refused(*DATA, "--method", "fgsm", "--eps=-0.1", *adv, words=["--eps", "above 0"])
        self.refused(*DATA, "--method", "fgsm", "--eps", "8/0", *adv, words=["--eps"])
        self.refused(*DATA, "--method", "deepfault", *adv, words=["--unit"])
        self.refused(*DATA, "--method", "deepfault", "--unit", "fc9/1", *adv, words=["no layer", "fc"])
        self.refused(*DATA, "--method", "deepfault", "--unit", "fc1/999", *adv, words=["fc1/23"])
        self.refused(*DATA, "--method", "fgsm", "-o", "no/such/folder/adv.npz", words=["no/such/folder"])
        self.refused(*DATA, "--method", "fgsm", "-o", "adv.txt", words=[".npz"])
        self.refused(*DATA, "--method", "token-drop", *adv, words=["images"])
        self.refused(*DATA, "--method", "fgsm", "--range", "9:1", *adv, words=["--range"])
        self.refused(*DATA, "--method", "fgsm", "--criteria", "KMNC", *adv, words=["--profile"])
        self.refused(*DATA, "--method", "fuzz", "--criteria", "NLC", *adv, words=["NLC"])
        self.refused(*DATA, "--method", "fgsm", "--on", "class=77", *adv, words=["77"])
        self.refused(*DATA, "--method", "fgsm", "--on", "slice=a=b", *adv, words=["slice"])

    def test_nothing_is_right(self):
        self.ok("eval", MODEL, *DATA, "--out", "e")
        with open("e/samples.csv") as file:
            wrong = [row["id"] for row in csv.DictReader(file) if row["correct"] in ("0", "false")]
        self.assertTrue(wrong)
        with open("wrong.txt", "w") as file:
            file.write("\n".join(wrong) + "\n")
        self.refused(*DATA, "--method", "fgsm", "--on", "inputs=wrong.txt", "-o", "adv.npz", words=["none of", "--from all"])
        told = self.stress("--method", "fgsm", "--on", "inputs=wrong.txt", "--from", "all")
        self.assertEqual(told["inputs"], len(wrong))


if __name__ == "__main__":
    shared = tempfile.mkdtemp(prefix="netmend-")
    try:
        make_model(shared)
        unittest.main(argv=sys.argv[:1])
    finally:
        shutil.rmtree(shared, ignore_errors=True)
