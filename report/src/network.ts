// The network: which layers and units are suspicious, dead, important or untested.
import type { Detail } from "./detail";
import { button, choice, h, replace } from "./dom";
import { csv, save } from "./export";
import { figure } from "./figure";
import { fold } from "./fold";
import { count, number, percent, plural } from "./format";
import { boxMap } from "./network_map";
import { section, type Section } from "./section";
import type { Layer, Unit } from "../generated/evidence";
import type { Store } from "./store";
import { unitBars, unitPanel } from "./units";

export type Measure = "blame" | "health" | "importance" | "untested";
export const measures: Record<Measure, { words: string; about: string; layer: (l: Layer) => number | null; unit: (u: Unit) => number | null }> = {
  blame: { words: "suspiciousness", about: "how strongly its most suspicious unit is linked to failures (1: most)", layer: (l) => l.blame, unit: (u) => u.blame },
  health: { words: "dead units", about: "share of dead units, which have the same value for all inputs; for a unit, the share of inputs for which it is 0", layer: (l) => (l.units ? l.dead / l.units : null), unit: (u) => u.zeros ?? (u.max === u.min ? 1 : 0) },
  importance: { words: "importance", about: "share of the relevance that passes through it, mean over inputs", layer: (l) => l.importance, unit: (u) => u.importance },
  untested: { words: "untested", about: "share of units with higher activations in training than in any test; for a unit, the share of training inputs above the highest test", layer: (l) => (l.units ? l.untested / l.units : null), unit: (u) => u.untested },
};

export function network(store: Store, detail: Detail): Section | null {
  const all = store.report.network;
  if (!all?.layers.length) return null;
  const { layers, units } = all;
  const unitsOf = new Map<number, Unit[]>();
  for (const unit of units) (unitsOf.get(unit.layer) ?? unitsOf.set(unit.layer, []).get(unit.layer)!).push(unit);
  const available = (Object.keys(measures) as Measure[]).filter((m) => layers.some((l) => measures[m].layer(l) !== null));
  const set = (name: string, value: string, otherwise: string) => {
    store.choose(`network.${name}`, value, otherwise);
    self.update();
  };

  const list = (measure: Measure, picked: number, pick: (layer: number) => void) => h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, h("th", {}, "layer"), h("th", {}, "operator"), h("th", {}, "shape"), ["units", "weights", "dead", "suspiciousness", "importance", "untested"].map((w) => h("th", { class: "figures" }, w === measures[measure].words || (w === "dead" && measure === "health") ? h("b", {}, w) : w)))),
    h("tbody", {}, layers.map((l, i) => h("tr", { class: i === picked ? "picked" : "" }, h("td", { class: "name" }, button(l.name, () => pick(i), { class: "link" })), h("td", {}, l.kind), h("td", {}, l.shape),
      [l.units, l.weights, l.dead].map((n) => h("td", { class: "figures" }, count(n))), [l.blame, l.importance].map((n) => h("td", { class: "figures" }, number(n))), h("td", { class: "figures" }, count(l.untested)))))));

  const self = section(store, "network", "Network", `${plural(layers.length, "layer")}, ${plural(store.report.run.model.units, "unit")}`, (body) => {
    const wanted = store.setting("network.colour", available[0] ?? "health") as Measure;
    const measure = available.includes(wanted) ? wanted : available[0] ?? "health";
    const view = store.setting("network.view", "map");
    const opened = new Set(store.setting("network.open", "").split(",").filter(Boolean));
    const picked = layers.findIndex((l) => l.name === store.setting("network.layer", ""));
    const own = picked < 0 ? [] : unitsOf.get(picked) ?? [];
    const unit = own.find((u) => u.name === store.setting("network.unit", ""));
    const pickLayer = (layer: number) => {
      store.choose("network.unit", "", "");
      set("layer", layers[layer].name === store.setting("network.layer", "") ? "" : layers[layer].name, "");
    };
    const boxes = fold(layers, opened);
    const open = (names: Iterable<string>) => set("open", [...names].join(","), "");
    const table = () => ({ columns: ["layer", "operator", "shape", "units", "weights", "dead", "suspiciousness", "importance", "untested"], rows: layers.map((l) => [l.name, l.kind, l.shape, l.units, l.weights, l.dead, l.blame, l.importance, l.untested]) });
    replace(body,
      h("div", { class: "tools" },
        h("span", {}, "colour"), choice("colour", available.map((m) => [m, measures[m].words] as [Measure, string]), measure, (m) => set("colour", m, available[0])),
        choice("view", [["map", "map"], ["list", "list"]], view, (v) => set("view", v, "map")),
        opened.size ? button("fold all", () => open([]), { class: "small" }) : null,
        button("units as CSV", () => save("units.csv", csv({ columns: ["unit", "mean", "std", "min", "max", "zeros", "suspiciousness", "rank", "importance", "untested"], rows: units.map((u) => [u.name, u.mean, u.sd, u.min, u.max, u.zeros, u.blame, u.rank, u.importance, u.untested]) })), { class: "small" }),
        store.filtered ? h("span", { class: "note" }, "Figures of layers and units are over all inputs; the inputs shown for a unit obey the filter.") : null),
      view === "list"
        ? list(measure, picked, pickLayer)
        : figure({ name: "network", title: `Layers by ${measures[measure].words}`, note: `Colour: ${measures[measure].about}. Click a layer to see its units.`, table,
            draw: (width) => boxMap({ layers, boxes, width, picked, value: measures[measure].layer, pick: pickLayer, open: (block) => open([...opened, block]) }) }),
      picked >= 0 ? h("div", { class: "body" }, unitBars(store, layers[picked], own, measure, unit, (u) => set("unit", u.name === unit?.name ? "" : u.name, "")), unit ? unitPanel(store, detail, unit) : null) : null,
      picked >= 0 && !own.length ? h("p", { class: "muted" }, "The units of this layer are not stored in this page.") : null,
      picked >= 0 && !unit ? h("p", { class: "note" }, `${layers[picked].name}: ${layers[picked].kind}, ${layers[picked].shape}, ${plural(layers[picked].weights, "weight")}, ${percent(layers[picked].units ? layers[picked].dead / layers[picked].units : null)} dead units.`) : null);
  });
  return self;
}
