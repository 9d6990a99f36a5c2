"""A PostgreSQL server of the test's own in a temporary folder: Debian's programs, one user with a password, sockets and a
port of the loopback device. Skips where there is none to start."""
import glob, os, pwd, shutil, signal, socket, subprocess, tempfile, time, unittest

PASSWORD = "a secret' word"


def programs():
    """The folder of the newest server's programs, or none."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4]))
    return found[-1] if found else None


def lacking():
    if not programs():
        return "there is no PostgreSQL server (Debian: postgresql)"
    if os.geteuid() == 0:
        try:
            pwd.getpwnam("postgres")
        except KeyError:
            return "the server does not run as root, and there is no user postgres"
    return ""


class Server:
    def __init__(self, *settings):
        if lacking():
            raise unittest.SkipTest(lacking())
        self.folder = tempfile.mkdtemp(prefix="netmend-postgres-")
        self.user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
        if self.user:
            shutil.chown(self.folder, "postgres", "postgres")
        os.chmod(self.folder, 0o755)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.settings = [f"-cport={self.port}", "-clisten_addresses=127.0.0.1", f"-cunix_socket_directories={self.folder}",
                         *(f"-c{one}" for one in settings)]
        self.passwords = os.path.join(self.folder, "passwords")
        first = os.path.join(self.folder, "first")
        with open(first, "w") as file:
            file.write(PASSWORD + "\n")
        os.chmod(first, 0o644)
        self.program("initdb", "-D", self.folder + "/data", "-U", "worker", "-A", "scram-sha-256", "--pwfile", first, "-E", "UTF8",
                     "--no-sync", "--locale=C.UTF-8")
        os.remove(first)
        with open(self.passwords, "w") as file:
            file.write(f"127.0.0.1:{self.port}:*:worker:{PASSWORD}\n")
        os.chmod(self.passwords, 0o600)
        self.running = None
        self.start()

    def program(self, name, *words):
        done = subprocess.run([*self.user, os.path.join(programs(), name), *words], capture_output=True, text=True, cwd="/",
                              env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"})
        assert done.returncode == 0, (name, done.stdout, done.stderr)
        return done.stdout

    def start(self):
        self.log = open(os.path.join(self.folder, "log"), "ab")
        self.running = subprocess.Popen([*self.user, os.path.join(programs(), "postgres"), "-D", self.folder + "/data", *self.settings],
                                        stdout=self.log, stderr=self.log, cwd="/")
        for _ in range(300):
            ready = subprocess.run([os.path.join(programs(), "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)])
            if ready.returncode == 0:
                return
            assert self.running.poll() is None, open(os.path.join(self.folder, "log")).read()[-2000:]
            time.sleep(0.1)
        raise AssertionError("the server did not start")

    def stop(self, how=signal.SIGINT):
        """SIGINT: at once, connections cut. SIGQUIT: as in a crash, without a last word to the disk."""
        self.running.send_signal(how)
        self.running.wait()
        self.log.close()

    def close(self):
        if self.running.poll() is None:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database="postgres", words=""):
        return f"postgresql://worker@127.0.0.1:{self.port}/{database}{words}"

    def environment(self):
        return {**os.environ, "PGPASSFILE": self.passwords}

    def sql(self, text, database="postgres"):
        """The rows of the last statement, as lists of texts."""
        done = subprocess.run(["psql", "-XAtq", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-d", self.url(database)], input=text,
                              capture_output=True, text=True, env=self.environment())
        assert done.returncode == 0, done.stderr
        return [line.split("\t") for line in done.stdout.splitlines()]

    def fresh(self, name):
        """Another database, empty."""
        self.sql(f"CREATE DATABASE {name}")
        return self.url(name)
