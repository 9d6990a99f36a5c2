// The data itself: balance, ranges, duplicates, words, labels that look wrong.
import * as Plot from "@observablehq/plot";
import type { Detail } from "./detail";
import { button, h, replace } from "./dom";
import { csv, save } from "./export";
import { clickable, figure, plot } from "./figure";
import { count, number, percent, plural, shortened } from "./format";
import { gallery, thumb } from "./input_view";
import { section, type Section } from "./section";
import type { Data } from "../generated/evidence";
import type { Store } from "./store";

const balanceLimit = 60;
const mostSuspected = 48;
const colours = ["var(--accent)", "var(--second)", "var(--minor)", "var(--right)"];

/// The classes of what the filter leaves, beside those of the splits.
function filteredSplit(store: Store, classes: number): Data["splits"][number] {
  const counts = new Array<number>(classes).fill(0);
  for (const row of store.rows) {
    const label = store.inputs.label[row];
    if (label !== null && counts[label] !== undefined) counts[label] += store.weight(row);
  }
  const rounded = counts.map(Math.round);
  return { name: "filtered", size: rounded.reduce((a, b) => a + b, 0), classes: rounded };
}

function balance(store: Store, data: Data): HTMLElement | null {
  const names = store.report.classes ?? [];
  const splits = data.splits.filter((split) => split.classes.length);
  if (splits.length && store.filtered) splits.push(filteredSplit(store, names.length));
  if (!splits.length || names.length < 2) return null;
  const all = splits.flatMap((split, i) => split.classes.slice(0, names.length).map((n, c) => ({ c, n, i, split: split.name, colour: colours[i % colours.length], share: n / (split.size || 1) })));
  const few = names.length > balanceLimit ? new Set([...names.keys()].sort((a, b) => (splits[0].classes[a] ?? 0) - (splits[0].classes[b] ?? 0)).slice(0, balanceLimit)) : null;
  const drawn = all.filter((d) => !few || few.has(d.c));
  return figure({
    name: "balance", title: few ? `The ${balanceLimit} rarest classes` : "Class balance", legend: splits.map((s, i) => [`${s.name}, ${count(s.size)} inputs`, colours[i % colours.length]]),
    table: () => ({ columns: ["class", "split", "inputs", "share"], rows: all.map((d) => [names[d.c], d.split, d.n, d.share]) }),
    draw: (width) => {
      // One band per bar, and an empty one between classes.
      const shown = [...new Set(drawn.map((d) => d.c))];
      const turned = shown.some((c) => 6.5 * [...names[c]].length > width / shown.length - 4);
      const svg = plot({
        width, height: turned ? 260 : 220, marginLeft: 46, marginBottom: turned ? 76 : 26,
        x: { axis: null, padding: 0.08, domain: shown.flatMap((c) => [...splits.keys(), "gap"].map((i) => `${c} ${i}`)) }, y: { label: "share of the split", tickFormat: "%", grid: true, ticks: 4 },
        color: { type: "identity" }, opacity: { domain: [0, 1], range: [0, 1] },
        marks: [
          Plot.barY(drawn, { x: (d) => `${d.c} ${d.i}`, y: "share", fill: "colour", rx: 1, className: "marks-balance", fillOpacity: (d) => (!store.filter.class || store.filter.class === names[d.c] ? 1 : 0.3) }),
          Plot.text(shown, { x: (c) => `${c} ${Math.floor((splits.length - 1) / 2)}`, frameAnchor: "bottom", text: (c) => shortened(names[c], 12), dy: 14, rotate: turned ? -45 : 0, textAnchor: turned ? "end" : splits.length % 2 ? "middle" : "start", fill: "currentColor" }),
          Plot.ruleY([0]),
        ],
      });
      clickable(svg, "balance", drawn, (d) => `${names[d.c]}, ${d.split}: ${count(d.n)} (${percent(d.share)})`, (d) => store.toggle({ class: names[d.c] }));
      return svg;
    },
  });
}

