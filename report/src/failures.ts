// The inputs that fail, worst first: as a grid of pictures or as a table of rows and sentences, grouped, ticked, exported.
import type { Detail } from "./detail";
import { button, choice, copyButton, h, replace } from "./dom";
import { csv, save, type Cell } from "./export";
import { count, number, percent, plural } from "./format";
import { opener, predictionWords, thumb } from "./input_view";
import { columnsOf, headCells, unusualWords, valueCells } from "./rows";
import { canFindSimilar } from "./similar";
import { section, type Section } from "./section";
import type { Store } from "./store";

type Sort = "loss" | "confidence" | "id" | "label" | "predicted";
const page = 96;

/// The CSV of inputs; `failures --on inputs=FILE` and the like read it.
function table(store: Store, rows: number[]): string {
  const { inputs, report } = store;
  const groups = Object.entries(inputs.groups);
  const name = (value: number | null) => (report.classes && value !== null ? store.className(value) : value);
  return csv({
    columns: ["split", "sample", "id", "label", "predicted", "confidence", "loss", "right", ...groups.map(([group]) => group)],
    rows: rows.map((row): Cell[] => [store.splitName(row), inputs.sample[row], inputs.id[row], name(inputs.label[row]), name(inputs.predicted[row]), inputs.confidence[row], inputs.loss[row], inputs.right[row],
      ...groups.map(([, group]) => group.values[group.of[row]])]),
  });
}

function mislabelled(store: Store, rows: number[]): string {
  const { inputs } = store;
  return csv({
    columns: ["split", "sample", "id", "given", "likely", "confidence"],
    rows: rows.map((row): Cell[] => [store.splitName(row), inputs.sample[row], inputs.id[row], store.className(inputs.label[row]), store.className(inputs.predicted[row]), inputs.confidence[row]]),
  });
}

/// The rows that the section is about: failures; without labels, all inputs.
function chosen(store: Store, everything: boolean): number[] {
  const { inputs, rows } = store;
  const labelled = inputs.right.some((right) => right !== null);
  return everything || !labelled ? [...rows] : rows.filter((row) => inputs.right[row] === 0);
}

function sorted(store: Store, rows: number[], by: Sort): number[] {
  const { inputs } = store;
  const key: Record<Sort, (row: number) => number | string> = {
    loss: (row) => -(inputs.loss[row] ?? -(inputs.confidence[row] ?? 0)),
    confidence: (row) => -(inputs.confidence[row] ?? -1),
    id: (row) => inputs.id[row],
    label: (row) => inputs.label[row] ?? -1,
    predicted: (row) => inputs.predicted[row] ?? -1,
  };
  const keys = new Map(rows.map((row) => [row, key[by](row)]));
  return rows.sort((a, b) => {
    const [x, y] = [keys.get(a)!, keys.get(b)!];
    return x < y ? -1 : x > y ? 1 : a - b;
  });
}

function grouped(store: Store, rows: number[], by: string): [string, number[]][] {
  if (by === "none") return [["", rows]];
  const groups = new Map<string, number[]>();
  for (const row of rows) {
    const cluster = store.inputs.cluster?.[row];
    const name = by === "pair" ? predictionWords(store, row) : cluster === null || cluster === undefined ? "no cluster" : `cluster ${cluster + 1}`;
    groups.set(name, [...(groups.get(name) ?? []), row]);
  }
  return [...groups].sort((a, b) => b[1].length - a[1].length);
}

