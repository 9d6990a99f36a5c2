// The inputs as points: features of the last hidden layer in two dimensions. What is drawn around filters the whole page.
import * as Plot from "@observablehq/plot";
import { decodeArea, encodeArea, rectangle, simplified, type Point } from "./area";
import type { Detail } from "./detail";
import { button, h, replace, s } from "./dom";
import { figure, plot } from "./figure";
import { count, interval, percent, plural, wilson } from "./format";
import { gallery, predictionWords, shown } from "./input_view";
import { lasso } from "./lasso";
import { colouring, colourings, type ColourBy, type Colouring } from "./map_colours";
import type { Places } from "./places";
import { section, type Section } from "./section";
import type { Store } from "./store";

const reach = 12; // pixels: how near a point must be to be meant
const mostThumbs = 18;
const mostRead = 6; // sentences and rows take more room
const mostTurns = 12;

/// All points of a colour are one path: ten thousand elements would make every redraw slow.
function dots(rows: number[], at: (row: number) => Point, colour: string, size: number, opacity: number): SVGElement {
  const d = rows.map((row) => { const [x, y] = at(row); return `M${x.toFixed(1)},${y.toFixed(1)}h0`; }).join("");
  return s("path", { d, stroke: colour, "stroke-width": size, "stroke-linecap": "round", "stroke-opacity": opacity, fill: "none" });
}

interface Cloud {
  store: Store;
  places: Places;
  detail: Detail;
  rows: number[]; // of the split that is looked at
  coloured: Colouring; // what the filter leaves
  select: (line: Point[]) => void;
}

function cloud({ store, places, detail, rows, coloured, select }: Cloud, width: number, tip: HTMLElement): SVGSVGElement {
  const { explained } = places.map;
  const axis = (i: number, words: string) => (!Number.isFinite(explained[i]) ? words : `${words} (${percent(explained[i], 0)} of the variance)`);
  const height = Math.round(Math.min(600, Math.max(300, 0.72 * width)));
  const svg = plot({
    width, height, marginLeft: 46, marginBottom: 34, marginTop: 22, x: { domain: places.x, label: axis(0, "first component"), ticks: 6 }, y: { domain: places.y, label: axis(1, "second component"), ticks: 6, grid: true }, marks: [Plot.frame({ stroke: "var(--line)" })],
  }) as SVGSVGElement & { scale: (name: string) => { apply: (value: number) => number; invert: (value: number) => number } };
  const [x, y] = [svg.scale("x"), svg.scale("y")];
  const at = (row: number): Point => { const [a, b] = places.of(row)!; return [x.apply(a), y.apply(b)]; };
  const drawn = coloured.layers.flatMap((layer) => layer.rows);
  const kept = new Set(drawn);
  const size = drawn.length > 4000 ? 4 : drawn.length > 800 ? 5 : 7;
  svg.append(dots(rows.filter((row) => !kept.has(row)), at, "var(--muted)", 3, 0.22));
  const turns = coloured.mixed ? mostTurns : 1;
  for (let turn = 0; turn < turns; turn++) {
    for (const layer of coloured.layers) {
      const some = turns === 1 ? layer.rows : layer.rows.filter((_, i) => i % turns === turn);
      if (some.length) svg.append(dots(some, at, layer.colour, size, 0.72));
    }
  }
  const area = store.filter.area && decodeArea(store.filter.area);
  if (area) {
    const corners = area.map((corner) => { const [a, b] = places.fromGrid(corner); return `${x.apply(a).toFixed(1)},${y.apply(b).toFixed(1)}`; });
    svg.append(s("path", { class: "area", d: `M${corners.join("L")}Z`, fill: "var(--accent)", "fill-opacity": 0.07, stroke: "var(--accent)", "stroke-dasharray": "4,3" }));
  }
  const ring = s("circle", { r: 6, fill: "none", stroke: "var(--ink)", "stroke-width": 1.5, visibility: "hidden" });
  svg.append(ring);
  const nearest = ([px, py]: Point): number | undefined => {
    let best: { row: number; away: number } | undefined;
    for (const row of kept) {
      const [a, b] = at(row);
      const away = Math.hypot(a - px, b - py);
      if (away <= reach && (!best || away < best.away)) best = { row, away };
    }
    return best?.row;
  };
  lasso({
    svg,
    select: (line) => select(line.map(([a, b]) => [x.invert(a), y.invert(b)])),
    click: (point) => { const row = nearest(point); if (row !== undefined) detail.open(row, drawn); },
    hover: (point) => {
      const row = point ? nearest(point) : undefined;
      tip.hidden = row === undefined;
      ring.setAttribute("visibility", row === undefined ? "hidden" : "visible");
      if (row === undefined) return;
      const [a, b] = at(row);
      ring.setAttribute("cx", String(a));
      ring.setAttribute("cy", String(b));
      replace(tip, shown(store, row), h("span", {}, `${predictionWords(store, row)}, confidence ${percent(store.inputs.confidence[row], 0)}`));
      const place = svg.parentElement!;
      tip.style.left = `${place.offsetLeft + Math.min(a + 14, width - tip.offsetWidth)}px`;
      tip.style.top = `${place.offsetTop + (b + 10 + tip.offsetHeight > height ? b - 10 - tip.offsetHeight : b + 10)}px`;
    },
  });
  return svg;
}

