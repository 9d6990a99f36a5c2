"""netmend coverage as a user runs it: figures against NumPy (and SciPy, where it is there), profiles, subsets, words.

usage: coverage_test.py NETMEND
"""
import os

from shell import (Case, main, model, must, need, needs, read, read_bytes, read_csv, run, parse, shared, write,
                   write_bytes)

need("numpy")
import numpy

MODEL = SHARED = DATA = None
CLASSES, WIDTH = 4, 20


def setUpModule():
    """Clouds of points, some of them hard, and a small network that tells them apart."""
    global MODEL, SHARED, DATA
    SHARED = shared()
    random = numpy.random.RandomState(5)
    centres = random.randn(CLASSES, WIDTH)
    for name, count in (("train", 3000), ("test", 600)):
        y = random.randint(CLASSES, size=count)
        x = (centres[y] + 1.1 * random.randn(count, WIDTH)).astype(numpy.float32)
        numpy.savez(f"{SHARED}/{name}.npz", x=x, y=y)
    DATA = {name: f"npz:{SHARED}/{name}.npz" for name in ("train", "test")}
    MODEL = model(f"mlp:{WIDTH}-24-16-{CLASSES}", "--train", DATA["train"], epochs=8)
    must("weights", MODEL, "-o", f"{SHARED}/weights.npz")


class Twin:
    """The same network and the same criteria, in NumPy and float64."""

    def __init__(self, folder):
        stored = numpy.load(f"{folder}/weights.npz")
        weights = [stored[k].astype(float) for k in stored if stored[k].ndim == 2]
        biases = [stored[k].astype(float).ravel() for k in stored if stored[k].ndim == 1]
        sizes = [WIDTH, 24, 16, CLASSES]
        self.layers, self.answers = {}, {}
        for name in ("train", "test"):
            x = numpy.load(f"{folder}/{name}.npz")["x"].astype(float)
            values = []
            for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
                w = next(w for w in weights if sorted(w.shape) == sorted((a, b)) and w.shape in ((a, b), (b, a)))
                x = x @ (w if w.shape == (a, b) else w.T) + next(v for v in biases if v.shape == (b,))
                x = numpy.maximum(x, 0) if i < 2 else x
                values.append(x)
            self.layers[name], self.answers[name] = values[:2], values[2].argmax(1)

    def units(self, name):
        return numpy.concatenate(self.layers[name], 1)

    def by_class(self, name):
        return [self.layers[name][1][self.answers[name] == c] for c in range(CLASSES)]


