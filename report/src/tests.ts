// What the tests cover, and what they leave untested.
import * as Plot from "@observablehq/plot";
import type { Detail } from "./detail";
import { button, h, replace } from "./dom";
import { csv, save } from "./export";
import { figure, nameMargin, plot } from "./figure";
import { count, number, percent, shortened } from "./format";
import { gallery, thumb } from "./input_view";
import { section, type Section } from "./section";
import type { Store } from "./store";

export function tests(store: Store, detail: Detail): Section | null {
  const all = store.report.tests;
  if (!all || !(all.criteria.length || all.growth.length || all.untried.length)) return null;
  const list = (name: string, rows: number[]) => save(`${name}.csv`, csv({ columns: ["split", "sample", "id"], rows: rows.map((row) => [store.splitName(row), store.inputs.sample[row], store.inputs.id[row]]) }));
  return section(store, "tests", "Tests", "what the test inputs cover and what they leave untested", (body) => {
    const here = (rows: number[]) => rows.filter(store.passes);
    const shares = all.criteria.filter((c) => c.value !== null && c.goals !== null);
    const others = all.criteria.filter((c) => c.value !== null && c.goals === null);
    const names = shares.map((c) => shortened(c.name, 30));
    replace(body,
      store.filtered ? h("p", { class: "note" }, "Coverage is over all test inputs; the inputs and lists shown obey the filter.") : null,
      h("div", { class: "panel tools" }, h("div", { class: "facts" }, h("div", {}, h("b", {}, count(all.needed)), h("span", {}, `${all.needed === 1 ? "input reaches" : "inputs reach"} the same coverage as all of them`)), h("p", { class: "note" }, "Coverage says which units the tests activate, not which failures they find, so it is no reason to drop the other tests.")),
        h("span", { class: "grow" }),
        all.useful_rows ? button("useful tests as CSV", () => list("useful", here(all.useful_rows!)), { class: "small" }) : null),
      h("div", { class: "row" },
        shares.length ? figure({
          name: "criteria", title: "Coverage by criterion", note: others.length ? `Criteria without an upper bound, which have no share: ${others.map((c) => `${c.name} ${number(c.value)}`).join(", ")}.` : undefined,
          table: () => ({ columns: ["criterion", "value", "covered", "goals", "about"], rows: all.criteria.map((c) => [c.name, c.value, c.covered, c.goals, c.about]) }),
          draw: (width) => plot({
            width, height: 40 + 26 * shares.length, marginLeft: nameMargin(names, 210), marginRight: 164, x: { domain: [0, 1], tickFormat: "%", label: null, ticks: 5 }, y: { domain: names.map((_, i) => i), tickFormat: (i: number) => names[i], label: null, tickSize: 0 },
            marks: [Plot.barX(shares, { x1: 0, x2: 1, y: (_, i) => i, fill: "var(--soft)", insetTop: 5, insetBottom: 5, rx: 2 }), Plot.barX(shares, { x: "value", y: (_, i) => i, fill: "var(--accent)", insetTop: 5, insetBottom: 5, rx: 2, title: "about" }),
              Plot.text(shares, { y: (_, i) => i, frameAnchor: "right", dx: 158, textAnchor: "end", text: (c) => `${percent(c.value)}, ${count(c.covered)} of ${count(c.goals)}`, fill: "var(--muted)", fontSize: 11 })],
          }),
        }) : null,
        all.criteria.some((c) => c.about) ? h("div", { class: "panel" }, h("h3", {}, "What each criterion counts"), h("dl", {}, all.criteria.filter((c) => c.about).map((c) => [h("dt", {}, c.name), h("dd", {}, c.about)]))) : null,
        all.growth.length > 1 ? figure({
          name: "growth", title: "Coverage by number of inputs", note: "Of what all tests cover together, the share that the first inputs of the reduced test set cover. The most useful inputs come first.",
          table: () => ({ columns: ["inputs", "share"], rows: all.growth.map((g) => [g.inputs, g.share]) }),
          draw: (width) => plot({
            width, height: 220, marginLeft: 46, x: { label: "inputs", grid: false, ticks: 5 }, y: { label: "of what all tests cover", tickFormat: "%", grid: true, ticks: 5, zero: true },
            marks: [Plot.areaY(all.growth, { x: "inputs", y: "share", fill: "var(--accent-soft)" }), Plot.lineY(all.growth, { x: "inputs", y: "share", stroke: "var(--accent)", strokeWidth: 2 })],
          }),
        }) : null),
      all.untried.length ? h("div", { class: "panel" }, h("h3", {}, "Untested value ranges"), h("p", { class: "note" }, "Values that training inputs reach and no test input does, with some of those training inputs."),
        h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "unit"), h("th", { class: "figures" }, "from"), h("th", { class: "figures" }, "to"), h("th", { class: "figures" }, "training inputs"), h("th", {}, "inputs"))),
          h("tbody", {}, all.untried.slice(0, 50).map((u) => h("tr", {}, h("td", { class: "name" }, u.unit), h("td", { class: "figures" }, number(u.low)), h("td", { class: "figures" }, number(u.high)), h("td", { class: "figures" }, count(u.train)),
            h("td", {}, store.isRead ? gallery(store, here(u.rows), (r) => detail.open(r, u.rows), { narrow: true }) : h("div", { class: "inline" }, here(u.rows).slice(0, 8).map((row) => thumb(store, row, (r) => detail.open(r, u.rows), false))))))))) : null);
  });
}
