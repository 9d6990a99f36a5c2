"""Puts the sources of a folder into groups that compile as one: parsing LibTorch's headers costs two seconds a file, even
precompiled. Files that give one name of their own to different things never share a group.

usage: unity.py MOST_LINES FILE…        prints a line per group: the files, with semicolons
"""
import glob
import os
import re
import sys


def strip(text):
    """Without comments, strings and preprocessor lines, so that braces can be counted."""
    text = re.sub(r'R"(\w*)\(.*?\)\1"', '""', text, flags=re.S)
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', text)
    text = re.sub(r"'(?:[^'\\\n]|\\.)'", "' '", text)
    return re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)


def statements(text):
    """Texts of what stands at the level of namespaces, each with whether it is in an unnamed one."""
    at, names, start = 0, [], 0
    while at < len(text):
        letter = text[at]
        if letter == ";":
            yield text[start:at].strip(), "" in names
            start = at + 1
        elif letter == "{":
            head = text[start:at].strip()
            space = re.fullmatch(r"(?:inline )?namespace\s*([\w:]*)", head)
            if space:
                names.append(space.group(1))
                start = at + 1
            else:
                depth = 1
                while depth and at + 1 < len(text):
                    at += 1
                    depth += {"{": 1, "}": -1}.get(text[at], 0)
                yield head + " {", "" in names
                # `= {…}, b = 2;` goes on; a function does not
                if not re.match(r"\s*[,;]", text[at + 1:at + 40]):
                    start = at + 1
                else:
                    start = at + 1
        elif letter == "}":
            if names:
                names.pop()
            start = at + 1
        at += 1


def names_of(statement):
    statement = re.sub(r"\s+", " ", statement)
    if not statement or statement.startswith(("extern", "friend", "static_assert", "TEST", "namespace {")):
        return []
    hit = re.match(r"using namespace (\S+)", statement)
    if hit:
        return [("using namespace", hit.group(1))]
    hit = re.match(r"using ([\w:]+)$", statement)
    if hit:
        return [(hit.group(1).split("::")[-1], statement)]
    hit = re.match(r"(?:using|namespace) (\w+) =", statement)
    if hit:
        return [(hit.group(1), statement)]
    body = re.sub(r"^template <.*?> (?=\w)", "", statement)
    body = re.sub(r"\b(?:alignas|__attribute__|\[\[)\S*", "", body)
    hit = re.match(r"(?:struct|class|enum class|enum|union) (\w+)", body)
    if hit:
        return [(hit.group(1), None)]
    before = re.split(r"[({=]", body)[0]
    if "(" in body and re.search(r"[\w>&*] \*?&?(~?[\w]+)\s*$", before) and body.find("(") < (body.find("=") if "=" in body else len(body)):
        return [(re.search(r"(\w+)\s*$", before).group(1), None)] if "::" not in before.split(" ")[-1] else []
    found = [(name, None) for name in re.findall(r"(\w+)\s*(?:\[[^\]]*\])?\s*[={]", body)]
    last = re.search(r"(\w+)\s*$", before)
    return found or ([(last.group(1), None)] if last else [])


def declared(path):
    """name → its text where equal texts agree (usings), else None; own: names of unnamed namespaces."""
    with open(path, encoding="utf8") as file:
        raw = file.read()
    everything, own = {}, set()
    for statement, unnamed in statements(strip(raw)):
        for name, text in names_of(statement):
            everything.setdefault(name, set()).add(text if text else path)
            if unnamed or text:
                own.add(name)
    return everything, own, raw.count("\n") + 1


def clash(a, b):
    for first, second in ((a, b), (b, a)):
        for name in first[1]:
            if name in second[0] and (len(first[0][name] | second[0][name]) > 1):
                return True
    return False


def header_names(paths):
    """What the headers beside the sources declare: a name of a file's own that is also there would become ambiguous."""
    found = set()
    for folder in {os.path.dirname(path) for path in paths}:
        for header in glob.glob(os.path.join(folder, "*.h")):
            found |= set(declared(header)[0])
    return found


def alone(path, about, headers):
    with open(path, encoding="utf8") as file:
        specialises = re.search(r"^template <>", file.read(), re.M)
    mine = {name for name in about[1] if any(text == path for text in about[0][name])}
    return specialises or mine & headers


def main():
    most = int(sys.argv[1])
    groups = []
    headers = header_names(sys.argv[2:])
    for path in sys.argv[2:]:
        about = declared(path)
        if alone(path, about, headers):
            groups.append({"files": [path], "about": [about], "lines": most})
            continue
        for group in groups:
            if group["lines"] + about[2] <= most and not any(clash(about, other) for other in group["about"]):
                break
        else:
            group = {"files": [], "about": [], "lines": 0}
            groups.append(group)
        group["files"].append(path)
        group["about"].append(about)
        group["lines"] += about[2]
    for group in groups:
        print(";".join(group["files"]))


main()
