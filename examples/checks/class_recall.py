#!/usr/bin/env python3
"""A check of one's own: every class must reach a recall of 90 %.

netmend check --program examples/checks/class_recall.py runs it as `class_recall.py RUN_FOLDER` after its own checks and
adds what it prints to the findings. The folder holds findings.json (with the evaluation under `result`) and
evidence.json (tables of inputs, classes, units); docs/checks.md tells of both.
"""
import json
import os
import sys

LEAST = 0.90

with open(os.path.join(sys.argv[1], "findings.json"), encoding="utf8") as file:
    result = json.load(file).get("result") or {}

findings = []
for row in result.get("per_class", []):
    if row["samples"] and row["recall"] < LEAST:
        findings.append({
            "kind": "low-recall",
            "where": row["class"],
            "level": "serious" if row["recall"] < LEAST - 0.05 else "minor",
            "certainty": "confirmed",
            "title": f"Class {row['class']} is below our limit.",
            "brief": f"recall {100 * row['recall']:.1f} %, limit {100 * LEAST:.0f} %",
            "evidence": f"{row['correct']} of {row['samples']} inputs of class {row['class']} are predicted correctly.",
            "value": LEAST - row["recall"],
        })
print(json.dumps({"findings": findings}))
