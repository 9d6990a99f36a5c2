"""The pages of docs/guide do what they say: every sh block runs, in order, in an empty folder, and says what stands
beneath it.

usage: guide_test.py NETMEND slow    NETMEND_KEEP=FOLDER keeps what was made, NETMEND_EXACT=1 compares figures too,
                                     NETMEND_UPDATE=1 writes what was printed into the pages, line for similar line

In a page
  ```sh                     runs; one shell a page, which stops at the first error
  ```text                   what the sh block before it printed, shortened: a line of … stands for any lines, a … at the
                            end of a line for its rest. Lines without a digit must have been printed, spaces aside; with
                            NETMEND_EXACT the others too. Figures may differ a little from one processor to another;
                            words may not.
  <!-- exit 1 -->           the next sh block ends with this status, and that is its point
  <!-- expect: words -->    the sh block before it printed these words
  <!-- needs: torch -->     SKIPPED without it
"""
import difflib, os, re, shutil, subprocess, sys, time

from shell import DATA, KEEP, NETMEND, PYTHON, SOURCE, Case, lacking, main, read, write

GUIDE = os.path.join(SOURCE, "docs", "guide")
EXACT = bool(os.environ.get("NETMEND_EXACT"))
UPDATE = bool(os.environ.get("NETMEND_UPDATE"))
PAGES = ["first-check", "repair-goes-home", "table-and-groups", "text", "gate-in-a-pipeline"]
MARK = "=== block"


class Block:
    """A sh block, the status it ends with, and what it must have printed."""

    def __init__(self, line, text, status):
        self.line, self.text, self.status, self.shown, self.words = line, text, status, [], []
        self.places = []  # line numbers of what is shown


def read_page(path):
    """Its sh blocks in order, and what it needs."""
    blocks, needs, status, fence, inside = [], [], 0, None, []
    for number, line in enumerate(read(path).splitlines(), 1):
        if fence is None and line.startswith("```"):
            fence, inside, start = line[3:].strip(), [], number
        elif fence is not None and line == "```":
            if fence == "sh":
                blocks.append(Block(start, "\n".join(inside), status))
                status = 0
            elif fence == "text":
                blocks[-1].shown += inside
                blocks[-1].places += range(start + 1, number)
            fence = None
        elif fence is not None:
            inside.append(line)
        elif found := re.fullmatch(r"<!-- exit (\d+) -->", line):
            status = int(found[1])
        elif found := re.fullmatch(r"<!-- expect: (.+) -->", line):
            blocks[-1].words.append(found[1])
        elif found := re.fullmatch(r"<!-- needs: (.+) -->", line):
            needs.append(found[1])
        elif line.startswith("<!--"):
            raise ValueError(f"{path}:{number}: not understood: {line}")
    if fence is not None:
        raise ValueError(f"{path}: a block of {fence} does not end")
    return blocks, needs


def script(blocks):
    """One shell for all of them; where an error is the point, a shell inside it."""
    lines = ["set -e"]
    for number, block in enumerate(blocks):
        body = block.text if block.status == 0 else f"set +e\n(set -e\n{block.text}\n)\nstatus=$?\nset -e"
        lines += ["status=0", body, f'printf "\\n{MARK} {number} %s %s\\n" "$status" "$SECONDS"']
    return "\n".join(lines) + "\n"