function ranges(data: Data): HTMLElement | null {
  if (!data.ranges.length) return null;
  const all = { columns: ["name", "split", "min", "max", "mean", "sd", "missing"], rows: data.ranges.map((r) => [r.name, r.split, r.min, r.max, r.mean, r.sd, r.missing]) };
  return h("div", { class: "panel" }, h("figcaption", {}, h("h3", {}, "Value ranges by split"), h("span", { class: "files" }, button("CSV", () => save("ranges.csv", csv(all)), { class: "file" }))),
    h("div", { class: "scroll" }, h("table", {},
      h("thead", {}, h("tr", {}, h("th", {}, "value"), h("th", {}, "split"), ["min", "max", "mean", "std", "missing"].map((w) => h("th", { class: "figures" }, w)))),
      h("tbody", {}, [...data.ranges].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0)).slice(0, 200).map((r) => h("tr", {}, h("td", { class: "name" }, r.name), h("td", {}, r.split),
        [r.min, r.max, r.mean, r.sd].map((v) => h("td", { class: "figures" }, number(v))), h("td", { class: "figures" }, count(r.missing))))))));
}

/// Duplicates that are read stand below each other.
function readPairs(store: Store, detail: Detail, pairs: number[][]): HTMLElement {
  const number = (row: number) => pairs.findIndex((pair) => pair.includes(row));
  return gallery(store, pairs.flat(), (row) => detail.open(row, pairs[number(row)]), { caption: (row) => `pair ${number(row) + 1}: ${store.splitName(row)} ${store.inputs.id[row]}`, heading: "pair" });
}

export function data(store: Store, detail: Detail): Section | null {
  const all = store.report.data;
  if (!all || !(all.splits.length || all.ranges.length || all.duplicates.length || all.suspected.length || all.words?.length)) return null;
  return section(store, "data", "Data", "class balance, value ranges, duplicates and suspected label errors", (body) => {
    const here = store.passes;
    const suspected = all.suspected.filter((s) => here(s.row));
    const rows = suspected.map((s) => s.row);
    const looksLike = new Map(suspected.map((s) => [s.row, `labelled ${store.className(s.given)}, looks like ${store.className(s.likely)}`]));
    replace(body,
      store.filtered ? h("p", { class: "note" }, "Value ranges and counts of duplicates are over all inputs; the inputs shown obey the filter.") : null,
      h("div", { class: "row" }, balance(store, all), ranges(all)),
      h("div", { class: "row" },
        suspected.length ? h("div", { class: "panel" }, h("figcaption", {}, h("h3", {}, `${plural(suspected.length, "suspected label error")}`), h("span", { class: "files" },
          button("CSV", () => save("suspected.csv", csv({ columns: ["split", "sample", "id", "given", "likely", "confidence"],
            rows: suspected.map((s) => [store.splitName(s.row), store.inputs.sample[s.row], store.inputs.id[s.row], store.className(s.given), store.className(s.likely), s.confidence]) })), { class: "file", "aria-label": "Suspected labels: download CSV" }))),
          h("p", { class: "note" }, "The model confidently disagrees with the given label. Look before you delete: removing what the model gets wrong makes it look better than it is.", rows.length > mostSuspected ? ` The first ${mostSuspected} are shown; the CSV has all.` : null),
          gallery(store, rows.slice(0, mostSuspected), (r) => detail.open(r, rows), { caption: (row) => looksLike.get(row)!, heading: "label" })) : null,
        all.duplicates.length ? h("div", { class: "panel" }, h("h3", {}, "Duplicates"), all.duplicates.map((d) => {
          const pairs = d.pairs.filter(([a, b]) => here(a) || here(b));
          return h("div", {}, h("p", {}, `${d.where}: ${plural(d.exact, "exact duplicate")}${d.where === "train" ? "" : `, ${plural(d.near, "near-duplicate")}`}. ${d.effect}`),
            store.isRead ? readPairs(store, detail, pairs.slice(0, 12)) : h("div", { class: "twins" }, pairs.slice(0, 12).map((pair) => h("div", { class: "twin" }, pair.map((row) => h("div", { class: "cell" }, thumb(store, row, (r) => detail.open(r, pair)), h("span", { class: "caption" }, `${store.splitName(row)} ${store.inputs.id[row]}`)))))));
        })) : null,
        all.words?.length ? h("div", { class: "panel" }, h("h3", {}, "Tokens"), h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "split"), h("th", { class: "figures" }, "unknown tokens"), h("th", { class: "figures" }, "mean length"))),
          h("tbody", {}, all.words.map((w) => h("tr", {}, h("td", {}, w.split), h("td", { class: "figures" }, percent(w.unknown)), h("td", { class: "figures" }, number(w.mean_length))))))) : null));
  });
}
