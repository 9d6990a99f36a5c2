"""netmend stress as a user runs it: what is made opens again and answers as reported, nothing is lost when it is
stopped.

usage: stress_test.py NETMEND
"""
import os, random, shlex, signal, subprocess, time

from shell import Case, main, model, needs, parse, read_bytes, read_csv, start, write, write_csv

MODEL = None
DATA = ("--data", "glyphs:test", "--limit", 300)


def setUpModule():
    """A small network that reads drawn digits, not too well."""
    global MODEL
    MODEL = model("mlp:784-24-16-10", "--data", "glyphs", "--limit", 8000)


class Stress(Case):
    def stress(self, *arguments, code=0, product="adv.npz", data=DATA):
        return self.json("stress", MODEL, *data, *arguments, "-o", product, "--out", "run", code=code)

    def refused(self, *arguments, words=()):
        return super().refused("stress", MODEL, *arguments, words=words)

    def judged(self, told):
        """What the command says that the answer names."""
        command = shlex.split(told["next"][0])
        self.assertEqual(command[0], "netmend")
        return self.json(*command[1:], "--out", "e")

    def test_the_file_answers_as_reported(self):
        for flags in ((), ("--round",)):
            told = self.stress("--method", "fgsm,rotate,white-noise", "--eps", 0.1, *flags)
            self.assertEqual([m["method"] for m in told["methods"]], ["fgsm", "rotate", "white-noise"])
            self.assertEqual(told["inputs"], 3 * told["right"])
            self.assertTrue(os.path.exists("run/changed.png") and os.path.exists("run/changes.csv"))
            judged = self.judged(told)
            self.assertEqual(judged["samples"], told["success"]["of"])
            self.assertAlmostEqual(judged["accuracy"], 1 - told["success"]["rate"], places=9)
            self.assertEqual(len(read_csv("run/changes.csv")), told["inputs"])
            for method in told["methods"]:
                self.assertEqual(sum(c["successes"] for c in method["per_class"]), method["success"]["count"])
                self.assertLessEqual(method["success"]["low"], method["success"]["rate"])
            self.assertLessEqual(told["methods"][0]["distortion"]["linf"]["max"], 0.1 + (0.003 if flags else 1e-5))

    def test_pgd_is_at_least_as_strong_as_bim(self):
        network = model("lenet5", "--data", "glyphs", "--limit", 4000, epochs=1)
        for eps in (0.05, 0.1):
            told = self.json("stress", network, "--data", "glyphs:test", "--limit", 200, "--method", "bim,pgd", "--eps",
                             eps, "-o", "p.npz", "--out", "p", "--anyway")
            won = {one["method"]: one["success"]["count"] for one in told["methods"]}
            self.assertGreater(won["bim"], 5, eps)
            self.assertGreaterEqual(won["pgd"], won["bim"], eps)

    def test_workers_and_repeats_change_nothing(self):
        for jobs, name in ((1, "a.npz"), (3, "b.npz"), (2, "c.npz")):
            self.stress("--method", "pgd,jsma,shear,random-noise,relevant-noise", "--jobs", jobs, product=name)
        self.assertEqual(read_bytes("a.npz"), read_bytes("b.npz"))
        self.assertEqual(read_bytes("a.npz"), read_bytes("c.npz"))

    def test_all_methods_are_told_of(self):
        told = self.stress("--method", "all", "--steps", 10, "--unit", "fc1/3", "--criteria", "NC:0.5,TKNC",
                           data=("--data", "glyphs:test", "--limit", 40))
        done, skipped = {m["method"] for m in told["methods"]}, {s["method"]: s["reason"] for s in told["skipped"]}
        self.assertEqual(len(done), 21)
        self.assertEqual(set(skipped), {"token-drop", "token-swap", "token-replace", "column-noise", "column-permute",
                                        "category-swap"})
        self.assertTrue(all(skipped.values()))
        for criterion in told["coverage"]:
            self.assertGreaterEqual(criterion["after"], criterion["before"])
            self.assertEqual({m["method"] for m in criterion["methods"]}, done)

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
        size = lambda: os.path.getsize("part.queue") if os.path.exists("part.queue") else 0
        kills = 0
        for _ in range(20):
            if kills == 3:
                break
            if os.path.exists("part.npz"):  # it was done before it could be killed: once more from the start
                os.unlink("part.npz"), os.unlink("part.queue")
                kills = 0
            before = size()
            process = start("stress", MODEL, *DATA, *flags, "-o", "part.npz", "--out", "run2", "--quiet",
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while process.poll() is None and size() <= before:  # until a round is finished
                time.sleep(0.002)
            if process.poll() is None:
                process.kill()
                kills += 1
            process.wait()
        self.stress(*flags, product="part.npz")
        self.assertGreater(kills, 0)
        self.assertEqual(read_bytes("part.queue"), read_bytes("whole.queue"))
        self.assertEqual(read_bytes("part.npz"), read_bytes("whole.npz"))
        self.refused(*DATA, "--method", "fuzz", "--seed", 7, "-o", "part.npz", words=["part.queue", "--queue"])

    def test_interrupted_leaves_what_is_finished(self):
        process = start("stress", MODEL, "--data", "glyphs:test", "--method", "cw", "--all", "-o", "cw.npz",
                        "--out", "run", "--json")
        time.sleep(4)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 130, err)
        told = parse(out)
        self.assertLess(told["inputs"], told["right"])
        self.assertEqual(os.path.exists("cw.partial.npz"), told["inputs"] > 0)
        self.assertFalse(os.path.exists("cw.npz"))  # only what is whole has that name
        self.assertTrue(told["partial"])

    def test_tables(self):
        rnd, rows = random.Random(5), []
        for _ in range(400):
            age, job, hours = rnd.randint(18, 70), rnd.choice("abc"), rnd.randint(5, 60)
            rows.append([age, job, hours, "yes" if age + 10 * (job == "a") + hours > 85 else "no"])
        write_csv("t.csv", ["age", "job", "hours", "label"], *rows)
        data = "csv:t.csv,label=label"
        self.ok("lab", "new", "mlp:5-8-2", "-o", "raw.onnx")
        self.ok("train", "raw.onnx", "--train", data, "--test", data, "--epochs", 20, "-o", "t.onnx", "--out", "r",
                "--quiet")
        told = self.json("stress", "t.onnx", "--data", data, "--method", "all", "-o", "t.npz", "--out", "run")
        self.assertEqual({m["method"] for m in told["methods"]}, {"column-noise", "column-permute", "category-swap"})
        [reason] = [one["reason"] for one in told["skipped"] if one["method"] == "fgsm"]
        self.assertRegex(reason, "column|token")
        self.assertAlmostEqual(self.judged(told)["accuracy"], 1 - told["success"]["rate"], places=9)

    @needs(files=("rt-polarity",))
    def test_texts(self):
        network = model("textcnn", "--train", "rt-polarity:train", "--test", "rt-polarity:test", "--limit", 2000)
        told = self.json("stress", network, "--data", "rt-polarity:test", "--limit", 200, "--method", "all", "--anyway",
                         "-o", "t.npz", "--out", "run")
        self.assertEqual({m["method"] for m in told["methods"]}, {"token-drop", "token-swap", "token-replace"})
        self.assertIn("token", next(s["reason"] for s in told["skipped"] if s["method"] == "fgsm"))
        self.assertIsNone(told["distortion"]["l2"])
        self.assertAlmostEqual(self.judged(told)["accuracy"], 1 - told["success"]["rate"], places=9)

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
        wrong = [row["id"] for row in read_csv("e/samples.csv") if row["correct"] == "0"]
        self.assertTrue(wrong)
        write("wrong.txt", "\n".join(wrong) + "\n")
        self.refused(*DATA, "--method", "fgsm", "--on", "inputs=wrong.txt", "-o", "adv.npz",
                     words=["no prediction is correct", "--from all"])
        told = self.stress("--method", "fgsm", "--on", "inputs=wrong.txt", "--from", "all")
        self.assertEqual(told["inputs"], len(wrong))


if __name__ == "__main__":
    main()
