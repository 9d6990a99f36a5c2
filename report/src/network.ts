// The network: which layers and units are to blame, dead, important or untested.
import type { Detail } from "./detail";
import { button, choice, h, replace } from "./dom";
import { csv, save } from "./export";
import { figure } from "./figure";
import { fold } from "./fold";
import { count, number, percent, plural } from "./format";
import { boxMap } from "./network_map";
import { section, type Section } from "./section";
import type { Layer, Unit } from "./schema";
import type { Store } from "./store";
import { unitBars, unitPanel } from "./units";

export type Measure = "blame" | "health" | "importance" | "untested";
export const measures: Record<Measure, { words: string; about: string; layer: (l: Layer) => number | null; unit: (u: Unit) => number | null }> = {
  blame: { words: "blame", about: "how much the worst unit has to do with failures", layer: (l) => l.blame, unit: (u) => u.blame },
  health: { words: "health", about: "share of units that never react; for units, share of inputs with 0", layer: (l) => (l.units ? l.dead / l.units : null), unit: (u) => u.zeros ?? (u.max === u.min ? 1 : 0) },
  importance: { words: "importance", about: "how much answers come from it", layer: (l) => l.importance, unit: (u) => u.importance },
  untested: { words: "untested", about: "units that tests never drive as high as training", layer: (l) => (l.units ? l.untested / l.units : null), unit: (u) => u.untested },
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
    h("thead", {}, h("tr", {}, h("th", {}, "layer"), h("th", {}, "kind"), h("th", {}, "shape"), ["units", "weights", "dead", "blame", "importance", "untested"].map((w) => h("th", { class: "figures" }, w === measure || (w === "dead" && measure === "health") ? h("b", {}, w) : w)))),
    h("tbody", {}, layers.map((l, i) => h("tr", { class: i === picked ? "picked" : "" }, h("td", { class: "name" }, button(l.name, () => pick(i), { class: "link" })), h("td", {}, l.kind), h("td", {}, l.shape),
      [l.units, l.weights, l.dead].map((n) => h("td", { class: "figures" }, count(n))), [l.blame, l.importance].map((n) => h("td", { class: "figures" }, number(n))), h("td", { class: "figures" }, count(l.untested)))))));

  const self = section(store, "network", "Network", `${plural(layers.length, "layer")}, ${plural(store.report.run.model.units, "unit")}`, (body) => {
    const wanted = store.setting("network.colour", available[0] ?? "health") as Measure;
    const measure = measures[wanted] ? wanted : "health";
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
    const table = () => ({ columns: ["layer", "kind", "shape", "units", "weights", "dead", "blame", "importance", "untested"], rows: layers.map((l) => [l.name, l.kind, l.shape, l.units, l.weights, l.dead, l.blame, l.importance, l.untested]) });
    replace(body,
      h("div", { class: "tools" },
        h("span", {}, "colour"), choice("colour", available.map((m) => [m, measures[m].words] as [Measure, string]), measure, (m) => set("colour", m, available[0])),
        choice("view", [["map", "map"], ["list", "list"]], view, (v) => set("view", v, "map")),
        opened.size ? button("fold all", () => open([]), { class: "small" }) : null,
        button("units as CSV", () => save("units.csv", csv({ columns: ["unit", "mean", "sd", "min", "max", "zeros", "blame", "rank", "importance", "untested"], rows: units.map((u) => [u.name, u.mean, u.sd, u.min, u.max, u.zeros, u.blame, u.rank, u.importance, u.untested]) })), { class: "small" }),
        store.filtered ? h("span", { class: "note" }, "Figures of units are over all inputs; inputs that drive them obey the filter.") : null),
      view === "list"
        ? list(measure, picked, pickLayer)
        : figure({ name: "network", title: `Layers by ${measures[measure].words}`, note: `Darker: ${measures[measure].about}. Click a layer to see its units.`, table,
            draw: (width) => boxMap({ layers, boxes, width, picked, value: measures[measure].layer, pick: pickLayer, open: (block) => open([...opened, block]) }) }),
      picked >= 0 ? h("div", { class: "body" }, unitBars(store, layers[picked], own, measure, unit, (u) => set("unit", u.name === unit?.name ? "" : u.name, "")), unit ? unitPanel(store, detail, unit) : null) : null,
      picked >= 0 && !own.length ? h("p", { class: "muted" }, "This layer's units are not in the page.") : null,
      picked >= 0 && !unit ? h("p", { class: "note" }, `${layers[picked].name}: ${layers[picked].kind}, ${layers[picked].shape}, ${plural(layers[picked].weights, "weight")}, ${percent(layers[picked].units ? layers[picked].dead / layers[picked].units : null)} dead.`) : null);
  });
  return self;
}
