"""The commands as a user types them: outputs, exit status, files left behind, words at the moment of trouble.

usage: commands_test.py NETMEND fast|slow
"""
import math, os, random, re, signal, time, unittest, zipfile

from shell import (Case, data, main, needs, parse, read, read_bytes, read_floats, read_json, run, start, write,
                   write_bytes, write_npy)
from hostile_test import node, onnx_model, value_info

NODE_TESTS = "/usr/share/libonnx-testdata/data/node"


class Surface(Case):
    def test_first_page_is_instant_and_needs_no_engine(self):
        begun = time.time()
        page = self.ok().stdout
        self.assertLess(time.time() - begun, 0.2)
        for word in ("info", "data", "eval", "train", "lab new", "demo"):
            self.assertIn(word, page)
        self.assertEqual(self.ok("--help").stdout, page)

    def test_every_command_has_help_with_examples(self):
        for command in ("info", "data", "eval", "train", "demo", "lab new", "lab run", "lab conformance", "lab merge"):
            text = self.ok(*command.split(), "--help").stdout
            self.assertIn("Examples:", text, command)
            self.assertIn("netmend " + command, text, command)

    def test_slips_of_the_finger(self):
        self.refused("evall", words=["eval"])
        self.refused("eval", words=["model"])
        self.refused("lab", "new", "lenet6", "-o", "m.onnx", words=["lenet"])
        self.refused("data", "glyps", words=["glyphs"])
        self.refused("data", "glyphs:tset", words=["test"])
        self.refused("data", "glyphs,sede=1", words=["seed"])
        self.refused("info", "missing.onnx", words=["missing.onnx"])
        self.ok("lab", "new", "mlp:784-8-10", "-o", "m.onnx")
        self.refused("eval", "m.onnx", words=["--data"])
        self.refused("eval", "m.onnx", "--data", "glyphs:test", "--output", "logit", words=["logits"])
        self.refused("eval", "m.onnx", "--data", "glyphs:test", "--memory", "lots")
        self.refused("eval", "m.onnx", "--data", "glyphs:test", "--device", "tpu")
        self.refused("eval", "m.onnx", "--data", "glyphs:test", "--shard", "3/2", "-o", "x.state")

    def test_info_gives_the_fields_of_the_contract(self):
        self.ok("lab", "new", "lenet5", "-o", "m.onnx")
        info = self.json("info", "m.onnx")
        self.assertEqual(info["parameters"], 107786)
        self.assertEqual([l["name"] for l in info["layers"]][:2], ["conv1", "conv2"])
        for key in ("name", "op", "units", "parameters", "output_shape", "activation"):
            self.assertIn(key, info["layers"][0])
        self.assertEqual(info["layers"][0]["output_shape"][1:], [6, 28, 28])


class Zoo(Case):
    def test_parameter_counts_are_the_published_ones(self):
        for name, count in (("lenet1", 7206), ("lenet4", 69362), ("lenet5", 107786), ("dave2", 2116983),
                            ("mlp:784-64-10", 50890)):
            self.assertEqual(self.json("lab", "new", name, "-o", "m.onnx")["parameters"], count)
            self.assertEqual(self.json("info", "m.onnx")["parameters"], count)

    def test_the_same_seed_gives_the_same_bytes(self):
        for name, seed in (("a", 1), ("b", 1), ("c", 2)):
            self.ok("lab", "new", "lenet1", "-o", name, "--seed", seed)
        a, b, c = map(read_bytes, "abc")
        self.assertEqual(a, b)
        self.assertNotEqual(a, c)


