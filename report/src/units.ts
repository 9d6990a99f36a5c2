// The units of a layer as sorted bars, and one unit in full.
import * as Plot from "@observablehq/plot";
import type { Detail } from "./detail";
import { button, h } from "./dom";
import { clickable, figure, plot } from "./figure";
import { count, number, percent, plural, shortened } from "./format";
import { gallery } from "./input_view";
import { measures, type Measure } from "./network";
import type { Layer, Unit } from "../generated/evidence";
import type { Store } from "./store";

const mostBars = 80;

export function unitBars(store: Store, layer: Layer, units: Unit[], measure: Measure, picked: Unit | undefined, pick: (unit: Unit) => void): HTMLElement | null {
  if (!units.length) return null;
  const value = measures[measure].unit;
  const words = measure === "health" ? "share of zeros" : measures[measure].words; // a unit by itself is dead or not
  const sorted = [...units].sort((a, b) => (value(b) ?? -1) - (value(a) ?? -1));
  const drawn = sorted.slice(0, mostBars);
  if (store.setting("network.view", "map") === "list") {
    return h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "unit"), [words, "mean", "std", "zeros", "rank"].map((w) => h("th", { class: "figures" }, w)))),
      h("tbody", {}, drawn.map((u) => h("tr", { class: u === picked ? "picked" : "" }, h("td", { class: "name" }, button(u.name, () => pick(u), { class: "link" })), h("td", { class: "figures" }, number(value(u))), h("td", { class: "figures" }, number(u.mean)),
        h("td", { class: "figures" }, number(u.sd)), h("td", { class: "figures" }, percent(u.zeros)), h("td", { class: "figures" }, u.rank === null ? "–" : count(u.rank)))))));
  }
  const title = `${layer.name}: ${sorted.length > mostBars ? `the first ${mostBars} of ${count(sorted.length)} units` : "units"} by ${words}`;
  return figure({
    name: "layer", title, note: "Click a bar to see the unit.",
    table: () => ({ columns: ["unit", words, "mean", "std", "zeros"], rows: sorted.map((u) => [u.name, value(u), u.mean, u.sd, u.zeros]) }),
    draw: (width) => {
      const rows = drawn.map((u, i) => ({ u, i, v: value(u) ?? 0 }));
      const svg = plot({
        width, height: 200, marginLeft: 46, marginBottom: 16, x: { domain: rows.map((r) => r.i), axis: null, padding: 0.15 }, y: { label: words, grid: true, ticks: 4, zero: true }, color: { type: "identity" },
        marks: [Plot.barY(rows, { x: "i", y1: 0, y2: (r) => Math.max(r.v, 1e-12), fill: (r) => (r.u === picked ? "var(--ink)" : "var(--accent)"), className: "marks-units" }), Plot.ruleY([0])],
      });
      clickable(svg, "units", rows, (r) => `${r.u.name}: ${number(value(r.u))}`, (r) => pick(r.u));
      return svg;
    },
  });
}

function distribution(unit: Unit): HTMLElement | null {
  const { edges, right, wrong } = unit;
  if (!edges || !right || !wrong) return null;
  const total = { right: right.reduce((a, b) => a + b, 0), wrong: wrong.reduce((a, b) => a + b, 0) };
  const bars = right.flatMap((n, i) => [{ x1: edges[i], x2: edges[i + 1], y: n / (total.right || 1), fill: "var(--right)" }, { x1: edges[i], x2: edges[i + 1], y: -wrong[i] / (total.wrong || 1), fill: "var(--wrong)" }]);
  return figure({
    name: "unit", title: `${unit.name}: activation for correct and wrong predictions`, legend: [[`correct, ${plural(total.right, "input")}`, "var(--right)"], [`wrong, ${plural(total.wrong, "input")}`, "var(--wrong)"]],
    table: () => ({ columns: ["from", "to", "right", "wrong"], rows: right.map((n, i) => [edges[i], edges[i + 1], n, wrong[i]]) }),
    draw: (width) => plot({
      width, height: 180, marginLeft: 46, x: { label: "activation" }, y: { label: "share", tickFormat: (v: number) => percent(Math.abs(v), 0), ticks: 5, grid: true }, color: { type: "identity" },
      marks: [Plot.rectY(bars, { x1: "x1", x2: "x2", y: "y", fill: "fill", inset: 0.3 }), Plot.ruleY([0])],
    }),
  });
}

function byClass(store: Store, unit: Unit): HTMLElement | null {
  const means = unit.by_class;
  const names = store.report.classes ?? [];
  if (!means?.length || means.length > 100) return null;
  return figure({
    name: "unit-classes", title: `${unit.name}: mean activation by class`,
    table: () => ({ columns: ["class", "mean"], rows: means.map((m, i) => [names[i] ?? i, m]) }),
    draw: (width) => {
      const turned = names.some((n) => 6.5 * [...n].length > width / means.length - 4);
      const rows = means.map((m, i) => ({ m, i }));
      const svg = plot({
        width, height: turned ? 220 : 160, marginLeft: 46, marginBottom: turned ? 76 : 26, x: { domain: rows.map((r) => r.i), label: null, tickFormat: (i: number) => shortened(names[i] ?? String(i), 12), tickRotate: turned ? -45 : 0, tickSize: 0 }, y: { label: "mean", grid: true, ticks: 4 }, color: { type: "identity" },
        marks: [Plot.barY(rows, { x: "i", y: "m", fill: (r) => (store.filter.class === names[r.i] ? "var(--ink)" : "var(--accent)"), className: "marks-means", rx: 1 }), Plot.ruleY([0])],
      });
      clickable(svg, "means", rows, (r) => `${names[r.i] ?? r.i}: ${number(r.m)}`, (r) => names[r.i] !== undefined && store.toggle({ class: names[r.i] }));
      return svg;
    },
  });
}

export function unitPanel(store: Store, detail: Detail, unit: Unit): HTMLElement {
  const drivers = (unit.drivers ?? []).filter(store.passes);
  const fact = (value: string, words: string) => h("div", {}, h("b", {}, value), h("span", {}, words));
  return h("div", { class: "row" },
    h("div", { class: "panel" }, h("h3", {}, unit.name), h("div", { class: "facts" }, fact(number(unit.mean), "mean"), fact(number(unit.sd), "standard deviation"), fact(`${number(unit.min)} … ${number(unit.max)}`, "min and max"), fact(percent(unit.zeros), "of inputs give 0"),
      unit.blame === null ? null : fact(number(unit.blame), `suspiciousness${unit.rank === null ? "" : `, rank ${count(unit.rank)}`}`), unit.importance === null ? null : fact(percent(unit.importance, 2), "importance: share of the relevance"), fact(percent(unit.untested, 2), "of training inputs exceed every test")),
      drivers.length ? h("div", {}, h("h4", {}, "Inputs with the highest activation"), gallery(store, drivers, (r) => detail.open(r, drivers))) : null),
    distribution(unit), byClass(store, unit));
}