export function failures(store: Store, detail: Detail): Section | null {
  if (!store.size) return null;
  const { inputs, report } = store;
  const labelled = inputs.right.some((right) => right !== null);
  const finds = Boolean(store.places || store.listed.size);
  const clustered = Boolean(inputs.cluster?.some((cluster) => cluster !== null));
  const usualView = store.isRead ? "table" : "grid";
  const second = inputs.second && (report.classes?.length ?? 0) > 2; // of two classes it is the other one
  const ownColumns = new Set(columnsOf(store).map((column) => column.name));
  const otherGroups = Object.entries(inputs.groups).filter(([name]) => !ownColumns.has(name));
  let most = page;
  let shown: number[] = [];
  const ticks = h("div", { class: "tools ticks" });

  const drawTicks = () => {
    const rows = [...store.ticked].sort((a, b) => a - b);
    const none = rows.length === 0;
    replace(ticks, h("b", {}, none ? "Tick inputs to export them." : `${plural(rows.length, "input")} ticked`),
      button("tick all", () => { shown.forEach((row) => store.ticked.add(row)); self.update(); }, { class: "small" }),
      button("clear ticks", () => { store.ticked.clear(); self.update(); }, { class: "small", disabled: none }),
      button("ticked as CSV", () => save("inputs.csv", table(store, rows)), { class: "small", disabled: none }),
      report.classes && labelled ? button("mislabelled as CSV", () => save("mislabelled.csv", mislabelled(store, rows)), { class: "small", disabled: none }) : null,
      none ? null : copyButton('netmend accept inputs --file inputs.csv --reason "…"', "copy accept command"),
      button("all shown as CSV", () => save("failures.csv", table(store, shown)), { class: "small" }));
  };
  const tick = (row: number) => h("input", {
    type: "checkbox", checked: store.ticked.has(row), "aria-label": `tick ${inputs.id[row]}`,
    onchange: () => { store.ticked.has(row) ? store.ticked.delete(row) : store.ticked.add(row); drawTicks(); },
  });

  const finder = (row: number) => (canFindSimilar(store, row) ? button("similar", () => detail.open(row, shown, true), { class: "link similar", "aria-label": `find inputs similar to ${inputs.id[row]}` }) : null);

  const set = (name: string, value: string, otherwise: string) => {
    store.choose(`failures.${name}`, value, otherwise);
    self.update();
  };

  const grid = (rows: number[]) => h("div", { class: finds ? "thumbs wide" : "thumbs" }, rows.map((row) =>
    h("div", { class: "cell" }, thumb(store, row, (r) => detail.open(r, shown)), h("div", { class: "under" }, h("label", {}, tick(row), percent(inputs.confidence[row], 0)), finder(row)))));

  const columns = (sort: Sort): HTMLElement[] => {
    const head = (words: string, by: Sort | null, figures = false) => h("th", { class: figures ? "figures" : "", "aria-sort": by === sort ? "descending" : null },
      by ? button(words, () => set("sort", by, "loss")) : words);
    return [h("th"), store.isRead ? null : h("th"), head("id", "id"), store.shows === "texts" ? head("sentence", null) : null, labelled ? head("label", "label") : null, head("prediction", "predicted"), head("confidence", "confidence", true),
      second ? head("second prediction", null) : null, head("loss", "loss", true), inputs.before ? head("reference", null) : null, clustered ? head("cluster", null) : null,
      ...otherGroups.map(([name]) => head(name, null)), ...headCells(store), finds ? h("th") : null].filter((e): e is HTMLTableCellElement => e !== null);
  };
  const line = (row: number) => h("tr", {},
    h("td", {}, tick(row)), store.isRead ? null : h("td", {}, thumb(store, row, (r) => detail.open(r, shown), false)),
    h("td", { class: "name" }, store.shows === "rows" ? opener(store, row, (r) => detail.open(r, shown)) : inputs.id[row]), store.shows === "texts" ? h("td", { class: "sentence" }, opener(store, row, (r) => detail.open(r, shown))) : null,
    labelled ? h("td", { class: "name" }, report.classes ? store.className(inputs.label[row]) : number(inputs.label[row])) : null,
    h("td", { class: "name" }, report.classes ? store.className(inputs.predicted[row]) : number(inputs.predicted[row])), h("td", { class: "figures" }, percent(inputs.confidence[row])),
    second ? h("td", { class: "name" }, store.className(inputs.second![row])) : null, h("td", { class: "figures" }, number(inputs.loss[row])),
    inputs.before ? h("td", {}, inputs.before[row] === null ? "–" : inputs.before[row] ? "correct" : "wrong") : null, clustered ? h("td", { class: "figures" }, inputs.cluster![row] === null ? "–" : inputs.cluster![row]! + 1) : null,
    otherGroups.map(([, group]) => h("td", {}, group.values[group.of[row]] ?? "–")), valueCells(store, row), finds ? h("td", {}, finder(row)) : null);

  const self = section(store, "failures", labelled ? "Failures" : "Inputs", labelled ? "wrong predictions, highest loss first; open one for details" : "lowest confidence first", (body) => {
    const everything = store.setting("failures.show", store.filter.finding ? "all" : "wrong") === "all";
    const view = store.shows === "rows" ? "table" : store.setting("failures.view", usualView);
    const sort = store.setting("failures.sort", "loss") as Sort;
    const group = store.setting("failures.group", "none");
    shown = sorted(store, chosen(store, everything), ["loss", "confidence", "id", "label", "predicted"].includes(sort) ? sort : "loss");
    const groups = grouped(store, shown, group);
    const perGroup = group === "none" ? most : Math.max(12, Math.floor(most / Math.max(1, groups.length)));
    const part = ([name, rows]: [string, number[]]) => [name ? h("h3", { class: "group" }, `${name} · ${count(rows.length)}`) : null,
      view === "grid" ? grid(rows.slice(0, perGroup)) : h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, columns(sort))), h("tbody", {}, rows.slice(0, perGroup).map(line))))];
    const hidden = groups.reduce((sum, [, rows]) => sum + Math.max(0, rows.length - perGroup), 0);
    replace(body,
      h("div", { class: "tools" },
        labelled ? choice("which inputs", [["wrong", "failures"], ["all", "all inputs"]], everything ? "all" : "wrong", (v) => set("show", v, store.filter.finding ? "all" : "wrong")) : null,
        store.shows === "rows" ? null : choice("view", [["grid", "grid"], ["table", "table"]], view, (v) => set("view", v, usualView)),
        h("label", {}, "sort by ", h("select", { "aria-label": "sort by", onchange: (e: Event) => set("sort", (e.target as HTMLSelectElement).value, "loss") },
          (["loss", "confidence", "id", "label", "predicted"] as Sort[]).map((by) => h("option", { value: by, selected: by === sort }, by === "predicted" ? "prediction" : by)))),
        report.classes ? choice("group by", [["none", "no groups"], ["pair", "by confused pair"], ...(clustered ? [["cluster", "by cluster"] as [string, string]] : [])], group, (v) => set("group", v, "none")) : null,
        h("span", { class: "shown-count" }, plural(shown.length, everything || !labelled ? "input" : "failure"))),
      ticks,
      store.shows === "rows" ? h("p", { class: "note" }, unusualWords(store), ownColumns.size && columnsOf(store).some((column) => !column.input) ? " Columns in italics are not given to the model." : null) : null,
      shown.length ? groups.map(part) : h("p", { class: "muted" }, "No inputs pass the filter."),
      hidden ? button(`show more (${count(hidden)} not shown)`, () => { most *= 3; self.update(); }, { class: "small" }) : null,
      inputs.left_out ? h("p", { class: "note" }, `${plural(inputs.left_out, "correctly predicted input is", "correctly predicted inputs are")} not stored in this page. Filtered views weight the stored ones up to make up for that.`) : null);
    drawTicks();
  });
  return self;
}
