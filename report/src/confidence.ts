// Calibration (reliability diagram, histogram) and selective prediction (accuracy against coverage).
import * as Plot from "@observablehq/plot";
import { h, replace } from "./dom";
import { figure, plot } from "./figure";
import { count, interval, number, percent, plural, wilson } from "./format";
import { section, type Section } from "./section";
import type { Confidence } from "../generated/evidence";
import type { Store } from "./store";

/// The same bins, counted anew over the rows that the filter leaves.
function recount(store: Store, all: Confidence): Confidence {
  if (!store.filtered) return all;
  const { inputs } = store;
  const sums = all.bins.map(() => ({ count: 0, confidence: 0, right: 0 }));
  const histogram = all.histogram.map((b) => ({ ...b, right: 0, wrong: 0 }));
  const within = (bins: { low: number; high: number }[], value: number) => bins.findIndex((b, i) => (value > b.low || i === 0) && value <= b.high);
  for (const row of store.rows) {
    const [value, right] = [inputs.confidence[row], inputs.right[row]];
    if (value === null || right === null) continue;
    const weight = store.weight(row);
    const bin = sums[within(all.bins, value)];
    if (bin) {
      bin.count += weight;
      bin.confidence += weight * value;
      bin.right += weight * right;
    }
    const bar = histogram[within(all.histogram, value)];
    if (bar) bar[right ? "right" : "wrong"] += weight;
  }
  const bins = all.bins.map((b, i) => ({ ...b, count: Math.round(sums[i].count), confidence: sums[i].confidence / sums[i].count, accuracy: sums[i].right / sums[i].count })).filter((b) => b.count > 0);
  const total = bins.reduce((sum, b) => sum + b.count, 0);
  return { ...all, bins, histogram, calibration_error: total ? bins.reduce((sum, b) => sum + (b.count / total) * Math.abs(b.confidence - b.accuracy), 0) : 0 };
}

interface Kept {
  kept: number;
  all: number;
  right: number;
}

/// The predictions at or above a confidence threshold, of some rows.
function keep(store: Store, rows: number[], threshold: number): Kept {
  const sum = { kept: 0, all: 0, right: 0 };
  for (const row of rows) {
    const [value, right] = [store.inputs.confidence[row], store.inputs.right[row]];
    if (value === null || right === null) continue;
    const weight = store.weight(row);
    sum.all += weight;
    if (value < threshold) continue;
    sum.kept += weight;
    sum.right += weight * right;
  }
  return sum;
}

function parts(store: Store): { name: string; rows: number[] }[] {
  const { inputs, report } = store;
  const lists = new Map<string, number[]>();
  const add = (name: string, row: number) => (lists.get(name) ?? lists.set(name, []).get(name)!).push(row);
  for (const row of store.rows) {
    for (const [column, group] of Object.entries(inputs.groups)) add(`${column}=${group.values[group.of[row]] ?? "–"}`, row);
    if (report.classes && report.classes.length <= 50 && inputs.label[row] !== null) add(store.className(inputs.label[row]), row);
  }
  return [...lists].map(([name, rows]) => ({ name, rows }));
}

