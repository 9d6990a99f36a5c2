// The confusion matrix as a plot; above fifty classes the most confused pairs as bars.
import * as Plot from "@observablehq/plot";
import { clickable, nameMargin, plot } from "./figure";
import { count, percent, shortened } from "./format";

export type Confusion = [label: number, predicted: number, count: number][];

export interface MatrixSettings {
  names: string[];
  order: number[];
  rates: boolean;
  width: number;
  click?: (label: number, predicted: number) => void;
  picked?: (label: number, predicted: number) => boolean;
}

export function matrix(confusion: Confusion, { names, order, rates, width, click, picked }: MatrixSettings): SVGSVGElement {
  const sums = new Map<number, number>();
  for (const [label, , n] of confusion) sums.set(label, (sums.get(label) ?? 0) + n);
  const found = new Map(confusion.map(([label, predicted, n]) => [label * names.length + predicted, n]));
  const cells = order.flatMap((label) => order.map((predicted) => {
    const n = found.get(label * names.length + predicted) ?? 0;
    return { label, predicted, n, rate: n / (sums.get(label) || 1), wrong: label !== predicted };
  }));
  const most = Math.max(1e-9, ...cells.filter((c) => c.wrong).map((c) => (rates ? c.rate : c.n)));
  const share = (c: (typeof cells)[number]) => (c.wrong ? Math.sqrt((rates ? c.rate : c.n) / most) : c.rate * 0.22);
  const text = (c: (typeof cells)[number]) => (c.n === 0 ? "" : rates ? (c.rate < 0.0005 ? "" : (100 * c.rate).toFixed(c.rate < 0.1 ? 1 : 0)) : count(c.n));
  const margin = nameMargin(order.map((i) => shortened(names[i], 18)), 130);
  const side = Math.max(12, Math.min(order.length > 4 ? 46 : 78, (width - margin - 8) / order.length));
  const name = (i: number) => shortened(names[i] ?? String(i), 18);
  const turned = order.some((i) => [...(names[i] ?? "")].length * 6.4 > side);
  const svg = plot({
    width: margin + side * order.length + 8,
    height: side * order.length + (turned ? margin : 36) + 24,
    marginLeft: margin, marginRight: 8, marginTop: turned ? margin : 36, marginBottom: 24,
    x: { domain: order, axis: "top", label: null, tickFormat: name, tickRotate: turned ? -60 : 0, tickSize: 0 },
    y: { domain: order, label: null, tickFormat: name, tickSize: 0 },
    opacity: { domain: [0, 1], range: [0, 1] },
    marks: [
      Plot.cell(cells, { x: "predicted", y: "label", fill: "var(--soft)", inset: 0.5, rx: 2 }),
      Plot.cell(cells, { x: "predicted", y: "label", fill: (c) => (c.wrong ? "var(--wrong)" : "var(--right)"), fillOpacity: share, inset: 0.5, rx: 2, className: "marks-confusions",
        stroke: (c) => (picked?.(c.label, c.predicted) ? "var(--ink)" : "none"), strokeWidth: 2 }),
      Plot.text(side >= 20 ? cells : [], { x: "predicted", y: "label", text, fontSize: Math.min(11, side / 3.2), fill: "currentColor", pointerEvents: "none" }),
      Plot.text(["rows: label · columns: predicted class"], { frameAnchor: "bottom-left", dy: 18, dx: 0, fill: "var(--muted)", fontSize: 11 }),
    ],
    color: { type: "identity" },
  });
  if (click) clickable(svg, "confusions", cells, (c) => `${names[c.label]} predicted as ${names[c.predicted]}: ${count(c.n)} (${percent(c.rate)})`, (c) => click(c.label, c.predicted));
  return svg;
}

export function worstPairs(confusion: Confusion, { names, rates, width, click }: MatrixSettings): SVGSVGElement {
  const sums = new Map<number, number>();
  for (const [label, , n] of confusion) sums.set(label, (sums.get(label) ?? 0) + n);
  const pairs = confusion.filter(([a, b]) => a !== b).map(([label, predicted, n]) => ({ label, predicted, n, value: rates ? n / sums.get(label)! : n }))
    .sort((a, b) => b.value - a.value).slice(0, 30).map((p, i) => ({ ...p, i, name: shortened(`${names[p.label]}, predicted ${names[p.predicted]}`, 44) }));
  const svg = plot({
    width, height: 34 + 20 * pairs.length, marginLeft: nameMargin(pairs.map((p) => p.name), 230), marginRight: 44,
    x: { label: null, ticks: 4, tickFormat: rates ? "%" : undefined }, y: { domain: pairs.map((p) => p.i), label: null, tickSize: 0, tickFormat: (i: number) => pairs[i].name },
    marks: [Plot.barX(pairs, { y: "i", x: "value", fill: "var(--wrong)", insetTop: 2, insetBottom: 2, className: "marks-pairs" }),
      Plot.text(pairs, { y: "i", x: "value", text: (p) => (rates ? percent(p.value) : count(p.n)), textAnchor: "start", dx: 4 })],
  });
  if (click) clickable(svg, "pairs", pairs, (p) => `${names[p.label]} predicted as ${names[p.predicted]}: ${count(p.n)}`, (p) => click(p.label, p.predicted));
  return svg;
}