class Coverage(Case):
    def coverage(self, *arguments, train=True):
        return self.judged(DATA["train"] if train else None, DATA["test"], *arguments)

    def judged(self, train, test, *arguments):
        return self.json("coverage", MODEL, *(["--train", train] if train else []), "--test", test, *arguments)

    def refused(self, *arguments, words=()):
        given = ("--train", DATA["train"], "--test", DATA["test"])
        return super().refused("coverage", MODEL, *given, *arguments, words=words)

    def value(self, found, name, key="covered"):
        return next(c[key] for c in found["criteria"] if c["name"] == name)

    def scores(self, found):
        rows = read_csv(os.path.join(found["run"], "surprise.csv"))
        return {name: numpy.array([float(row[name] or "nan") for row in rows]) for name in ("LSA", "DSA", "MDSA")}

    def test_counts_agree_with_numpy(self):
        found = self.coverage("--criteria", "NC:0.6,KMNC:50,NBC,SNAC,TKNC:2,NLC")
        twin = Twin(SHARED)
        train, test = twin.units("train"), twin.units("test")
        low, high = train.min(0), train.max(0)
        live = high > low
        least, most = ([pick(v, 1, keepdims=True) for v in twin.layers["test"]] for pick in (numpy.min, numpy.max))
        scaled = [(v - a) / numpy.maximum(b - a, 1e-30) for v, a, b in zip(twin.layers["test"], least, most)]
        self.assertAlmostEqual(self.value(found, "NC"), sum((s > 0.6).any(0).sum() for s in scaled), delta=1)
        inside = (test >= low) & (test <= high) & live
        place = numpy.minimum(((test - low) / numpy.where(live, high - low, 1) * 50).astype(int), 49)
        sections = {(u, place[i, u]) for i, u in zip(*numpy.nonzero(inside))}
        self.assertAlmostEqual(self.value(found, "KMNC"), len(sections), delta=3)
        self.assertEqual(self.value(found, "KMNC", "total"), 50 * live.sum())
        above, below = (test > high + 1e-6).any(0).sum(), (test < low - 1e-6).any(0).sum()
        self.assertEqual((self.value(found, "SNAC"), self.value(found, "NBC")), (above, above + below))
        top = sum(len(set(numpy.argsort(-v, 1, kind="stable")[:, :2].ravel())) for v in twin.layers["test"])
        self.assertAlmostEqual(self.value(found, "TKNC"), top, delta=1)
        spread = sum(numpy.abs(numpy.cov(v.T, bias=True)).mean() for v in twin.layers["test"])
        self.assertAlmostEqual(self.value(found, "NLC", "value") / spread, 1, places=4)

    def test_surprise_agrees_with_numpy(self):
        found = self.coverage("--criteria", "LSC,DSC,MDSC")
        ours, twin = self.scores(found), Twin(SHARED)
        known, tests, answers = twin.by_class("train"), twin.layers["test"][1], twin.answers["test"]
        kept = numpy.all([k.var(0) >= 1e-5 for k in known], 0)
        for i in range(0, len(tests), 7):
            own = known[answers[i]]
            distances = numpy.linalg.norm(own - tests[i], axis=1)
            nearest = own[distances.argmin()]
            other = min(numpy.linalg.norm(k - nearest, axis=1).min() for c, k in enumerate(known) if c != answers[i])
            self.assertAlmostEqual(ours["DSA"][i], distances.min() / other, delta=1e-4 * (1 + ours["DSA"][i]))
            centred = tests[i] - own.mean(0)
            squared = centred @ numpy.linalg.pinv(numpy.cov(own.T, bias=True)) @ centred
            if numpy.linalg.cond(numpy.cov(own.T)) < 1e8:
                self.assertAlmostEqual(ours["MDSA"][i], squared ** 0.5, delta=1e-3 * (1 + squared ** 0.5))
            points, x = own[:, kept], tests[i][kept]
            n, d = points.shape
            covariance = numpy.cov(points.T) * n ** (-2 / (d + 4))
            sign, logdet = numpy.linalg.slogdet(2 * numpy.pi * covariance)
            energy = -0.5 * numpy.einsum("ij,jk,ik->i", points - x, numpy.linalg.inv(covariance), points - x)
            likelihood = energy.max() + numpy.log(numpy.exp(energy - energy.max()).sum()) - numpy.log(n) - logdet / 2
            self.assertAlmostEqual(ours["LSA"][i], -likelihood, delta=1e-3 * (1 + abs(likelihood)))

    @needs("scipy")
    def test_likelihood_agrees_with_scipy(self):
        from scipy.stats import gaussian_kde
        ours, twin = self.scores(self.coverage("--criteria", "LSC,DSC,MDSC")), Twin(SHARED)
        known = twin.by_class("train")
        kept = numpy.all([k.var(0) >= 1e-5 for k in known], 0)
        for c in range(CLASSES):
            rows = numpy.nonzero(twin.answers["test"] == c)[0]
            theirs = -gaussian_kde(known[c][:, kept].T).logpdf(twin.layers["test"][1][rows][:, kept].T)
            numpy.testing.assert_allclose(ours["LSA"][rows], theirs, rtol=1e-3, atol=1e-3)

    def test_everything_is_there(self):
        found = self.coverage("--m", "3,5,40")
        names = [c["name"] for c in found["criteria"]]
        for name in "IDC NC KMNC NBC SNAC TKNC TKNP MCDC NLC LSC DSC MDSC".split():
            self.assertIn(name, names)
        for c in found["criteria"]:
            self.assertTrue({"name", "parameters", "covered", "total", "value"} <= set(c), c)
            if c["total"] is not None:
                self.assertAlmostEqual(c["value"], c["covered"] / c["total"])
        idc = [c for c in found["criteria"] if c["name"] == "IDC"]
        self.assertEqual([c["parameters"]["m"] for c in idc], [3, 5, 16])
        self.assertTrue(any("16 units" in note for note in found["notes"]))
        self.assertEqual([len(i["units"]) for i in found["important"]], [3, 5, 16])
        for c, i in zip(idc, found["important"]):
            self.assertEqual(i["combinations"]["tests"], c["covered"])
            self.assertEqual(i["combinations"]["training"], i["combinations"]["both"] + i["combinations"]["untried"])
        self.assertEqual(len(found["layers"]), 2)
        self.assertEqual(found["skipped"], [])
        self.assertEqual((found["inputs"], found["train_inputs"], found["units"]), (600, 3000, 40))
        self.assertEqual(len(read_csv(os.path.join(found["run"], "units.csv"))), 40)

    def test_the_subset_is_worth_as_much(self):
        criteria = ("--criteria", "IDC,NC,KMNC:30,TKNC,NBC,SNAC")
        found = self.coverage(*criteria, "-o", "keep.txt")
        kept = self.numbers("keep.txt")
        self.assertEqual(len(kept), found["subset"]["inputs"])
        self.assertEqual(found["subset"]["add_nothing"], 600 - len(kept))
        self.assertEqual(kept, sorted(set(kept)))
        stored = numpy.load(f"{SHARED}/test.npz")
        numpy.savez("some.npz", x=stored["x"][kept], y=stored["y"][kept])
        covered = lambda found: [c["covered"] for c in found["criteria"]]
        some = self.judged(DATA["train"], "npz:some.npz", *criteria, "--anyway")
        self.assertEqual(covered(some), covered(found))
        rest = sorted(set(range(600)) - set(kept))
        for name, chosen in (("on.txt", kept), ("rest.txt", rest)):
            write(name, "".join(f"{i}\n" for i in chosen))
        self.assertEqual(covered(self.coverage(*criteria, "--on", "inputs=on.txt")), covered(found))
        self.assertEqual(self.coverage(*criteria, "--on", "inputs=rest.txt")["inputs"], len(rest))

    def numbers(self, path):
        return [int(line) for line in read(path).splitlines()]

    def test_workers_change_nothing(self):
        apart = ("run", "preflight", "memory", "subset", "core")
        strip = lambda found: {k: v for k, v in found.items() if "seconds" not in k and k not in apart}
        one, many = (self.coverage("--jobs", jobs) for jobs in (1, 5))
        self.assertEqual(strip(one), strip(many))
        self.assertEqual(self.numbers(one["subset"]["file"]), self.numbers(many["subset"]["file"]))

    def test_profiles(self):
        first = self.coverage("--profile", "p")
        self.assertTrue(first["learned"] and os.path.exists("p"))
        again = self.coverage("--profile", "p", train=False)
        self.assertFalse(again["learned"])
        for key in ("criteria", "important", "units_uncovered", "regions_untried", "surprise"):
            self.assertEqual(first[key], again[key], key)
        other = model(f"mlp:{WIDTH}-24-16-{CLASSES}", seed=9)
        said = self.ok("coverage", other, "--test", DATA["test"], "--profile", "p", "--anyway", code=2).stderr
        self.assertIn("another model", said)
        self.refused("--profile", "p", "--tap", "pre", words=("tap", "--profile"))
        whole = read_bytes("p")
        for cut in (0, 5, 200, len(whole) // 2, len(whole) - 1):
            write_bytes("q", whole[:cut])
            self.refused("--profile", "q", words=("q",))
        write_bytes("q", whole[:300] + bytes(64) + whole[364:])
        self.assertIn(run("coverage", MODEL, "--test", DATA["test"], "--profile", "q").returncode, (0, 2))
        self.refused("--profile", "no/such/place", words=("no/such/place",))

    def test_without_training_data(self):
        found = self.coverage(train=False)
        names, skipped = {c["name"] for c in found["criteria"]}, {s["what"] for s in found["skipped"]}
        self.assertTrue({"NC", "TKNC", "TKNP", "MCDC", "NLC"} <= names, names)
        self.assertTrue(all("--train" in s["why"] for s in found["skipped"]))
        self.assertTrue({"IDC", "KMNC", "NBC", "SNAC", "LSC", "DSC", "MDSC"} <= skipped, skipped)
        self.assertFalse(names & skipped)
        said = self.ok("coverage", MODEL, "--test", DATA["test"]).stdout
        self.assertIn("give --train", said)

    def test_views(self):
        post, pre = (self.coverage("--tap", tap, "--criteria", "NC,KMNC,MCDC,IDC") for tap in ("post", "pre"))
        self.assertNotEqual(self.value(post, "KMNC"), self.value(pre, "KMNC"))
        self.assertEqual(self.value(post, "MCDC"), self.value(pre, "MCDC"))  # a rectifier keeps what is above 0
        element = self.coverage("--unit", "element", "--criteria", "NC,KMNC,MCDC,IDC")
        self.assertEqual(element["criteria"], post["criteria"])  # no maps here
        layer = post["layers"][0]["layer"]
        one = self.coverage("--layer", layer)
        self.assertEqual([l["layer"] for l in one["layers"]], [layer])
        self.assertEqual(one["layer"], layer)
        for program in ("deepimportance", "sadl", "nlc", "dnn-tip", "deepgini"):
            self.assertEqual(self.coverage("--as-published", program)["as_published"], program)
        self.assertGreaterEqual(self.value(self.coverage("--criteria", "IDC", "--zero-cluster"), "IDC"), 1)

    def test_targets(self):
        labels = numpy.load(f"{SHARED}/test.npz")["y"]
        self.assertEqual(self.coverage("--on", "class=2")["inputs"], (labels == 2).sum())
        self.refused("--on", "class=77", words=("77",))

    def test_words_for_what_cannot_be(self):
        layer = self.coverage("--criteria", "NC")["layers"][0]["layer"]
        self.refused("--layer", layer + "x", words=(f"did you mean {layer}",))
        self.refused("--criteria", "KMCN", words=("did you mean KMNC",))
        self.refused("--criteria", "NC:x", words=("threshold",))
        self.refused("--m", "6,a", words=("--m",))
        self.refused("--as-published", "dnntip", words=("did you mean dnn-tip",))

    def test_odd_data(self):
        one = self.coverage("--limit", 1, "--anyway")
        self.assertEqual(one["inputs"], 1)
        self.assertIsNone(one["units_low"])
        stored, twin = numpy.load(f"{SHARED}/train.npz"), Twin(SHARED)
        rows = twin.answers["train"] != 3  # a class without examples
        numpy.savez("three.npz", x=stored["x"][rows], y=stored["y"][rows])
        found = self.judged("npz:three.npz", DATA["test"])
        lost = int((twin.answers["test"] == 3).sum())
        for one in found["surprise"]:
            self.assertIn(one["scored"], (600 - lost, 600 - lost - 1), one)
        self.assertTrue(found["surprise"])
        self.assertTrue(any("no training input" in note for note in found["notes"]))
        numpy.savez("single.npz", x=stored["x"][:1], y=stored["y"][:1])
        found = self.judged("npz:single.npz", DATA["test"])
        self.assertEqual(self.value(found, "KMNC", "total"), 0)
        x = stored["x"][:400].copy()
        x[5, 3] = numpy.nan
        numpy.savez("broken.npz", x=x, y=stored["y"][:400])
        for train, test in (("npz:broken.npz", DATA["test"]), (DATA["train"], "npz:broken.npz")):
            done = run("coverage", MODEL, "--train", train, "--test", test, "--json", "--anyway")
            self.assertIn(done.returncode, (0, 2), done.stderr)
            if done.returncode == 0:
                parse(done.stdout)

    def test_for_people(self):
        said = self.ok("coverage", MODEL, "--train", DATA["train"], "--test", DATA["test"]).stdout
        for word in ("most important units", "regions", "combined", "highs", " add ", "surprise", "units.csv"):
            self.assertIn(word, said)
        for line in said.splitlines():
            self.assertTrue(len(line) <= 100 or SHARED in line, line)


if __name__ == "__main__":
    main()
