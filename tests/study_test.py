"""netmend lab study deepimportance, killed and taken up again.

usage: study_test.py NETMEND
"""
import os, signal, subprocess, time

from shell import Case, main, needs, parse, read, run, start

TRIALS = ["network", "reaction", "U_O", "U_S", "U_DI", "+S", "+FGSM", "+BIM", "+JSMA", "+CW", "layers", "switches"]
STUDY = ("lab", "study", "deepimportance", "--out", ".")


def trials(said):
    return [line.split("|")[-1].split(" in ")[0] for line in said if "|" in line]


class Study(Case):
    def test_names_are_checked_before_the_work(self):
        self.refused(*STUDY, "--models", "lenet6", words=("did you mean", "lenet1, lenet4, lenet5, cifar"))

    @needs(files=("mnist",))
    def test_goes_on_after_being_killed(self):
        broken = start(*STUDY, "--quick", stdout=subprocess.DEVNULL, start_new_session=True)
        told = []
        for line in broken.stderr:  # the third trial is under way
            told += trials([line])
            if len(told) == 2:
                break
        os.killpg(broken.pid, signal.SIGKILL)
        broken.communicate()
        time.sleep(0.5)
        done = self.ok(*STUDY, "--quick", "--json", timeout=1800)
        self.assertNotIn("training lenet1", done.stderr)
        again = trials(done.stderr.splitlines())
        # What was told is not done again; between the word and the blow one more may have been finished.
        self.assertEqual(told, TRIALS[:2])
        self.assertEqual(again, TRIALS[-len(again):])
        self.assertTrue(1 <= len(again) <= len(TRIALS) - 2, again)
        self.look_at(parse(done.stdout))
        # All is there: nothing is done again, and the same is said.
        third = run(*STUDY, "--quick", "--json")
        self.assertEqual(third.stdout, done.stdout)
        self.assertNotIn("|", third.stderr)

    def look_at(self, found):
        for name in ("deepimportance.json", "deepimportance.md", "trials.db"):
            self.assertTrue(os.path.exists(name), name)
        text = read("deepimportance.md")
        self.assertIn("## Table 5", text)
        self.assertIn("Does it hold here?", text)
        self.assertEqual([n["model"] for n in found["networks"]], ["lenet1"])
        self.assertGreater(found["networks"][0]["accuracy"]["mean"], 85)
        table3 = {(r["criterion"], r["set"]): r for r in found["table3"]}
        self.assertEqual(table3["IDC6", "U_DI"]["paper"], {"mean": 38.8, "sd": 2.4})
        for criterion in ("IDC6", "IDC8", "IDC10", "IDC12", "KMNC", "NBC", "SNAC", "TKNC", "NC", "DSC", "LSC"):
            for changed in ("U_S", "U_DI"):  # adding tests never takes away
                before, after = (table3[criterion, name]["ours"]["mean"] for name in ("U_O", changed))
                self.assertGreaterEqual(after, before)
        table4 = {(r["criterion"], r["set"]): r["ours"]["mean"] for r in found["table4"]}
        self.assertAlmostEqual(table4["IDC6", "U_O"], table3["IDC6", "U_O"]["ours"]["mean"])
        sets = {r["set"]: r for r in found["sets"]}
        self.assertEqual((sets["U_S"]["inputs"], sets["+CW"]["inputs"]), (2000, 200))
        self.assertLess(sets["+FGSM"]["inputs"], 2000)  # those that are predicted correctly
        self.assertLess(sets["+CW"]["accuracy"]["mean"], 20)
        self.assertLess(sets["+FGSM"]["accuracy"]["mean"], sets["+S"]["accuracy"]["mean"])
        self.assertEqual([r["layer"] for r in found["table5"]][::2], ["conv1", "conv2"])
        self.assertEqual(found["protocols"], ["corrected"])
        verdicts = {c["id"]: c for c in found["conclusions"]}
        ratio = [r["ratio_draws"] for r in found["table2"] if r["units"] == "important"][0]
        self.assertEqual(verdicts["important-react"]["verdict"] == "holds in each case", ratio > 1)
        self.assertTrue(read("trials.csv").startswith("trial,field,value\n"))
        alone = self.ok(*STUDY, "--quick", "--table", "3").stdout
        self.assertTrue(alone.startswith("| model"), alone[:80])
        self.assertIn("\\begin{tabular}", self.ok(*STUDY, "--quick", "--table", "3", "--latex").stdout)


if __name__ == "__main__":
    main(slow=True)
