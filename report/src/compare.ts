// This model against the reference, on the same inputs.
import * as Plot from "@observablehq/plot";
import type { Detail } from "./detail";
import { h, replace } from "./dom";
import { clickable, figure, plot } from "./figure";
import { confusion } from "./classes";
import { classOf, countFlips, flipBars, flipWords, mostShown, slicesOf } from "./flips";
import { count, fileName, interval, percent, points } from "./format";
import { gallery } from "./input_view";
import { matrix, worstPairs } from "./matrix";
import { neighbourOrder } from "./order";
import { section, type Section } from "./section";
import type { Store } from "./store";

export function compare(store: Store, detail: Detail): Section | null {
  const all = store.report.compare;
  if (!all) return null;
  const names = store.report.classes ?? [];
  const own = store.report.confusion ?? [];
  const order = names.length <= 50 ? neighbourOrder(names.length, [...own, ...(all.confusion ?? [])]) : [];
  return section(store, "compare", "Compare", `against ${fileName(all.reference)}`, (body) => {
    const flips = all.flips.filter((f) => store.passes(f.row));
    const fact = (value: string, words: string) => h("div", {}, h("b", {}, value), h("span", {}, words));
    const fixed = flips.filter((f) => f.fixed).length;
    const thumbs = (kind: boolean) => {
      const rows = flips.filter((f) => f.fixed === kind).map((f) => f.row);
      if (!rows.length) return null;
      return h("div", { class: "panel" }, h("h3", {}, `${kind ? "Fixes" : "Regressions"} · ${count(rows.length)}`), h("p", { class: "note" }, `Label, and the prediction of this model where it differs.${rows.length > mostShown ? ` The first ${mostShown} are shown.` : ""}`),
        gallery(store, rows.slice(0, mostShown), (r) => detail.open(r, rows), { heading: "label, prediction now" }));
    };
    const points_ = flips.filter((f) => f.confidence_before !== null && store.inputs.confidence[f.row] !== null).map((f) => ({ row: f.row, fixed: f.fixed, x: f.confidence_before!, y: store.inputs.confidence[f.row]! }));
    // Of the reference only the counts are known: its matrix can obey the class and the prediction, and nothing else.
    const chosen = (cells: [number, number, number][]) => cells.filter(([a, b]) => (!store.filter.class || names[a] === store.filter.class) && (!store.filter.predicted || names[b] === store.filter.predicted));
    const before = chosen(all.confusion ?? []);
    const now = confusion(store);
    const partly = Object.keys(store.filter).some((key) => key !== "class" && key !== "predicted");
    const drawMatrix = (cells: [number, number, number][]) => (width: number) => {
      const settings = { names, order, rates: false, width, click: (a: number, b: number) => store.toggle({ class: names[a], predicted: names[b] }) };
      return order.length ? matrix(cells, settings) : worstPairs(cells, settings);
    };
    const cellTable = (cells: [number, number, number][]) => () => ({ columns: ["label", "predicted", "count"], rows: cells.map(([a, b, n]) => [names[a] ?? a, names[b] ?? b, n]) });
    replace(body,
      h("div", { class: "panel" }, h("h3", {}, `Verdict: ${all.verdict}`), h("p", { class: "note" }, flipWords), h("div", { class: "facts" },
        fact(points(all.change.value) + interval(all.change), "change, 95 % interval"), fact(count(all.fixed), "fixes"), fact(count(all.broken), "regressions"),
        store.filtered ? fact(`${count(fixed)} / ${count(flips.length - fixed)}`, "fixes / regressions that pass the filter") : null)),
      h("div", { class: "row" },
        all.per_class.length ? flipBars("compare-classes", "Fixes and regressions by class", countFlips(store, flips, all.per_class, classOf(store)), (r) => store.toggle({ class: r.name })) : null,
        all.groups.length ? flipBars("compare-groups", "Fixes and regressions by group", countFlips(store, flips, all.groups, slicesOf(store)), store.report.slices ? (r) => store.toggle({ slice: r.name }) : undefined) : null,
        points_.length ? figure({
          name: "compare-confidence", title: "Confidence of the reference and of this model", legend: [["fixes", "var(--right)"], ["regressions", "var(--wrong)"]], note: "Each point is an input whose prediction became correct or wrong; click to open it.",
          table: () => ({ columns: ["id", "fixed", "confidence before", "confidence now"], rows: points_.map((p) => [store.inputs.id[p.row], p.fixed, p.x, p.y]) }),
          draw: (width) => {
            const svg = plot({
              width, height: 320, marginLeft: 46, x: { domain: [0, 1], label: "confidence of the reference", tickFormat: "%", ticks: 5 }, y: { domain: [0, 1], label: "confidence now", tickFormat: "%", grid: true, ticks: 5 }, color: { type: "identity" },
              marks: [Plot.line([[0, 0], [1, 1]], { stroke: "var(--muted)", strokeDasharray: "3,3" }), Plot.dot(points_, { x: "x", y: "y", fill: (p) => (p.fixed ? "var(--right)" : "var(--wrong)"), r: 4, fillOpacity: 0.7, className: "marks-flips", sort: null })],
            });
            clickable(svg, "flips", points_, (p) => `${store.inputs.id[p.row]}: ${percent(p.x)} → ${percent(p.y)}`, (p) => detail.open(p.row, points_.map((q) => q.row)));
            return svg;
          },
        }) : null),
      all.confusion?.length && names.length > 1 ? h("div", { class: "row" },
        figure({ name: "confusion-reference", title: `Confusion matrix of ${fileName(all.reference)}`, note: partly ? "Over all inputs: only the counts of the reference are stored." : undefined, table: cellTable(before), draw: drawMatrix(before) }),
        own.length ? figure({ name: "confusion-now", title: "Confusion matrix of this model", table: cellTable(now), draw: drawMatrix(now) }) : null) : null,
      flips.length ? h("div", { class: "row flips" }, thumbs(true), thumbs(false)) : null);
  });
}