function reliability(c: Confidence) {
  const most = Math.max(...c.bins.map((b) => b.count));
  return figure({
    name: "reliability", title: "Reliability diagram", note: `On the diagonal, accuracy equals confidence. Expected calibration error (ECE): ${number(c.calibration_error)}. Lines: 95 % interval; numbers: inputs per bin.`,
    table: () => ({ columns: ["low", "high", "count", "confidence", "accuracy"], rows: c.bins.map((b) => [b.low, b.high, b.count, b.confidence, b.accuracy]) }),
    draw: (width) => plot({
      width, height: 300, marginLeft: 46, marginRight: 16,
      x: { domain: [0, 1], label: "confidence", tickFormat: "%", ticks: 5 }, y: { domain: [0, 1], label: "accuracy", tickFormat: "%", ticks: 5, grid: true }, r: { range: [2.5, 14], domain: [0, most] },
      marks: [Plot.line([[0, 0], [1, 1]], { stroke: "var(--muted)", strokeDasharray: "3,3" }), Plot.line(c.bins, { x: "confidence", y: "accuracy", stroke: "var(--accent)", strokeWidth: 1.5 }),
        Plot.ruleX(c.bins, { x: "confidence", y1: (b) => wilson(b.accuracy * b.count, b.count).low, y2: (b) => wilson(b.accuracy * b.count, b.count).high, stroke: "var(--accent)", strokeOpacity: 0.5 }),
        Plot.dot(c.bins, { x: "confidence", y: "accuracy", r: "count", fill: "var(--accent)", fillOpacity: 0.75, title: (b) => `mean confidence ${percent(b.confidence)}, accuracy ${percent(b.accuracy)}, ${plural(b.count, "input")}` }),
        Plot.text(c.bins, { x: "confidence", y: "accuracy", text: (b) => count(b.count), dy: 15, dx: -6, textAnchor: "end", fontSize: 10, fill: "var(--muted)" })],
    }),
  });
}

function histogram(c: Confidence) {
  const bars = c.histogram.flatMap((b) => [{ ...b, n: b.right, kind: "var(--right)" }, { ...b, n: -b.wrong, kind: "var(--wrong)" }]);
  const root = (n: number) => Math.sign(n) * Math.sqrt(Math.abs(n));
  return figure({
    name: "confidence", title: "Confidence of correct and wrong predictions", legend: [["correct (upwards)", "var(--right)"], ["wrong (downwards)", "var(--wrong)"]], note: "Square-root scale, so that rare cases stay visible.",
    table: () => ({ columns: ["low", "high", "right", "wrong"], rows: c.histogram.map((b) => [b.low, b.high, b.right, b.wrong]) }),
    draw: (width) => plot({
      width, height: 282, marginLeft: 46, marginRight: 16, x: { domain: [0, 1], label: "confidence", tickFormat: "%", ticks: 5 },
      y: { label: "inputs", tickFormat: (v: number) => count(v * v), ticks: 6, grid: true }, color: { type: "identity" },
      marks: [Plot.rectY(bars, { x1: "low", x2: "high", y: (b) => root(b.n), fill: "kind", inset: 0.5, title: (b) => `${percent(b.low, 0)}–${percent(b.high, 0)}: ${count(Math.abs(b.n))}` }), Plot.ruleY([0])],
    }),
  });
}

/// The metric and the coverage for a hundred thresholds, from one sorted list.
function sweep(store: Store): { threshold: number; coverage: number; accuracy: number | null; kept: number }[] {
  const steps = 100;
  const kept = new Float64Array(steps + 2);
  const right = new Float64Array(steps + 2);
  for (const row of store.rows) {
    const [value, correct] = [store.inputs.confidence[row], store.inputs.right[row]];
    if (value === null || correct === null) continue;
    const bin = Math.min(steps, Math.max(0, Math.floor(value * steps + 1e-9)));
    kept[bin] += store.weight(row);
    right[bin] += correct * store.weight(row);
  }
  for (let i = steps - 1; i >= 0; i--) {
    kept[i] += kept[i + 1];
    right[i] += right[i + 1];
  }
  return Array.from({ length: steps + 1 }, (_, i) => ({ threshold: i / steps, coverage: kept[0] ? kept[i] / kept[0] : 0, accuracy: kept[i] > 0 ? right[i] / kept[i] : null, kept: kept[i] }));
}

