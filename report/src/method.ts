// What was done, exactly: for those who must be able to say so later.
import { copyButton, h, replace } from "./dom";
import { count, duration } from "./format";
import { section, type Section } from "./section";
import type { Report } from "../generated/evidence";
import type { Store } from "./store";

function facts(report: Report): [string, string][] {
  const { run } = report;
  const { model } = run;
  return [
    ["command", run.command], ["netmend", run.version], ["started", run.started], ["duration", duration(run.seconds)], ["random seed", String(run.seed ?? "–")], ...(run.timed ? [["budget", "a time was given as the budget: another run may look at more or less data"] as [string, string]] : []),
    ["model", `${model.name}, checksum ${model.checksum}, ${count(model.layers)} layers, ${count(model.units)} units, ${count(model.weights)} weights`],
    ...run.data.map((d): [string, string] => [d.split, `${d.spec}, ${d.used < d.size ? `${count(d.used)} of ${count(d.size)} inputs, evenly spread` : `all ${count(d.size)} inputs`}`]),
    ...report.preflight.lines.map((l): [string, string] => ["preflight", `${l.text} ${l.holds ? "✓" : "✗"}`]),
    ...report.skipped.map((s): [string, string] => ["skipped", `${s.what}; needs ${s.enable}`]),
    ...report.passed.map((p): [string, string] => ["passed", `${p.what}: ${p.value}`]),
    ...report.method.map((m): [string, string] => [m.name, m.text]),
  ];
}

export function method(store: Store): Section {
  const { report } = store;
  const all = facts(report);
  return section(store, "method", "Method", "versions, random seed, checksums, settings, definitions", (body) => {
    const text = () => [report.verdict, "", ...all.map(([name, value]) => `${name}: ${value}`), "", ...report.findings.map((f) => `${f.level} ${f.id} (${f.certainty}): ${f.title} ${f.evidence}`)].join("\n") + "\n";
    replace(body, h("div", { class: "tools" }, copyButton(text, "copy as text")), h("div", { class: "panel" }, h("dl", {}, all.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]))));
  });
}