class Evaluation(Case):
    def setUp(self):
        super().setUp()
        self.ok("lab", "new", "mlp:784-16-10", "-o", "m.onnx")

    def test_run_folder_and_json(self):
        result = self.json("eval", "m.onnx", "--data", "glyphs:test", "--out", "run", "--units")
        for key in ("samples", "accuracy", "loss", "per_class", "confusion", "seconds", "samples_per_second"):
            self.assertIn(key, result)
        rows = read("run/samples.csv").splitlines()
        self.assertEqual(len(rows), result["samples"] + 1)
        self.assertEqual(len(read("run/units.csv").splitlines()), 16 + 10 + 1)
        self.assertIn("m.onnx", read_json("run/run.json")["inputs"])
        right = sum(row.split(",")[4] == "1" for row in rows[1:])
        self.assertAlmostEqual(right / result["samples"], result["accuracy"])

    def test_workers_and_shards_change_nothing(self):
        whole = self.json("eval", "m.onnx", "--data", "glyphs:test", "--jobs", 1)
        for jobs in (2, 5):
            again = self.json("eval", "m.onnx", "--data", "glyphs:test", "--jobs", jobs)
            self.assertEqual((again["loss"], again["confusion"]), (whole["loss"], whole["confusion"]))
        for i in (1, 2, 3):
            self.ok("eval", "m.onnx", "--data", "glyphs:test", "--shard", f"{i}/3", "-o", f"{i}.state")
        merged = self.json("lab", "merge", "3.state", "1.state", "2.state")
        self.assertEqual((merged["loss"], merged["confusion"]), (whole["loss"], whole["confusion"]))
        self.refused("lab", "merge", "1.state", "2.state", words=["missing"])
        write_bytes("cut.state", read_bytes("1.state")[:100])
        self.refused("lab", "merge", "cut.state", "2.state", "3.state")

    def test_shards_that_hold_nothing_are_merged(self):
        names = [f"{i}.state" for i in range(1, 9)]
        for i, name in enumerate(names):
            self.ok("eval", "m.onnx", "--data", "glyphs:test", "--limit", 70, "--shard", f"{i + 1}/8", "-o", name)
        for order in (names, names[::-1]):
            self.assertEqual(self.json("lab", "merge", *order)["samples"], 70)

    def test_numbers_that_no_number_holds_are_refused(self):
        for flag, number in (("--limit", "9" * 20), ("--limit", "-" + "9" * 20), ("--seed", "9" * 30), ("--jobs", "1" + "0" * 40)):
            self.refused("eval", "m.onnx", "--data", "glyphs:test", flag, number, words=[flag])

    def test_data_that_does_not_fit(self):
        self.ok("lab", "new", "mlp:100-5-10", "-o", "small.onnx")
        self.refused("eval", "small.onnx", "--data", "glyphs:test", words=["100", "1×28×28"])
        self.ok("lab", "new", "mlp:784-5", "-o", "five.onnx")
        self.refused("eval", "five.onnx", "--data", "glyphs:test", words=["10 classes", "5"])

    def test_netmend_toml_beside_the_model(self):
        plain = self.json("eval", "m.onnx", "--data", "glyphs:test")
        write("netmend.toml", 'classes = ["zero","one","two","three","four","five","six","seven","eight","nine"]\n'
                              'input.x = { scale = "1/255", mean = [0.5], std = [0.25] }\n'
                              'data = { test = "glyphs:test" }\n')
        shifted = self.json("eval", "m.onnx")
        self.assertNotEqual(shifted["loss"], plain["loss"])
        self.assertEqual(shifted["per_class"][3]["class"], "three")
        self.assertEqual(self.json("eval", "m.onnx", "--data", "glyphs:test,mean=0,std=1")["loss"], plain["loss"])
        for text, word in (("input.x = { scal = 1 }", "scale"), ("clases = []", "classes"), ("classes = 3", "list"),
                           ("data = [", "line 1")):
            write("netmend.toml", text + "\n")
            self.refused("eval", "m.onnx", "--data", "glyphs:test", words=["netmend.toml", word])

    def test_labels_out_of_range_and_nan(self):
        write_npy("x.npy", "f", (4, 784), [float("nan")] * 784 + [0.5] * 2352)
        write_npy("y.npy", "q", (4,), [0, 1, 2, 3])
        result = self.json("eval", "m.onnx", "--data", "npy:x.npy,y=y.npy")
        self.assertEqual(result["not_finite"], 1)
        self.assertEqual(result["confusion"][0], [0] * 10)  # NaN is no class, and never right
        self.assertEqual(result["per_class"][0]["samples"], 1)
        self.assertTrue(math.isfinite(result["loss"]))
        write_npy("y.npy", "q", (4,), [0, 1, 2, 99])
        self.refused("eval", "m.onnx", "--data", "npy:x.npy,y=y.npy")
        write_npy("y.npy", "q", (4,), [0, 1, 2, -3])
        self.refused("eval", "m.onnx", "--data", "npy:x.npy,y=y.npy")

    def test_a_read_only_folder_leaves_nothing_half_written(self):
        self.refused("eval", "m.onnx", "--data", "glyphs:test,limit=64", "--out", "/proc/no/such/place")
        self.refused("lab", "new", "lenet1", "-o", "/proc/m.onnx")
        os.symlink("/dev/full", "full.onnx")
        self.refused("lab", "new", "lenet1", "-o", "full.onnx")

    def test_ctrl_c_prints_what_is_finished(self):
        self.ok("lab", "new", "mlp:784-2048-2048-10", "-o", "wide.onnx")
        # Nobody knows when the set-up is checked and the inputs begin: later and later, until some of them are told of.
        wait, err = 0.5, ""
        while "the first" not in err:
            process = start("eval", "wide.onnx", "--data", "glyphs:train", "--jobs", 1, "--out", "run")
            time.sleep(wait)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            self.assertIn(process.returncode, (130, -signal.SIGINT), (wait, out, err))
            wait *= 1.4
        finished = re.search(r"stopped: this is the result of the first ([\d,]+) inputs", err)[1]
        self.assertIn(f"{finished} inputs", out)
        self.assertEqual(len(read("run/samples.csv").splitlines()) - 1, int(finished.replace(",", "")))
        self.assertTrue(os.path.exists("run/run.json"))

    def test_lab_run_writes_every_output(self):
        write_npy("x.npy", "f", (3, 784), [0.25] * 2352)
        listed = self.json("lab", "run", "m.onnx", "--input", "input=x.npy", "--out", "o")
        self.assertEqual(listed["outputs"][0]["shape"], [3, 10])
        self.assertTrue(os.path.getsize(listed["outputs"][0]["file"]) > 120)
        self.refused("lab", "run", "m.onnx", "--input", "nope=x.npy", "--out", "o")
        self.refused("lab", "run", "m.onnx", "--out", "o")
        self.refused("train", "m.onnx", "--data", "glyphs", "-o", "missing/t.onnx", words=["missing"])


    def test_lab_run_carries_a_state_from_step_to_step(self):
        nodes = [node("Add", ["x", "s"], ["y"]), node("Identity", ["y"], ["next"])]
        write_bytes("sums.onnx", onnx_model(nodes, [value_info("x", 1, 1), value_info("s", 1, 1)], [value_info("y", 1, 1), value_info("next", 1, 1)]))
        write_npy("x.npy", "f", (4, 1), [1.5, 2, 3, 4])
        write_npy("of.npy", "q", (4,), [7, 7, 8, 8])
        words = ["lab", "run", "sums.onnx", "--input", "x=x.npy", "--out", "o"]
        self.refused(*words, words=["--input s="])
        self.json(*words, "--carry", "next=s")
        self.assertEqual(list(read_floats("o/y.npy")), [1.5, 3.5, 6.5, 10.5])
        self.assertEqual(list(read_floats("o/s.npy")), [0, 1.5, 3.5, 6.5])
        self.json(*words, "--carry", "next=s", "--sequences", "of.npy")
        self.assertEqual(list(read_floats("o/y.npy")), [1.5, 3.5, 3, 7])
        self.assertEqual(list(read_floats("o/s.npy")), [0, 1.5, 0, 3])
        write_npy("start.npy", "f", (1, 1), [5])
        self.json(*words, "--carry", "next=s", "--input", "s=start.npy")
        self.assertEqual(list(read_floats("o/y.npy")), [6.5, 8.5, 11.5, 15.5])
        self.refused(*words, "--carry", "next", words=["OUTPUT=INPUT"])
        self.refused(*words, "--carry", "next=t", words=["no input `t`"])
        self.refused(*words, "--carry", "next=s", "--sequences", "start.npy", words=["each of the 4 steps"])
        # What steps began with is data like any other.
        with zipfile.ZipFile("both.npz", "w") as archive:
            archive.write("x.npy"), archive.write("o/s.npy", "s.npy"), archive.write("o/y.npy", "y.npy")
        told = self.json("eval", "sums.onnx", "--data", "npz:both.npz,x=x:s,y=y,kind=number", "--output", "y")
        self.assertEqual((told["samples"], told["loss"]), (4, 0))


