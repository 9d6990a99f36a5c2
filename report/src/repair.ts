// The repair: its fixes and regressions on the hold-out set, beside the cheap alternatives.
import type { Detail } from "./detail";
import { command, h, replace } from "./dom";
import { classOf, countFlips, flipBars, flipWords, mostShown } from "./flips";
import { count, duration, interval, number, percent, plural, points, sentence } from "./format";
import { gallery } from "./input_view";
import { section, type Section } from "./section";
import type { Store } from "./store";

export function repair(store: Store, detail: Detail): Section | null {
  const all = store.report.repair;
  if (!all) return null;
  const dropped = new Set<number>();
  return section(store, "repair", "Repair", `${all.method ? `method ${all.method}` : "no method was chosen"}${all.about ? `, unit ${all.about}` : ""}, judged on a hold-out set of ${plural(all.inputs, "input")}`, (body) => {
    const flips = all.flips.filter((f) => store.passes(f.row));
    const thumbs = (fixed: boolean) => {
      const some = flips.filter((f) => f.fixed === fixed);
      const rows = some.map((f) => f.row);
      if (!rows.length) return null;
      const value = (v: number | null) => (store.report.classes ? store.className(v) : number(v));
      const changes = new Map(some.map((f) => [f.row, `${value(f.before)} → ${value(f.after)}`]));
      return h("div", { class: "panel" }, h("h3", {}, `${fixed ? "Fixes" : "Regressions"} · ${count(some.length)}`),
        h("p", { class: "note" }, `Prediction before → after the repair.${rows.length > mostShown ? ` The first ${mostShown} are shown.` : ""}`),
        gallery(store, rows.slice(0, mostShown), (r) => detail.open(r, rows), { caption: (row) => changes.get(row)!, heading: "before → after", mark: fixed ? "right" : "wrong" }));
    };
    const fact = (value: string, words: string) => h("div", {}, h("b", {}, value), h("span", {}, words));
    const given = all.alternatives.some((a) => a.why_not);
    const metric = store.report.metric?.name ?? "metric";
    const metricText = ["log_loss", "mae", "rmse"].includes(metric) ? number : percent; // errors are no shares
    const whatif = h("div", {});
    const showCommand = () => {
      const kept = all.edits.filter((_, i) => !dropped.has(i));
      replace(whatif, h("p", { class: "note" }, dropped.size ? `Keep ${plural(kept.length, "edit")} in edits.json (${kept.map((e) => e.unit).join(", ") || "none"}), remove the others, then run:` : all.whatif ? "To try the edits on your data without writing a model:" : ""), all.whatif ? command(all.whatif) : null);
    };
    showCommand();
    replace(body,
      h("div", { class: "panel" }, h("h3", {}, `Verdict: ${all.verdict}. ${sentence(all.reason)}`), h("p", { class: "note" }, flipWords), h("div", { class: "facts" },
        fact(`${metricText(all.before.value)} → ${metricText(all.after.value)}`, `${metric} before and after`), fact(points(all.change.value) + interval(all.change), "change, 95 % interval"),
        fact(count(all.fixed), "fixes"), fact(count(all.broken), "regressions"), fact(number(all.p, 2), "p, McNemar's exact test"),
        store.filtered ? fact(`${count(flips.filter((f) => f.fixed).length)} / ${count(flips.filter((f) => !f.fixed).length)}`, "fixes / regressions that pass the filter") : null)),
      h("div", { class: "row" },
        all.per_class.length ? flipBars("repair", "Fixes and regressions by class", countFlips(store, flips, all.per_class, classOf(store)), store.report.classes ? (r) => store.toggle({ class: r.name }) : undefined) : null,
        h("div", { class: "body" },
          all.edits.length ? h("div", { class: "panel" }, h("h3", {}, plural(all.edits.length, "edit")), h("div", { class: "scroll short" }, h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "keep"), h("th", {}, "unit"), h("th", {}, "change"), h("th", { class: "figures", title: "Euclidean distance of the unit's weights before and after" }, "distance"))),
            h("tbody", {}, all.edits.slice(0, 200).map((e, i) => h("tr", {}, h("td", {}, h("input", { type: "checkbox", checked: !dropped.has(i), "aria-label": `keep ${e.unit}`, onchange: () => { dropped.has(i) ? dropped.delete(i) : dropped.add(i); showCommand(); } })),
              h("td", { class: "name" }, e.unit), h("td", {}, e.words), h("td", { class: "figures" }, number(e.distance))))))), whatif) : null,
          all.alternatives.length ? h("div", { class: "panel" }, h("h3", {}, "Alternatives"), h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "method"), h("th", { class: "figures" }, "change"), h("th", { class: "figures" }, "fixes"), h("th", { class: "figures" }, "regressions"), h("th", { class: "figures" }, "time"), given ? h("th", {}, "why not") : null)),
            h("tbody", {}, all.alternatives.map((a) => h("tr", {}, h("td", {}, a.method), h("td", { class: "figures" }, points(a.change)), h("td", { class: "figures" }, count(a.fixed)), h("td", { class: "figures" }, count(a.broken)), h("td", { class: "figures" }, duration(a.seconds)), given ? h("td", {}, a.why_not) : null))))) : null)),
      flips.length ? h("div", { class: "row flips" }, thumbs(true), thumbs(false)) : null);
  });
}
