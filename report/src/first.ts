// The first screen: the verdict, four figures, what was found, what was checked and what was not.
import { button, guarded, h, replace } from "./dom";
import { count, duration, fileName, interval, number, percent, plural } from "./format";
import { card, type FindingDialog } from "./finding_view";
import type { Unread } from "./normalise";
import type { Detail } from "./detail";
import type { Report, Tile } from "../generated/evidence";
import type { Store } from "./store";

const cardsAtFirst = 5;

function tile(store: Store, tile: Tile): HTMLElement {
  const inside = [h("span", { class: "name" }, tile.name), h("span", { class: "value" }, tile.value), h("span", { class: "detail" }, tile.detail),
    tile.change ? h("span", { class: "change" }, tile.change) : null];
  if (!tile.filter) return h("div", { class: "tile" }, inside);
  const filter = tile.filter;
  return h("button", {
    type: "button", class: "tile", title: "show these inputs",
    onclick: () => { store.set(filter, true); document.getElementById("failures")?.scrollIntoView(); },
  }, inside);
}

function checked(report: Report): HTMLElement {
  const { run, preflight, passed, skipped, accepted } = report;
  const data = run.data.map((d) => `${d.split} ${d.used < d.size ? `${count(d.used)} of ${count(d.size)}` : count(d.size)}`).join(", ");
  const { pictures = {}, texts = {}, table } = report.inputs ?? {};
  const held = ([["picture", pictures], ["sentence", texts], ["row", table?.values ?? {}]] as const).map(([what, all]) => [what, Object.keys(all).length] as const).find(([, n]) => n > 0);
  const layers = run.model.layers ? ` · ${plural(run.model.layers, "layer")} · ${plural(run.model.units, "unit")} · ${plural(run.model.weights, "weight")}` : "";
  const line = (name: string, ...words: (string | HTMLElement | HTMLElement[])[]) => h("div", {}, h("dt", {}, name), h("dd", { class: name === "checked" || name === "preflight" ? "line" : "" }, ...words));
  return h("dl", { class: "strip" },
    line("checked", `${fileName(run.model.name)}${layers}${data ? ` on ${data}` : ""} in ${duration(run.seconds)}${held ? `; this page contains ${plural(held[1], held[0])} of your data` : ""}`),
    preflight.lines.length ? line("preflight", preflight.lines.map((l) => h("span", { class: l.holds ? "holds" : "fails" }, l.text))) : "",
    passed.length ? line("passed", h("details", {}, h("summary", {}, `${plural(passed.length, "check")} passed`),
      h("ul", {}, passed.map((p) => h("li", {}, `${p.what}: `, h("b", {}, p.value)))))) : "",
    skipped.length ? line("skipped", h("details", {}, h("summary", {}, skipped.map((s) => s.what).join(", ")),
      h("ul", {}, skipped.map((s) => h("li", {}, `${s.what}: needs ${s.enable}`))))) : "",
    accepted.length ? line("accepted", h("details", {}, h("summary", {}, `${plural(accepted.length, "finding")} accepted`),
      h("ul", {}, accepted.map((f) => h("li", {}, `${f.id}: ${f.accepted?.reason ?? f.title}`))))) : "");
}

function tried(report: Report): HTMLElement | null {
  const { tried, lines } = report.preflight;
  if (!tried.length || (lines.every((l) => l.holds) && !report.findings.some((f) => f.level === "blocker"))) return null; // nobody needs it when all is well
  return h("div", { class: "tried" }, h("h3", {}, "Set-ups that were tried"),
    h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "set-up"), h("th", { class: "figures" }, report.task === "number" ? "error" : "accuracy"), h("th", {}, "line for netmend.toml"))),
      h("tbody", {}, tried.map((t) => h("tr", {}, h("td", {}, t.words), h("td", { class: "figures" }, report.task === "number" ? number(t.accuracy.value) : percent(t.accuracy.value) + interval(t.accuracy)), h("td", {}, h("code", {}, t.line)))))));
}

function unreadLine({ count, places }: Unread): HTMLElement | null {
  if (!count) return null;
  return h("details", { class: "unread" }, h("summary", {}, `${plural(count, "entry", "entries")} of this report could not be read`),
    h("ul", {}, places.map((place) => h("li", {}, h("code", {}, place))), count > places.length ? h("li", {}, "…") : null));
}

export function firstScreen(store: Store, dialog: FindingDialog, detail: Detail, unread: Unread): HTMLElement {
  const { report } = store;
  const cards = h("div", { class: "cards" });
  let all = false;
  const draw = () => {
    const shown = all ? report.findings : report.findings.slice(0, cardsAtFirst);
    const more = report.findings.length - cardsAtFirst;
    replace(cards, shown.map((finding) => guarded("This finding", () => card(store, finding, dialog, detail))),
      more > 0 ? button(all ? "show the first five" : `+ ${plural(more, "more finding")}`, () => { all = !all; draw(); }, { class: "more link" }) : null);
  };
  draw();
  const worst = report.findings[0]?.level ?? "quiet";
  return h("section", { id: "first", class: `first ${worst}`, "aria-label": "Overview" },
    h("h1", {}, report.verdict),
    unreadLine(unread),
    report.tiles.length ? h("div", { class: "tiles" }, report.tiles.map((t) => guarded("This figure", () => tile(store, t)))) : null,
    report.findings.length ? cards : h("p", { class: "quiet" }, "No findings. The checks that passed are listed below with their values."),
    guarded("The list of set-ups that were tried", () => tried(report)),
    guarded("The list of checks", () => checked(report)));
}
