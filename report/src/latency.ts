// How long one input takes: box plots over inputs, for all of them and by group.
import * as Plot from "@observablehq/plot";
import { h, replace } from "./dom";
import { figure, nameMargin, plot } from "./figure";
import { count, number, plural, shortened } from "./format";
import { section, type Section } from "./section";
import type { Store } from "./store";

const mostBoxes = 40;
const wideRange = 30; // the largest over the least value from which on the axis is logarithmic

export function latency(store: Store): Section | null {
  const all = store.report.latency;
  if (!all) return null;
  const boxes = [{ name: "all inputs", ...all.all }, ...all.groups];
  return section(store, "latency", "Latency", `${all.unit} per input on ${all.device}, batch size ${count(all.batch)}, ${plural(all.repeats, "repeat")} per input`, (body) => {
    const drawn = boxes.slice(0, mostBoxes).map((box, i) => ({ ...box, i, label: shortened(box.name, 30) }));
    const least = Math.min(...drawn.map((b) => b.min));
    const logarithmic = least > 0 && Math.max(...drawn.map((b) => b.max)) / least > wideRange;
    const words = (b: (typeof drawn)[number]) => `${b.name}: median ${number(b.median)} ${all.unit}, half of the inputs ${number(b.q1)}–${number(b.q3)}, all ${number(b.min)}–${number(b.max)}, ${plural(b.count, "input")}`;
    replace(body,
      store.filtered ? h("p", { class: "note" }, "Latency is over all measured inputs: it is stored as quartiles, to which a filter cannot be applied.") : null,
      figure({
        name: "latency", title: "Latency per input",
        note: `Box: first to third quartile; line in it: median; whiskers: minimum and maximum.${logarithmic ? " Logarithmic axis." : ""}${boxes.length > mostBoxes ? ` The first ${mostBoxes} of ${count(boxes.length)} groups; the CSV has all.` : ""}`,
        table: () => ({ columns: ["name", "min", "q1", "median", "q3", "max", "inputs"], rows: boxes.map((b) => [b.name, b.min, b.q1, b.median, b.q3, b.max, b.count]) }),
        draw: (width) => plot({
          width, height: 52 + 30 * drawn.length, marginLeft: nameMargin(drawn.map((b) => b.label), 210), marginRight: 150,
          x: { label: `latency per input (${all.unit})`, type: logarithmic ? "log" : "linear", grid: true, ticks: 6, zero: !logarithmic, nice: true }, y: { domain: drawn.map((b) => b.i), tickFormat: (i: number) => drawn[i].label, label: null, tickSize: 0 },
          marks: [
            Plot.ruleY(drawn, { y: "i", x1: "min", x2: "max", stroke: "var(--muted)" }),
            Plot.tickX(drawn, { y: "i", x: "min", stroke: "var(--muted)", insetTop: 9, insetBottom: 9 }), Plot.tickX(drawn, { y: "i", x: "max", stroke: "var(--muted)", insetTop: 9, insetBottom: 9 }),
            Plot.barX(drawn, { y: "i", x1: "q1", x2: "q3", fill: "var(--accent-soft)", stroke: "var(--accent)", insetTop: 5, insetBottom: 5, title: words, className: "marks-boxes" }),
            Plot.tickX(drawn, { y: "i", x: "median", stroke: "var(--accent)", strokeWidth: 2.5, insetTop: 5, insetBottom: 5 }),
            Plot.text(drawn, { y: "i", frameAnchor: "right", dx: 144, textAnchor: "end", text: (b) => `${number(b.median)} ${all.unit}, n = ${count(b.count)}`, fill: "var(--muted)", fontSize: 11 }),
          ],
        }),
      }));
  });
}