def plain(text):
    """Without colours, and with one space for many."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m", "", text).split())


def missing(block, printed):
    """Lines of the page that the program did not print."""
    lines = [plain(line) for line in printed.splitlines()]
    lost = [words for words in block.words if plain(words) not in plain(printed)]
    for line in block.shown:
        want = plain(line)
        if want in ("", "…") or re.search(r"\d", want) and not EXACT:
            continue
        if not any(given.startswith(want[:-1].strip()) if want.endswith("…") else given == want for given in lines):
            lost.append(line)
    return lost


def update(path, block, printed):
    """Each line of the page that was not printed becomes the printed one that is most like it; returns the others."""
    page = read(path).splitlines()
    given = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in printed.splitlines()]
    lost = []
    for line, place in zip(block.shown, block.places):
        want = plain(line)
        if want in ("", "…") or any(plain(one) == want for one in given):
            continue
        if want.endswith("…") and any(plain(one).startswith(want[:-1].strip()) for one in given):
            continue
        like = lambda one: difflib.SequenceMatcher(None, re.sub(r"\d+", "0", want), re.sub(r"\d+", "0", plain(one))).ratio()
        best = max(given, key=like)
        if like(best) < 0.6:
            lost.append(line)
        else:
            page[place - 1] = best
    write(path, "\n".join(page) + "\n")
    return lost


class Guide(Case):
    def run_page(self, name):
        blocks, needs = read_page(os.path.join(GUIDE, name + ".md"))
        self.assertTrue(blocks, f"{name}.md has nothing to run")
        lost = lacking(*needs, files=("mnist",))
        if lost:
            self.skipTest(lost)
        work = os.path.join(KEEP, name) if KEEP else os.path.join(self.folder, "work")
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(work)
        # python3 is the one that runs this test
        os.chmod(write("python3", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n'), 0o755)
        screens = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
        environment = {key: value for key, value in os.environ.items() if key not in screens}
        environment |= {"PATH": os.pathsep.join([self.folder, os.path.dirname(NETMEND), environment["PATH"]]),
                        "NO_COLOR": "1", "LC_ALL": "C.UTF-8", "PYTHONPATH": PYTHON, "PYTHONDONTWRITEBYTECODE": "1",
                        "NETMEND_DATA": DATA}
        began = time.time()
        done = subprocess.run(["bash", "-c", script(blocks)], cwd=work, env=environment, text=True, timeout=900,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        print(f"  {name}: {len(blocks)} blocks, {time.time() - began:.0f} s", flush=True)
        if KEEP:
            write(work + ".log", done.stdout)
        rest = done.stdout
        for number, block in enumerate(blocks):
            printed, found, after = rest.partition(f"\n{MARK} {number} ")
            where = f"{name}.md:{block.line}"
            self.assertTrue(found, f"{where}: stopped with status {done.returncode}\n{block.text}\n{rest[-3000:]}")
            status, _, rest = after.partition("\n")
            self.assertEqual(int(status.split()[0]), block.status,
                             f"{where}: exit status\n{block.text}\n{printed[-3000:]}")
            if UPDATE:
                for line in update(os.path.join(GUIDE, name + ".md"), block, printed):
                    print(f"{where}: nothing like it was printed: {line}", flush=True)
                continue
            self.assertEqual(missing(block, printed), [],
                             f"{where}: the page shows what was not printed; printed was\n{printed[-6000:]}")
        self.assertEqual(done.returncode, 0)

    def test_commands_exist(self):
        """Every command word on the pages is one that netmend knows."""
        said = self.ok("--help").stdout
        known = set(re.findall(r"^  (?:[A-Z][a-z]+(?: here)?)?\s+([a-z]+)", said, re.M))
        self.assertTrue({"init", "check", "gate", "lab", "demo"} <= known, known)
        for file in sorted(os.listdir(GUIDE)):
            text = read(os.path.join(GUIDE, file))
            code = "\n".join(re.findall(r"^```\w+\n(.*?)^```", text, re.M | re.S) + re.findall(r"`([^`\n]+)`", text))
            used = set(re.findall(r"(?<![\w./-])(?<!from )netmend ([a-z]+)", code))  # Python imports it, too
            self.assertTrue(used, file)
            self.assertEqual(used - known, set(), file)

    def test_every_page_is_listed_and_every_link_leads_somewhere(self):
        names = {file[:-3] for file in os.listdir(GUIDE)} - {"README"}
        self.assertEqual(names, set(PAGES))
        for name in names | {"README"}:
            text = read(os.path.join(GUIDE, name + ".md"))
            for link in re.findall(r"\]\(([^)#:]+)\)", text):
                self.assertTrue(os.path.exists(os.path.join(GUIDE, link)), f"{name}.md: {link}")
        listed = re.findall(r"\]\(([a-z-]+)\.md\)", read(os.path.join(GUIDE, "README.md")))
        self.assertEqual(set(listed), names)


for page in PAGES:
    setattr(Guide, "test_page_" + page.replace("-", "_"), lambda self, page=page: self.run_page(page))

if __name__ == "__main__":
    main(slow=True)
