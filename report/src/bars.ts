// Shares with their intervals, as bars that can be clicked.
import * as Plot from "@observablehq/plot";
import { clickable, nameMargin, plot } from "./figure";
import { count, interval, number, percent, plural, shortened } from "./format";
import type { Figure } from "../generated/evidence";

export interface Bar extends Figure {
  name: string;
  samples: number;
  picked: boolean;
}

/// Shares; where a value lies beyond 1 they are figures of another kind (a mean error), and the axis begins at 0.
export function shareBars(bars: Bar[], width: number, overall: number | null, click: (bar: Bar) => void): SVGSVGElement {
  const known = bars.filter((b) => b.value !== null);
  const shares = known.every((b) => b.value! >= 0 && b.value! <= 1);
  const words = (value: number | null) => (shares ? percent(value) : number(value));
  const most = shares ? 1 : Math.max(...known.map((b) => b.high ?? b.value!));
  const lowest = Math.min(1, ...known.map((b) => b.low ?? b.value!), overall ?? 1);
  const floor = shares && lowest > 0.5 ? Math.floor(lowest * 20 - 1e-9) / 20 : 0; // near the top, differences need room; the axis says so
  const names = new Map(bars.map((b, i) => [i, shortened(b.name, 30)]));
  const rows = bars.map((b, i) => ({ ...b, i }));
  const drawn = rows.filter((b) => b.value !== null);
  const svg = plot({
    width, height: 46 + 22 * bars.length, marginLeft: nameMargin([...names.values()], 200), marginRight: 110, marginTop: 8,
    x: { domain: [floor, most], label: null, tickFormat: shares ? "%" : undefined, ticks: 5, grid: true },
    y: { domain: rows.map((b) => b.i), label: null, tickSize: 0, tickFormat: (i: number) => names.get(i) ?? "" },
    marks: [
      Plot.barX(drawn, { y: "i", x1: floor, x2: (b) => Math.max(floor, b.value), fill: (b) => (b.picked ? "var(--accent)" : "var(--accent-soft)"), insetTop: 3, insetBottom: 3, rx: 2, className: "marks-shares" }),
      Plot.ruleY(drawn, { y: "i", x1: (b) => Math.max(floor, b.low ?? b.value), x2: (b) => b.high ?? b.value, stroke: "currentColor", strokeWidth: 1.5 }),
      Plot.dot(drawn, { y: "i", x: (b) => Math.max(floor, b.value), fill: "var(--accent)", r: 3.5, pointerEvents: "none" }),
      overall === null ? null : Plot.ruleX([overall], { stroke: "var(--muted)", strokeDasharray: "3,3" }),
      Plot.text(drawn, { y: "i", frameAnchor: "right", dx: 104, textAnchor: "end", text: (b) => `${words(b.value)} of ${count(b.samples)}`, fill: "var(--muted)", fontSize: 11 }),
    ],
    color: { type: "identity" },
  });
  clickable(svg, "shares", drawn, (b) => `${b.name}: ${words(b.value)}${interval(b, shares ? 100 : 1, shares ? 1 : 3)} of ${plural(b.samples, "input")}`, click);
  return svg;
}
