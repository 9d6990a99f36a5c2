"""Trials per second that workers lease from a PostgreSQL store and finish, each of them durable, and the load of a store with
many open leases: against a server of its own in a temporary folder.

usage: store.py BUILD [rate|leases|beats …]
"""
import json, os, re, statistics, subprocess, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
import database

WORKER = os.path.join(os.path.abspath(sys.argv[1]), "trials-worker")


def start(server, url, *words):
    return subprocess.Popen([WORKER, url, *map(str, words)], stdout=subprocess.PIPE, text=True, env=server.environment())


def shared(server, url, workers, *words):
    """Seconds, and what the workers said, of a study that some share out; trials of no length."""
    began = time.monotonic()
    running = [start(server, url, *words) for _ in range(workers)]
    said = [json.loads(worker.communicate()[0]) for worker in running]
    assert all(worker.returncode == 0 for worker in running), said
    return time.monotonic() - began, said


def rate(server):
    """The server syncs to disk as it comes: fsync and synchronous_commit are on."""
    assert server.sql("SHOW fsync") == [["on"]] and server.sql("SHOW synchronous_commit") == [["on"]]
    trials = 20000
    for workers, threads in ((1, 1), (2, 1), (4, 1), (2, 4)):
        figures = []
        for turn in range(3):
            url = server.fresh(f"rate_{workers}_{threads}_{turn}")
            seconds, said = shared(server, url, workers, "--trials", trials, "--threads", threads)
            assert sum(one["done"] for one in said) == trials
            figures.append(trials / seconds)
        print(f"{workers} workers × {threads} threads: {statistics.median(figures):,.0f} trials/s "
              f"({min(figures):,.0f} … {max(figures):,.0f}), from start to end of the processes")


def processor(server):
    """Seconds of processor time of the server and all it has started."""
    own = server.running.pid
    total = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == own or int(pid) == own:
            total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return total


def leases(server):
    """Short trials while others hold ten thousand, over 64 connections in all."""
    for held in (0, 10000):
        name, holders, trials = f"leases_{held}", [], 40000
        url = server.fresh(name)
        holders.append(start(server, url, "--trials", trials, "--hold", 0))  # makes the tables
        holders[0].stdout.readline()
        while held and len(holders) < 63:
            holders.append(start(server, url, "--trials", trials, "--hold", -(-held // 62)))
            holders[-1].stdout.readline()
        before, began = processor(server), time.monotonic()
        workers, most = [start(server, url, "--trials", trials) for _ in range(2)], 0
        left = lambda: int(server.sql("SELECT count(*) FROM netmend_trials WHERE result IS NULL AND worker IS NULL", name)[0][0])
        while left() > 0:
            most = max(most, int(server.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'netmend'", name)[0][0]))
            time.sleep(0.3)
        seconds, done = time.monotonic() - began, int(server.sql("SELECT count(*) FROM netmend_trials WHERE result IS NOT NULL", name)[0][0])
        open_leases = server.sql("SELECT count(*) FROM netmend_trials WHERE result IS NULL AND worker IS NOT NULL", name)[0][0]
        print(f"{open_leases} open leases over {most} connections: {done / seconds:,.0f} trials/s by 2 workers, the server takes "
              f"{(processor(server) - before) / seconds:.2f} of a core")
        for one in workers + holders:
            one.kill()
            one.communicate()


def beats(server):
    """What it costs that ten thousand workers say every quarter of a minute that they are alive, over 64 connections: as many
    of the statement as the server takes."""
    url = server.fresh("beats")
    subprocess.run([WORKER, url, "--trials", "1"], env=server.environment(), check=True, stdout=subprocess.DEVNULL)
    server.sql("INSERT INTO netmend_workers (id, study, alive_until) SELECT i, 1, clock_timestamp() + interval '1 hour' FROM "
               "generate_series(1000001, 1010000) AS i", "beats")
    script = os.path.join(server.folder, "beat.sql")
    with open(script, "w") as file:
        file.write("\\set id random(1000001, 1010000)\n"
                   "WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)) INSERT INTO netmend_workers "
                   "(id, study, alive_until) SELECT :id, 1, clock_timestamp() + 60 * interval '1 second' FROM quick ON CONFLICT (id) "
                   "DO UPDATE SET alive_until = excluded.alive_until;\n")
    done = subprocess.run([os.path.join(database.programs(), "pgbench"), "-n", "-c", "64", "-j", "2", "-T", "10", "-f", script, "-h",
                           "127.0.0.1", "-p", str(server.port), "-U", "worker", "beats"], capture_output=True, text=True,
                          env=server.environment())
    assert done.returncode == 0, done.stderr
    print(f"beats over 64 connections: {float(re.search('tps = ([0-9.]+)', done.stdout)[1]):,.0f} per second; ten thousand workers "
          "with leases of 60 s need 667")


def main():
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    parts = sys.argv[2:] or ["rate", "leases", "beats"]
    server = database.Server("max_connections=80")
    try:
        print(server.sql("SHOW server_version")[0][0].join(("PostgreSQL ", ", as it comes but for max_connections")))
        for part in parts:
            {"rate": rate, "leases": leases, "beats": beats}[part](server)
    finally:
        server.close()


if __name__ == "__main__":
    main()