class Training(Case):
    def test_train_learns_and_is_the_same_for_any_number_of_workers(self):
        self.ok("lab", "new", "lenet1", "-o", "m.onnx")
        results = []
        for jobs in (1, 2):
            out = self.json("train", "m.onnx", "--data", "glyphs", "--limit", 3000, "--epochs", 2, "--jobs", jobs,
                            "-o", f"t{jobs}.onnx")
            for key in ("loss", "accuracy", "val_loss", "val_accuracy", "seconds"):
                self.assertIn(key, out["epochs"][0])
            results.append(out)
        self.assertLess(results[0]["epochs"][1]["loss"], results[0]["epochs"][0]["loss"])
        self.assertEqual(read_bytes("t1.onnx"), read_bytes("t2.onnx"))
        self.assertGreater(self.json("eval", "t1.onnx", "--data", "glyphs:test")["accuracy"], 0.3)

    def test_resume_continues_bit_for_bit(self):
        self.ok("lab", "new", "lenet1", "-o", "m.onnx")
        common = ["train", "m.onnx", "--data", "glyphs", "--limit", 1000]
        self.ok(*common, "--epochs", 2, "-o", "straight.onnx")
        self.ok(*common, "--epochs", 1, "--checkpoint", "c", "-o", "half.onnx")
        self.ok(*common, "--epochs", 2, "--checkpoint", "c", "--resume", "-o", "resumed.onnx")
        self.assertEqual(weights("straight.onnx"), weights("resumed.onnx"))
        again = self.ok(*common, "--epochs", 2, "--checkpoint", "c", "--resume", "-o", "again.onnx", "--out", "again")
        self.assertIn("nothing was left to train", again.stderr)
        self.assertEqual(weights("straight.onnx"), weights("again.onnx"))
        self.assertEqual(len(read("again/history.csv").splitlines()), 3)