/// The way to select without a pointer: the limits of a rectangle.
function rectangleForm(store: Store, places: Places): HTMLElement {
  const area = store.filter.area ? decodeArea(store.filter.area)?.map((corner) => places.fromGrid(corner)) : undefined;
  const limit = (axis: 0 | 1, most: boolean) => (area ? Math[most ? "max" : "min"](...area.map((p) => p[axis])) : (axis ? places.y : places.x)[most ? 1 : 0]);
  const field = (words: string, axis: 0 | 1, most: boolean) => h("input", { type: "number", step: "any", "aria-label": words, value: String(Number(limit(axis, most).toPrecision(4))) });
  const fields = [field("first component from", 0, false), field("first component to", 0, true), field("second component from", 1, false), field("second component to", 1, true)];
  const apply = (event: Event) => {
    event.preventDefault();
    const [x1, x2, y1, y2] = fields.map((f) => Number(f.value));
    if ([x1, x2, y1, y2].every(Number.isFinite)) store.set({ area: encodeArea(rectangle(places.toGrid([x1, y1]), places.toGrid([x2, y2]))) });
  };
  return h("form", { class: "limits", onsubmit: apply }, h("span", {}, "first component"), fields[0], "to", fields[1], h("span", {}, "second component"), fields[2], "to", fields[3], h("button", { type: "submit", class: "small" }, "select rectangle"));
}

/// What the points that are left have in common.
function summary(store: Store, detail: Detail, places: Places, rows: number[]): HTMLElement {
  const { inputs } = store;
  const fact = (value: string, words: string) => h("div", {}, h("b", {}, value), h("span", {}, words));
  const judged = rows.filter((row) => inputs.right[row] !== null);
  const wrong = judged.filter((row) => inputs.right[row] === 0);
  const accuracy = wilson(judged.length - wrong.length, judged.length);
  const sure = rows.filter((row) => inputs.confidence[row] !== null);
  const pairs = new Map<string, number[]>();
  if (store.report.classes) for (const row of wrong) (pairs.get(predictionWords(store, row)) ?? pairs.set(predictionWords(store, row), []).get(predictionWords(store, row))!).push(row);
  const worst = [...rows].sort((a, b) => (inputs.loss[b] ?? 0) - (inputs.loss[a] ?? 0) || a - b);
  return h("div", { class: "panel" },
    h("h3", {}, store.filter.area ? "Selected inputs" : store.filtered ? "Inputs that pass the filter" : "All inputs on the map"),
    h("div", { class: "facts" }, fact(count(rows.length), "inputs"),
      judged.length ? fact(percent(accuracy.value) + interval(accuracy), inputs.left_out ? "accuracy of the stored inputs" : "accuracy") : null,
      sure.length ? fact(percent(sure.reduce((sum, row) => sum + inputs.confidence[row]!, 0) / sure.length), "mean confidence") : null),
    pairs.size ? h("div", {}, h("h4", {}, "Most confused pairs"), h("ul", { class: "pairs" }, [...pairs].sort((a, b) => b[1].length - a[1].length).slice(0, 5).map(([words, members]) =>
      h("li", {}, button(words, () => store.toggle({ class: store.className(inputs.label[members[0]]), predicted: store.className(inputs.predicted[members[0]]) }), { class: "link" }), `: ${plural(members.length, "input")}`)))) : null,
    worst.length ? h("div", {}, h("h4", {}, inputs.loss.some((loss) => loss !== null) ? "Inputs, highest loss first" : "Inputs"), gallery(store, worst.slice(0, store.isRead ? mostRead : mostThumbs), (r) => detail.open(r, worst), { narrow: true })) : null,
    h("h4", {}, "Select without a pointer"), rectangleForm(store, places),
    store.filter.area ? button("clear the selection", () => store.set({ area: "" }), { class: "small" }) : null);
}

