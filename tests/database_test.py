"""Stores in PostgreSQL: workers that share a study out, killed, stopped and cut off, against a server of the test's own.

usage: database_test.py NETMEND            NETMEND_KILLS=1000 for as many kills (default 30)
"""
import collections, glob, os, random, signal, subprocess, time

import database
from shell import NETMEND, Case, main, parse, read, run

WORKER = os.path.join(os.path.dirname(NETMEND), "trials-worker")
KILLS = int(os.environ.get("NETMEND_KILLS", 30))
STUDY = ("lab", "study", "planted-faults", "--models", "lenet1@glyphs", "--runs", 1, "--kinds", "zeroed,scaled,random-weights",
         "--repairs", "none", "--jobs", 1)


class Served(Case):
    @classmethod
    def setUpClass(cls):
        cls.server = database.Server()
        cls.addClassCleanup(cls.server.close)

    def setUp(self):
        super().setUp()
        self.url = self.server.fresh(self._testMethodName[-60:].lower())
        self.logs = 0

    def work(self, trials, *words, environment=None, **how):
        """A worker with a log of its own of what it was told is finished."""
        self.logs += 1
        words = ["--trials", trials, "--log", f"{self.logs}.log", *words]
        return subprocess.Popen([WORKER, self.url, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=environment or self.server.environment(), **how)

    def ended(self, worker, code=0):
        said, wrong = worker.communicate(timeout=600)
        self.assertEqual(worker.returncode, code, said + wrong)
        return parse(said) if code == 0 else wrong

    def told(self):
        """How often each trial was told to be finished, by all workers together."""
        return collections.Counter(line for n in range(self.logs) if os.path.exists(f"{n + 1}.log")
                                   for line in read(f"{n + 1}.log").splitlines())

    def results(self):
        """A folder's results, straight from the table."""
        name = self.url.rsplit("/", 1)[1]
        return {key for key, in self.server.sql("SELECT key FROM netmend_trials WHERE result IS NOT NULL", name)}

    def each_once(self, trials, told=None):
        self.assertEqual(len(self.results()), trials)
        twice = [key for key, times in self.told().items() if times > 1]
        self.assertEqual(twice, [])
        self.assertLessEqual(set(self.told()), self.results())


class Workers(Served):
    def test_share_the_work_out(self):
        workers = [self.work(2000, "--threads", 2, "--part", 3) for _ in range(3)]
        done = [self.ended(worker) for worker in workers]
        self.assertEqual(sum(one["done"] for one in done), 2000)
        self.assertEqual({one["wrong"] for one in done}, {0})
        self.each_once(2000)
        self.assertEqual(sum(self.told().values()), 2000)
        # Nothing is left to do, and nobody is left.
        self.assertEqual(self.ended(self.work(2000, "--part", 3))["done"], 0)
        self.assertEqual(self.server.sql("SELECT count(*) FROM netmend_workers", self.url.rsplit("/", 1)[1]), [["0"]])

    def test_are_killed_and_nothing_is_lost_or_done_twice(self):
        trials, rand, kills = 300 + 40 * KILLS, random.Random(7), 0
        usual = ("--seconds", 0.01, "--threads", 2, "--lease", 1)
        workers = [self.work(trials, *usual) for _ in range(3)]
        known = set()
        while kills < KILLS:
            time.sleep(rand.uniform(0, 0.25))
            number = rand.randrange(len(workers))
            if workers[number].poll() is not None:  # the study is finished before the kills are
                break
            workers[number].send_signal(signal.SIGKILL)
            workers[number].communicate()
            kills += 1
            if kills % 10 == 0:  # what was there stays
                now = self.results()
                self.assertLessEqual(known, now)
                known = now
            workers[number] = self.work(trials, *usual)
        for worker in workers:
            self.assertEqual(self.ended(worker)["wrong"], 0)
        print(f"{kills} workers killed over {trials} trials; {trials - len(self.told())} were written and not told, ", end="")
        self.assertGreaterEqual(kills, min(KILLS, 10))
        self.each_once(trials)

    def test_that_was_taken_for_dead_is_not_believed(self):
        slow = self.work(40, "--seconds", 0.5, "--lease", 1)
        time.sleep(1.2)
        slow.send_signal(signal.SIGSTOP)
        try:
            self.assertEqual(self.ended(self.work(40, "--seconds", 0.01, "--lease", 1))["wrong"], 0)
        finally:
            slow.send_signal(signal.SIGCONT)
        self.ended(slow)
        self.each_once(40)
        self.assertEqual(sum(self.told().values()), 40)

    def test_with_a_wrong_clock_do_no_harm(self):
        fake = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
        if not fake:
            self.skipTest("there is no libfaketime (Debian: libfaketime)")
        clock = {**self.server.environment(), "FAKETIME_DONT_FAKE_MONOTONIC": "1", "LD_PRELOAD": fake[0]}
        late = self.work(60, "--seconds", 0.1, "--lease", 2, environment={**clock, "FAKETIME": "+400d"})
        early = self.work(60, "--seconds", 0.1, "--lease", 2, environment={**clock, "FAKETIME": "-400d"})
        done = [self.ended(worker)["done"] for worker in (late, early)]
        self.assertEqual(sum(done), 60)
        self.assertGreater(min(done), 15)  # neither took the other's trials
        self.each_once(60)

    def test_end_on_ctrl_c_and_give_back(self):
        worker = self.work(200, "--seconds", 0.05)
        time.sleep(1)
        worker.send_signal(signal.SIGINT)
        self.ended(worker, code=130)
        began = time.monotonic()
        self.ended(self.work(200))  # without waiting for the lease of a minute
        self.assertLess(time.monotonic() - began, 20)
        self.each_once(200)


class Away(Served):
    def test_a_database_that_comes_back(self):
        workers = [self.work(400, "--seconds", 0.02, "--lease", 4) for _ in range(2)]
        for how in (signal.SIGINT, signal.SIGQUIT):  # cut off; a crash
            time.sleep(1.5)
            self.server.stop(how)
            told = set(self.told())
            time.sleep(2)
            self.server.start()
            self.assertLessEqual(told, self.results())
        for worker in workers:
            said, wrong = worker.communicate(timeout=120)
            self.assertEqual(worker.returncode, 0, wrong)
            self.assertIn("is away", wrong)
            self.assertIn("is back", wrong)
        self.each_once(400)

    def test_a_database_that_does_not(self):
        worker = self.work(4000, "--seconds", 0.02, "--lease", 1)
        time.sleep(1.5)
        self.server.stop()
        try:
            self.assertIn("did not come back within 10 s", self.ended(worker, code=2))
        finally:
            self.server.start()


class Refused(Served):
    def refused(self, *words, url=None, environment=None, says=()):
        done = run(*STUDY, "--store", url or self.url, "--out", "study", *words, env=environment or self.server.environment())
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stderr.count("error: "), 1)
        for word in says:
            self.assertIn(word, done.stderr)
        self.assertNotIn(database.PASSWORD, done.stderr + done.stdout)

    def test_passwords(self):
        nothing = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
        self.refused(environment={**nothing, "PGPASSFILE": "/nowhere"}, says=["no password", "PGPASSFILE"])
        self.refused(environment={**nothing, "PGPASSFILE": "/nowhere", "PGPASSWORD": "wrong"}, says=["authentication failed"])
        secret = self.url.replace("worker@", "worker:a%20secret'%20word@")
        self.refused(url=secret, says=["a password stands in the address"])
        self.refused(url=self.url + "?password=a%20secret'%20word", says=["a password stands in the address"])
        right = subprocess.run([WORKER, self.url, "--trials", "3"], env={**nothing, "PGPASSWORD": database.PASSWORD}, capture_output=True)
        self.assertEqual(right.returncode, 0, right.stderr)

    def test_places(self):
        self.refused(url="postgresql://worker@127.0.0.1:1/x", says=["postgresql://127.0.0.1:1/x cannot be reached"])
        self.refused(url=self.url + "_not", says=["does not exist"])
        self.refused(url="postgresql://worker@[", says=["no valid address"])
        self.refused(url="mysql://worker@127.0.0.1/x", says=["mysql:// is no kind of store"])
        self.refused(url="trials.db", says=["expected postgresql://"])
        done = run("lab", "study", "check-quality", "--store", self.url)
        self.assertEqual(done.returncode, 2)
        self.assertIn("one process", done.stderr)
        done = run("lab", "study", "sbfl-repair", "--store", self.url, "--slice", "1/2")
        self.assertEqual(done.returncode, 2)

    def test_another_study_of_that_name(self):
        self.ended(self.work(10))
        self.assertIn("with other settings: usual; asked for: others", self.ended(self.work(10, "--settings", "others"), code=2))
        name = self.url.rsplit("/", 1)[1]
        self.server.sql("UPDATE netmend_studies SET version = 9", name)
        self.assertIn("version 9; this is version 1", self.ended(self.work(10), code=2))
        self.server.sql("CREATE SCHEMA second", name)
        self.url += "?options=-csearch_path%3Dsecond"  # room for both
        self.ended(self.work(10, "--settings", "others"))

    def test_tables_of_others(self):
        name = self.url.rsplit("/", 1)[1]
        for made, says in (("CREATE TABLE netmend_trials (id int)", "its columns are others"),
                           ("CREATE VIEW netmend_trials AS SELECT 1 AS study", "is a view")):
            self.server.sql(made, name)
            self.refused(says=["has a table netmend_trials that is not netmend's", says])
            self.server.sql(f"DROP {made.split()[1]} netmend_trials", name)
        self.ended(self.work(10))
        self.server.sql("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.result := ''x''; RETURN NEW; END';"
                        "CREATE TRIGGER t BEFORE UPDATE ON netmend_trials FOR EACH ROW EXECUTE FUNCTION f()", name)
        self.refused(says=["rules, triggers or policies"])

    def test_results_of_others(self):
        environment = self.server.environment()
        done = run(*STUDY, "--kinds", "zeroed", "--store", self.url, "--out", "study", env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        name = self.url.rsplit("/", 1)[1]
        for result, says in (("{", "netmend"), ('{"place": 3}', "place"), ("[" * 100000, "deep")):
            self.server.sql(f"UPDATE netmend_trials SET result = '{result}'", name)
            done = run(*STUDY, "--kinds", "zeroed", "--store", self.url, "--out", "study", env=environment)
            self.assertEqual(done.returncode, 2, (result[:20], done.stdout, done.stderr))
            self.assertIn("the store's trial lenet1@glyphs|", done.stderr)

    def test_rights(self):
        name = self.url.rsplit("/", 1)[1]
        self.server.sql(f"CREATE ROLE guest LOGIN PASSWORD '{database.PASSWORD.replace(chr(39), chr(39) * 2)}'", name)
        environment = {**os.environ, "PGPASSWORD": database.PASSWORD}
        self.refused(url=self.url.replace("worker@", "guest@"), environment=environment, says=["permission denied", "right to make"])


class Studies(Served):
    """The program itself, as two terminals would run it."""

    def study(self, folder, *words, **how):
        return subprocess.Popen([NETMEND, *map(str, STUDY), "--store", self.url, "--lease", "2", "--out", folder, "--json", *words],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.server.environment(), **how)

    def test_is_that_of_one_process(self):
        first, second = self.study("first"), self.study("second")
        one, other = (parse(worker.communicate(timeout=600)[0]) for worker in (first, second))
        alone = parse(run(*STUDY, "--out", "alone", "--json").stdout)
        for document in (one, other, alone):
            document.pop("out")
        self.assertEqual(one, alone)
        self.assertEqual(other, alone)
        self.assertEqual(read("first/planted-faults.md"), read("alone/planted-faults.md"))

    def test_goes_on_where_a_killed_worker_was(self):
        first, second = self.study("first", start_new_session=True), self.study("second")
        first.stderr.readline(), first.stderr.readline()  # trained, and a trial done or under way
        os.killpg(first.pid, signal.SIGKILL)
        first.communicate()
        said, wrong = second.communicate(timeout=600)
        self.assertEqual(second.returncode, 0, wrong)
        self.assertEqual(len(self.results()), 3)
        self.assertEqual(parse(said)["faults"], 3)

    def test_of_trainings(self):
        words = ("lab", "study", "training-mutants", "--model", "lenet1@glyphs", "--limit", 300, "--epochs", 1, "--runs", 2, "--tests", 100,
                 "--operators", "ARM,TCL", "--jobs", 1, "--json")
        workers = [subprocess.Popen([NETMEND, *map(str, words), "--store", self.url, "--out", str(number)], stdout=subprocess.PIPE, text=True,
                                    stderr=subprocess.PIPE, env=self.server.environment()) for number in range(2)]
        alone = run(*words, "--out", "alone")
        for worker in workers:
            said, wrong = worker.communicate(timeout=900)
            self.assertEqual(said, alone.stdout, wrong)


if __name__ == "__main__":
    main(slow=True)
