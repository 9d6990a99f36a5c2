// A training run: curves, what each layer's gradients and updates did over time, and what happened.
import * as Plot from "@observablehq/plot";
import { h, replace } from "./dom";
import { figure, nameMargin, plot } from "./figure";
import { count, number, plural, shortened } from "./format";
import { section, type Section } from "./section";
import type { TrainingCurve, TrainingLayer } from "../generated/evidence";
import type { Store } from "./store";

const mostLayers = 60;
const wideRange = 50; // the largest over the least value from which on an axis is logarithmic
const colours = ["var(--accent)", "var(--serious)", "var(--right)", "var(--muted)"];

type Quantity = "gradient" | "update" | "activation" | "still";
interface Point { name: string; step: number; value: number }
interface Cell { layer: number; look: number; step: number; value: number }

function points(curves: TrainingCurve[]): Point[] {
  return curves.flatMap((curve) => curve.step.flatMap((step, i) => {
    const value = curve.value[i];
    return step === null || value === null || value === undefined ? [] : [{ name: curve.name, step, value }];
  }));
}

function curves(name: string, title: string, all: TrainingCurve[], label: string, events: number[]): HTMLElement | null {
  const drawn = points(all);
  if (drawn.length < 2) return null;
  const values = drawn.map((p) => p.value).filter((v) => v > 0);
  const logarithmic = label !== "accuracy" && values.length === drawn.length && Math.max(...values) / Math.min(...values) > wideRange;
  const names = all.map((c) => c.name);
  const colour = (at: string) => colours[Math.max(0, names.indexOf(at)) % colours.length];
  return figure({
    name, title, legend: names.map((one) => [one, colour(one)]),
    note: `${logarithmic ? "Logarithmic axis. " : ""}${events.length ? "Dashed: the events listed below." : ""}`.trim() || undefined,
    table: () => ({ columns: ["curve", "step", "value"], rows: drawn.map((p) => [p.name, p.step, p.value]) }),
    draw: (width) => plot({
      width, height: 240, marginLeft: 58, x: { label: "step", ticks: 6 }, color: { type: "identity" },
      y: { label, grid: true, ticks: 5, type: logarithmic ? "log" : "linear", zero: label === "accuracy", ...(label === "accuracy" ? { tickFormat: "%" } : {}) },
      marks: [
        events.length ? Plot.ruleX(events, { stroke: "var(--muted)", strokeDasharray: "3,3" }) : null,
        Plot.line(drawn, { x: "step", y: "value", z: "name", stroke: (p: Point) => colour(p.name), strokeWidth: 1.6 }),
        Plot.dot(drawn.length <= 120 ? drawn : [], { x: "step", y: "value", fill: (p: Point) => colour(p.name), r: 2, title: (p: Point) => `${p.name}, step ${count(p.step)}: ${number(p.value)}` }),
      ],
    }),
  });
}

/// Layers down, steps that were looked at across; the darker the larger.
function byLayer(name: string, title: string, note: string, layers: TrainingLayer[], quantity: Quantity, share = false): HTMLElement | null {
  const shown = layers.filter((layer) => layer[quantity].some((v) => v !== null && v !== undefined)).slice(0, mostLayers);
  if (!shown.length) return null;
  const steps = [...new Set(shown.flatMap((layer) => layer.step.filter((one): one is number => one !== null)))].sort((a, b) => a - b);
  const look = new Map(steps.map((one, i) => [one, i]));
  const cells: Cell[] = shown.flatMap((layer, at) => layer.step.flatMap((one, i) => {
    const value = layer[quantity][i];
    return one === null || value === null || value === undefined ? [] : [{ layer: at, look: look.get(one)!, step: one, value }];
  }));
  const log = (value: number) => Math.log10(Math.max(value, 1e-12));
  const sizes = cells.map((c) => log(c.value));
  const [low, high] = [Math.min(...sizes), Math.max(...sizes)];
  const strength = (c: Cell) => (share ? Math.min(1, Math.max(0, c.value)) : high > low ? (log(c.value) - low) / (high - low) : 0.5);
  return figure({
    name, title, note: `${note}${shown.length < layers.length && shown.length === mostLayers ? ` The first ${mostLayers} layers.` : ""}`,
    table: () => ({ columns: ["layer", "step", quantity], rows: cells.map((c) => [shown[c.layer].name, c.step, c.value]) }),
    draw: (width) => plot({
      width, height: 46 + 18 * shown.length, marginLeft: nameMargin(shown.map((l) => shortened(l.name, 26)), 200), marginRight: 12,
      x: { label: "step", domain: steps.map((_, i) => i), type: "band", padding: 0.04, tickFormat: (i: number) => count(steps[i]), ticks: 8, tickSize: 0,
        ...(steps.length > 12 ? { ticks: steps.map((_, i) => i).filter((i) => i % Math.ceil(steps.length / 10) === 0) } : {}) },
      y: { label: null, domain: shown.map((_, i) => i), type: "band", padding: 0.08, tickFormat: (i: number) => shortened(shown[i].name, 26), tickSize: 0 },
      marks: [Plot.cell(cells, { x: "look", y: "layer", fill: "var(--accent)", fillOpacity: (c: Cell) => 0.06 + 0.94 * strength(c), title: (c: Cell) => `${shown[c.layer].name}, step ${count(c.step)}: ${number(c.value)}` })],
      opacity: { type: "identity" },
    }),
  });
}

export function training(store: Store): Section | null {
  const all = store.report.training;
  if (!all) return null;
  return section(store, "training", "Training", `${all.about}, ${plural(all.steps, "step")}`, (body) => {
    const events = all.events.map((e) => e.step).filter((one): one is number => one !== null);
    const of = (one: TrainingCurve["plot"]) => all.curves.filter((c) => c.plot === one);
    const looked = "Columns are the steps that were looked at closely. Darker is larger, on a logarithmic scale.";
    replace(body,
      h("div", { class: "row" }, curves("training-loss", "Loss", of("loss"), "loss", events), curves("training-accuracy", "Accuracy", of("accuracy"), "accuracy", [])),
      byLayer("training-gradients", "Gradient of each parameter", `Gradient norm by the root of the number of weights. ${looked}`, all.layers, "gradient"),
      byLayer("training-updates", "Update of each parameter", `Norm of a step by the norm of the weights; about 0.001 is usual. ${looked}`, all.layers, "update"),
      byLayer("training-activations", "Activations of each layer", `Mean absolute activation. ${looked}`, all.layers, "activation"),
      byLayer("training-still", "Dead and saturated units", "Share of units that are 0 for every input of a batch, or of outputs in the saturated range of their activation function. Darker is more.", all.layers, "still", true),
      all.events.length ? h("div", { class: "panel" }, h("h3", {}, "Events"), h("dl", {}, all.events.map((e) => [h("dt", {}, e.step === null ? "run" : `step ${count(e.step)}`), h("dd", {}, e.what)]))) : null);
  });
}
