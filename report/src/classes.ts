// The confusion matrix, recall by class, accuracy by slice.
import { shareBars, type Bar } from "./bars";
import { choice, h, replace } from "./dom";
import { figure } from "./figure";
import { count, wilson } from "./format";
import { matrix, worstPairs, type Confusion } from "./matrix";
import { neighbourOrder } from "./order";
import { section, type Section } from "./section";
import type { Store } from "./store";

const matrixLimit = 50;
const barLimit = 30;

/// Counts of the rows that the filter leaves; of everything, as the document counts it, when there is no filter.
export function confusion(store: Store): Confusion {
  const { inputs, report } = store;
  if (!store.filtered && report.confusion) return report.confusion;
  const names = report.classes ?? [];
  const counts = new Map<string, [number, number, number]>();
  for (const row of store.rows) {
    const [label, predicted] = [inputs.label[row], inputs.predicted[row]];
    if (label === null || predicted === null || !(label in names && predicted in names)) continue;
    const entry = counts.get(`${label} ${predicted}`) ?? [label, predicted, 0];
    entry[2] += store.weight(row);
    counts.set(`${label} ${predicted}`, entry);
  }
  return [...counts.values()].map(([a, b, n]) => [a, b, Math.round(n)]);
}

function classBars(store: Store): Bar[] {
  const { report, filter } = store;
  const rows = report.per_class ?? [];
  if (!store.filtered) return rows.map((r) => ({ ...r, picked: false }));
  const sums = new Map<number, [number, number]>();
  for (const [label, predicted, n] of confusion(store)) {
    const sum = sums.get(label) ?? [0, 0];
    sums.set(label, [sum[0] + (label === predicted ? n : 0), sum[1] + n]);
  }
  return rows.map((row, i) => {
    const [right, all] = sums.get(i) ?? [0, 0];
    return { name: row.name, samples: all, picked: filter.class === row.name, ...wilson(right, all) };
  });
}

function sliceBars(store: Store): Bar[] {
  const { report, filter, inputs } = store;
  const slices = report.slices ?? []; // indices count all of them; clusters hold failures alone and have no rate
  const drawn = (bars: Bar[]) => bars.filter((_, i) => slices[i].source !== "cluster");
  if (!store.filtered || !inputs.slices || report.task === "number") return drawn(slices.map((s) => ({ ...s, samples: s.held_out ?? s.samples, picked: filter.slice === s.name })));
  const sums = slices.map(() => [0, 0]);
  for (const row of store.rows) {
    for (const slice of inputs.slices[row] ?? []) {
      if (!sums[slice] || inputs.right[row] === null) continue;
      sums[slice][0] += inputs.right[row] === 1 ? store.weight(row) : 0;
      sums[slice][1] += store.weight(row);
    }
  }
  return drawn(slices.map((s, i) => ({ name: s.name, picked: filter.slice === s.name, samples: Math.round(sums[i][1]), ...wilson(Math.round(sums[i][0]), Math.round(sums[i][1])) })));
}

function barTable(bars: Bar[]) {
  return { columns: ["name", "value", "low", "high", "inputs"], rows: bars.map((b) => [b.name, b.value, b.low, b.high, b.samples]) };
}

export function classes(store: Store): Section | null {
  const { report } = store;
  const names = report.classes ?? [];
  const hasMatrix = names.length > 1 && Boolean(report.confusion?.length);
  const hasClasses = Boolean(report.per_class?.length);
  const hasSlices = Boolean(report.slices?.some((s) => s.source !== "cluster"));
  if (!hasMatrix && !hasClasses && !hasSlices) return null;
  // The order does not change with the filter, so that cells stay where the eye left them.
  const order = hasMatrix && names.length <= matrixLimit ? neighbourOrder(names.length, report.confusion!) : names.map((_, i) => i);
  const overall = report.metric?.name === "accuracy" ? report.metric.value : null;

  const self = section(store, "classes", "Classes and slices", "click a cell or a bar to filter the page to its inputs", (body) => {
    const rates = store.setting("classes.show", "counts") === "rates";
    const cells = confusion(store);
    const settings = (width: number) => ({
      names, order, rates, width,
      click: (label: number, predicted: number) => store.toggle({ class: names[label], predicted: names[predicted] }),
      picked: (label: number, predicted: number) => store.filter.class === names[label] && store.filter.predicted === names[predicted],
    });
    const tools = choice("counts or rates", [["counts", "counts"], ["rates", "rates"]], rates ? "rates" : "counts", (v) => { store.choose("classes.show", v, "counts"); self.update(); });
    const small = names.length <= matrixLimit;
    const byClass = classBars(store);
    const many = byClass.length > barLimit;
    const drawnClasses = many ? [...byClass].filter((b) => b.value !== null).sort((a, b) => a.value! - b.value!).slice(0, barLimit) : order.map((i) => byClass[i]).filter(Boolean);
    const bySlice = sliceBars(store);
    const drawnSlices = bySlice.slice(0, barLimit);
    replace(body,
      h("div", { class: "row" },
        hasMatrix ? figure({
          name: "confusion", title: small ? "Confusion matrix" : "Most confused pairs", tools,
          note: small ? "Classes that are often confused are next to each other. Rates are per label (each row sums to 100 %)." : `${count(names.length)} classes: the pairs with the most failures. The CSV has all pairs.`,
          table: () => ({ columns: ["label", "predicted", "count"], rows: cells.map(([a, b, n]) => [names[a] ?? a, names[b] ?? b, n]) }),
          draw: (width) => (small ? matrix(cells, settings(width)) : worstPairs(cells, settings(width))),
        }) : null,
        h("div", { class: "body" },
          hasClasses ? figure({
            name: "classes", title: many ? `Recall by class: the lowest ${barLimit} of ${count(byClass.length)}` : "Recall by class", note: "Line: 95 % interval. Dashed: accuracy over all inputs.",
            table: () => barTable(byClass), draw: (width) => shareBars(drawnClasses, width, overall, (b) => store.toggle({ class: b.name })),
          }) : null,
          hasSlices ? figure({
            name: "slices", title: report.task === "number" ? "Slices" : "Accuracy by slice", note: store.filtered ? "Subgroups from group columns, and rules found over columns and simple properties of the inputs; over the inputs that pass the filter." : "Subgroups from group columns, over all of their inputs; and rules found over columns and simple properties of the inputs (defined under Method), over held-out inputs: those that a rule was not found on.",
            table: () => barTable(bySlice), draw: (width) => shareBars(drawnSlices, width, overall, (b) => store.toggle({ slice: b.name })),
          }) : null)));
  });
  return self;
}