function threshold(store: Store): HTMLElement {
  const line = sweep(store);
  const groups = parts(store);
  const facts = h("div", { class: "facts" });
  const rows = h("tbody", {});
  const picture = h("div", {});
  const slider = h("input", { type: "range", min: 0, max: 1, step: 0.01, "aria-label": "confidence threshold" });
  slider.value = store.setting("confidence.threshold", "0");
  const show = () => {
    const at = Number(slider.value) || 0;
    const all = keep(store, store.rows, at);
    const figureOf = (k: Kept) => wilson(Math.round(k.right), Math.round(k.kept));
    const fact = (value: string, words: string) => h("div", {}, h("b", {}, value), h("span", {}, words));
    replace(facts, fact(percent(at, 0), "confidence threshold"), fact(percent(figureOf(all).value) + interval(figureOf(all)), "accuracy of kept predictions"), fact(percent(all.all ? all.kept / all.all : null), "coverage"),
      fact(count(Math.round(all.kept - all.right)), "wrong predictions kept"), fact(count(Math.round(all.all - all.kept)), "predictions rejected"));
    const list = groups.map((g) => ({ name: g.name, ...keep(store, g.rows, at) })).sort((a, b) => (a.right / a.kept || 0) - (b.right / b.kept || 0));
    replace(rows, list.map((g) => h("tr", {}, h("td", { class: "name" }, g.name), h("td", { class: "figures" }, percent(figureOf(g).value) + interval(figureOf(g))), h("td", { class: "figures" }, percent(g.kept / g.all)), h("td", { class: "figures" }, count(Math.round(g.kept))))));
    marker?.(at);
  };
  let marker: ((at: number) => void) | undefined;
  picture.append(figure({
    name: "threshold", title: "Selective prediction: accuracy against coverage", legend: [["accuracy of kept predictions", "var(--accent)"], ["coverage: share of predictions kept", "var(--second)"]],
    table: () => ({ columns: ["threshold", "coverage", "accuracy", "kept"], rows: line.map((p) => [p.threshold, p.coverage, p.accuracy, p.kept]) }),
    draw: (width) => {
      const known = line.filter((p) => p.accuracy !== null);
      const svg = plot({
        width, height: 240, marginLeft: 46, marginRight: 16, x: { domain: [0, 1], label: "confidence threshold", tickFormat: "%", ticks: 5 }, y: { label: null, tickFormat: "%", grid: true, ticks: 5, domain: [0, 1] },
        marks: [Plot.line(known, { x: "threshold", y: "accuracy", stroke: "var(--accent)", strokeWidth: 2 }), Plot.line(line, { x: "threshold", y: "coverage", stroke: "var(--second)", strokeWidth: 2 }),
          Plot.ruleX([0], { stroke: "currentColor", className: "marks-threshold" })],
      });
      const rule = svg.querySelector(".marks-threshold line");
      marker = (at) => rule?.setAttribute("transform", `translate(${at * (width - 62)},0)`);
      marker(Number(slider.value) || 0);
      return svg;
    },
  }));
  slider.addEventListener("input", show);
  slider.addEventListener("change", () => store.choose("confidence.threshold", slider.value, "0"));
  show();
  return h("div", { class: "row" }, h("div", { class: "body" }, picture),
    h("div", { class: "panel" }, h("h3", {}, "Keep predictions with at least this confidence"), slider, facts, h("h4", {}, "By class and group, lowest accuracy first"),
      h("div", { class: "scroll short" }, h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "class or group"), h("th", { class: "figures" }, "accuracy"), h("th", { class: "figures" }, "coverage"), h("th", { class: "figures" }, "kept"))), rows))));
}

export function confidence(store: Store): Section | null {
  const all = store.report.confidence;
  if (!all || !all.bins.length) return null;
  return section(store, "confidence", "Confidence", "calibration and selective prediction", (body) => {
    const now = recount(store, all);
    if (!now.bins.length) return replace(body, h("p", { class: "muted" }, "No predictions pass the filter."));
    replace(body, h("div", { class: "row" }, reliability(now), histogram(now)), store.size ? threshold(store) : null);
    return undefined;
  });
}
