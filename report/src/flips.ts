// Fixes against regressions: what a repair and a comparison share.
import * as Plot from "@observablehq/plot";
import { clickable, figure, nameMargin, plot } from "./figure";
import { plural, shortened } from "./format";
import type { Store } from "./store";

export const flipWords = "A fix is a wrong prediction that became correct, a regression a correct prediction that became wrong.";

export const mostShown = 36; // the document has pictures for so many

export interface FlipRow {
  name: string;
  fixed: number;
  broken: number;
}

export function flipBars(name: string, title: string, all: FlipRow[], click?: (row: FlipRow) => void, note?: string): HTMLElement {
  const rows = all.filter((r) => r.fixed || r.broken).sort((a, b) => b.fixed + b.broken - a.fixed - a.broken).slice(0, 40).map((r, i) => ({ ...r, i }));
  const most = Math.max(1, ...rows.map((r) => Math.max(r.fixed, r.broken)));
  const names = rows.map((r) => shortened(r.name, 28));
  return figure({
    name, title, note: note ?? (rows.length < all.length ? `Not drawn: ${all.length - rows.length} without a change.` : undefined), legend: [["fixes", "var(--right)"], ["regressions", "var(--wrong)"]],
    table: () => ({ columns: ["name", "fixes", "regressions"], rows: all.map((r) => [r.name, r.fixed, r.broken]) }),
    draw: (width) => {
      const svg = plot({
        width, height: 52 + 22 * Math.max(1, rows.length), marginLeft: nameMargin(names, 190), marginRight: 12, x: { label: null, inset: 30, tickFormat: (v: number) => String(Math.abs(v)), ticks: Math.min(5, most), grid: true },
        y: { domain: rows.map((r) => r.i), tickFormat: (i: number) => names[i], label: null, tickSize: 0 },
        marks: [Plot.barX(rows, { y: "i", x: "fixed", fill: "var(--right)", insetTop: 3, insetBottom: 3, rx: 2, className: "marks-fixed" }), Plot.barX(rows, { y: "i", x: (r) => -r.broken, fill: "var(--wrong)", insetTop: 3, insetBottom: 3, rx: 2, className: "marks-broken" }),
          Plot.text(rows, { y: "i", x: "fixed", text: (r) => (r.fixed ? `+${r.fixed}` : ""), dx: 4, textAnchor: "start", fontSize: 11 }), Plot.text(rows, { y: "i", x: (r) => -r.broken, text: (r) => (r.broken ? `−${r.broken}` : ""), dx: -4, textAnchor: "end", fontSize: 11 }), Plot.ruleX([0])],
      });
      if (click) for (const label of ["fixed", "broken"]) clickable(svg, label, rows, (r) => `${r.name}: ${plural(r.fixed, "fix", "fixes")}, ${plural(r.broken, "regression")}`, click);
      return svg;
    },
  });
}

/// With a filter the flips are counted anew; without one the counts of the document stand.
export function countFlips(store: Store, flips: { row: number; fixed: boolean }[], all: FlipRow[], namesOf: (row: number) => string[]): FlipRow[] {
  if (!store.filtered) return all;
  const counts = new Map(all.map((r) => [r.name, { name: r.name, fixed: 0, broken: 0 }]));
  for (const flip of flips) for (const name of namesOf(flip.row)) {
    const entry = counts.get(name);
    if (entry) entry[flip.fixed ? "fixed" : "broken"]++;
  }
  return [...counts.values()];
}

export const classOf = (store: Store) => (row: number): string[] => [store.className(store.inputs.label[row])];
export const slicesOf = (store: Store) => (row: number): string[] => (store.inputs.slices?.[row] ?? []).map((i) => store.report.slices?.[i]?.name ?? "");