class SlowHostile(Case):
    def test_damaged_models_are_refused_never_crash(self):
        self.ok("lab", "new", "lenet1", "-o", "m.onnx")
        whole, rng = read_bytes("m.onnx"), random.Random(1)
        for k in range(25):
            broken = bytearray(whole[:rng.randrange(len(whole))] if k % 2 else whole)
            for _ in range(rng.randrange(1, 20)):
                if broken:
                    broken[rng.randrange(min(len(broken), 2500))] = rng.randrange(256)
            write_bytes("b.onnx", broken)
            commands = (["info", "b.onnx"], ["eval", "b.onnx", "--data", "glyphs:test,limit=16"])
            for command in commands[:1 + (k % 5 == 0)]:
                done = run(*command, timeout=60)
                self.assertIn(done.returncode, (0, 1, 2), (k, command, done.stderr))


@unittest.skipUnless(os.path.isdir(NODE_TESTS), f"needs {NODE_TESTS} (Debian: libonnx-testdata)")
class Conformance(Case):
    def test_the_onnx_projects_own_node_tests(self):
        report = parse(run("lab", "conformance", NODE_TESTS, "--json").stdout)
        judged = report["passed"] + report["failed"]
        self.assertEqual(report["crashed"], 0)
        self.assertGreater(judged, 650)
        failed = [one for one in report["cases"] if one["status"] == "failed"]
        self.assertGreaterEqual(report["passed"] / judged, 0.97, failed)


@needs(files=("onnx/mnist_fc", "mnist"))
class Published(Case):
    def test_networks_and_accuracies_of_the_reference_folder(self):
        for name, accuracy in (("256x2", 0.9808), ("256x4", 0.9764), ("256x6", 0.9689)):
            result = self.json("eval", data("onnx", "mnist_fc", f"mnist-net_{name}.onnx"), "--data", "mnist:test")
            self.assertAlmostEqual(result["accuracy"], accuracy, places=6)

    def test_a_model_with_a_fixed_batch_of_one_says_so(self):
        network = data("onnx", "mnist_fc", "mnist-net_256x2.onnx")
        done = self.ok("eval", network, "--data", "mnist:test,limit=100")
        self.assertIn("generalised to any size", done.stderr)
        self.assertIn("784×1", done.stderr)


@needs(files=("onnx/acasxu", "onnx/reference"))
class Acas(Case):
    every = 23  # networks and inputs

    def test_outputs_equal_the_reference(self):
        head, *rows = [line.split(",") for line in read(data("onnx", "reference", "acasxu_outputs.csv")).split()]
        ins, outs = [i for i, h in enumerate(head) if h.startswith(("in", "x"))][-5:], range(len(head) - 5, len(head))
        self.assertGreater(len(rows), self.every)
        for row in rows[::self.every]:
            write_npy("x.npy", "f", (1, 1, 1, 5), [float(row[i]) for i in ins])
            listed = self.json("lab", "run", data("onnx", "acasxu", row[0]), "--input", "input=x.npy", "--out", "o")
            for value, i in zip(read_floats(listed["outputs"][0]["file"]), outs, strict=True):
                self.assertAlmostEqual(value, float(row[i]), delta=1e-4 * max(1, abs(float(row[i]))))


class SlowAcas(Acas):
    every = 5


def weights(path):
    """The file without its metadata, which tells how it was trained."""
    raw = read_bytes(path)
    at = raw.find(b"netmend.")
    return raw[:at if at > 0 else len(raw)]


if __name__ == "__main__":
    main()