export function featureMap(store: Store, detail: Detail): Section | null {
  const { places } = store;
  if (!places) return null;
  const { inputs, report } = store;
  const set = (name: string, value: string, otherwise: string) => {
    store.choose(`map.${name}`, value, otherwise);
    self.update();
  };
  const about = `inputs by the features of ${places.map.layer}, projected to two dimensions by ${places.map.method}: neighbours look alike to the network`;
  const self = section(store, "map", "Map", about, (body) => {
    const split = store.filter.split === undefined ? store.judged : report.run.data.findIndex((d) => d.split === store.filter.split);
    const rows = places.map.rows.filter((row) => inputs.split[row] === split);
    const here = inputs.split.reduce((sum, of) => sum + Number(of === split), 0);
    const kept = rows.filter(store.passes);
    const ways = colourings(store, rows);
    const wanted = store.setting("map.colour", ways[0]?.[0] ?? "label") as ColourBy;
    const by = ways.some(([way]) => way === wanted) ? wanted : ways[0]?.[0] ?? "label";
    const slice = Math.max(0, (report.slices ?? []).findIndex((one) => one.name === store.setting("map.slice", "")));
    const coloured = colouring(store, rows, kept, by, slice);
    const known = coloured.layers.filter((layer) => layer.rows.length).sort((a, b) => Number(a.rest ?? false) - Number(b.rest ?? false));
    const tip = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    const select = (name: string, words: string, options: [string, string][], current: string, otherwise: string) =>
      h("select", { "aria-label": words, onchange: (e: Event) => set(name, (e.target as HTMLSelectElement).value, otherwise) }, options.map(([value, text]) => h("option", { value, selected: value === current }, text)));
    const tools = h("span", { class: "tools" }, "colour by", select("colour", "colour by", ways, by, ways[0]?.[0] ?? "label"),
      by === "slice" ? select("slice", "slice to colour", report.slices!.map((one) => [one.name, one.name]), report.slices![slice].name, report.slices![0].name) : null);
    const drawing = figure({
      name: "map", title: "Inputs on the map", tools, legend: known.map((layer): [string, string] => [layer.words, layer.colour]),
      note: `Draw a loop around points to filter the whole page to them; click a point to open it.${rows.length < here ? ` ${plural(rows.length, "input")} of ${count(here)} are on the map.` : ""}`,
      table: () => ({ columns: ["id", "x", "y", "label", "predicted", "confidence", "right", "kept"], rows: rows.map((row) => { const [x, y] = places.of(row)!; const name = (c: number | null) => (report.classes && c !== null ? store.className(c) : c); return [inputs.id[row], x, y, name(inputs.label[row]), name(inputs.predicted[row]), inputs.confidence[row], inputs.right[row], Number(store.passes(row))]; }) }),
      draw: (width) => cloud({ store, places, detail, rows, coloured, select: (line) => store.set({ area: encodeArea(simplified(line.map((p) => places.toGrid(p)))) }) }, width, tip),
    });
    drawing.querySelector(".drawing")!.after(tip);
    replace(body, h("div", { class: "row map" }, drawing, summary(store, detail, places, kept)));
  });
  return self;
}
