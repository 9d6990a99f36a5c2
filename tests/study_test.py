"""netmend lab study deepimportance, killed and taken up again.

usage: study_test.py NETMEND
"""
import json, os, shutil, signal, subprocess, sys, tempfile, time, unittest

NETMEND = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "netmend"

TRIALS = ["network", "reaction", "U_O", "U_S", "U_DI", "+S", "+noise", "+FGSM", "+BIM", "+JSMA", "+CW", "layers"]


def study(folder, *arguments):
    return [NETMEND, "lab", "study", "deepimportance", "--out", folder, *map(str, arguments)]


def run(command):
    return subprocess.run(command, capture_output=True, text=True, timeout=1800, stdin=subprocess.DEVNULL)


class Study(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="netmend-")

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def test_names_are_checked_before_the_work(self):
        done = run(study(self.folder, "--models", "lenet6"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("did you mean", done.stderr)
        self.assertIn("lenet1, lenet4, lenet5, cifar", done.stderr)

    @unittest.skipUnless(os.environ.get("NETMEND_DATA"), "SKIPPED: needs MNIST in NETMEND_DATA")
    def test_goes_on_after_being_killed(self):
        broken = subprocess.Popen(study(self.folder, "--quick"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                  start_new_session=True)
        told = []
        for line in broken.stderr:  # the third trial is under way
            if "|" in line:
                told.append(line.split("|")[-1].split(" in ")[0])
            if len(told) == 2:
                break
        os.killpg(broken.pid, signal.SIGKILL)
        broken.communicate()
        time.sleep(0.5)
        done = run(study(self.folder, "--quick", "--json"))
        self.assertEqual(done.returncode, 0, done.stderr[-800:])
        self.assertNotIn("training lenet1", done.stderr)
        again = [line.split("|")[-1].split(" in ")[0] for line in done.stderr.splitlines() if "|" in line]
        # What was told is not done again; between the word and the blow one more may have been finished.
        self.assertEqual(told, TRIALS[:2])
        self.assertEqual(again, TRIALS[-len(again):])
        self.assertTrue(1 <= len(again) <= len(TRIALS) - 2, again)
        self.look_at(json.loads(done.stdout))
        # All is there: nothing is done again, and the same is said.
        third = run(study(self.folder, "--quick", "--json"))
        self.assertEqual(third.stdout, done.stdout)
        self.assertNotIn("|", third.stderr)

    def look_at(self, found):
        for name in ("deepimportance.json", "deepimportance.md", "trials.db"):
            self.assertTrue(os.path.exists(os.path.join(self.folder, name)), name)
        with open(os.path.join(self.folder, "deepimportance.md")) as file:
            text = file.read()
        self.assertIn("## Table 5", text)
        self.assertIn("Does it hold here?", text)
        self.assertEqual([n["model"] for n in found["networks"]], ["lenet1"])
        self.assertGreater(found["networks"][0]["accuracy"]["mean"], 85)
        table3 = {(r["criterion"], r["set"]): r for r in found["table3"]}
        self.assertEqual(table3["IDC6", "U_DI"]["paper"], {"mean": 38.8, "sd": 2.4})
        for criterion in ("IDC6", "IDC8", "IDC10", "IDC12", "KMNC", "NBC", "SNAC", "TKNC", "NC", "DSC", "LSC"):
            for changed in ("U_S", "U_DI"):  # adding tests never takes away
                self.assertGreaterEqual(table3[criterion, changed]["ours"]["mean"], table3[criterion, "U_O"]["ours"]["mean"])
        table4 = {(r["criterion"], r["set"]): r["ours"]["mean"] for r in found["table4"]}
        self.assertAlmostEqual(table4["IDC6", "U_O"], table3["IDC6", "U_O"]["ours"]["mean"])
        sets = {r["set"]: r for r in found["sets"]}
        self.assertEqual((sets["U_S"]["inputs"], sets["+FGSM"]["inputs"]), (2000, 200))
        self.assertLess(sets["+CW"]["accuracy"]["mean"], 20)
        self.assertLess(sets["+FGSM"]["accuracy"]["mean"], sets["+S"]["accuracy"]["mean"])
        self.assertEqual([r["layer"] for r in found["table5"]][::2], ["conv1", "conv2"])
        verdicts = {c["id"]: c for c in found["conclusions"]}
        reaction = {r["units"]: r["ours"]["mean"] for r in found["table2"]}
        self.assertEqual(verdicts["important-react"]["verdict"] == "holds", reaction["important"] > reaction["random"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:])
