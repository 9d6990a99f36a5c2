// The filter that every view obeys. It stays on top, says what is left, and stands in the address.
import { button, copyButton, h, replace } from "./dom";
import { hold } from "./drawn";
import { count, percent, plural, shortened } from "./format";
import type { FilterKey, Store } from "./store";

const words: Record<Field, string> = { class: "class", predicted: "prediction", slice: "slice", split: "split", finding: "finding", text: "text" };

/// Parts of the filter that are chosen from a list or typed; the others are set in the page and can be taken away here.
type Field = Exclude<FilterKey, "area" | "similar">;
const fieldKeys: Field[] = ["class", "predicted", "slice", "split", "finding", "text"];

function options(store: Store, key: Field): string[] {
  const { report } = store;
  switch (key) {
    case "class": return report.inputs?.label.some((l) => l !== null) ? report.classes ?? [] : [];
    case "predicted": return report.classes ?? [];
    case "slice": return (report.slices ?? []).map((s) => s.name);
    case "split": return report.run.data.map((d) => d.split).filter((_, i) => report.inputs?.split.includes(i));
    case "finding": return report.findings.filter((f) => f.inputs.length).map((f) => f.id);
    case "text": return [];
  }
}

/// A list while it can be looked through, a field with suggestions above that.
function field(store: Store, key: Field): HTMLSelectElement | HTMLInputElement | null {
  if (key === "text") {
    let waiting = 0;
    const input = h("input", { type: "search", placeholder: "id or words", "aria-label": "text" });
    input.addEventListener("input", () => {
      clearTimeout(waiting);
      hold();
      waiting = window.setTimeout(() => store.set({ text: input.value.trim() }), 150);
    });
    return input;
  }
  const names = options(store, key);
  if (names.length < (key === "finding" ? 1 : 2)) return null;
  if (names.length <= 200) {
    return h("select", { "aria-label": words[key], onchange: (event: Event) => store.set({ [key]: (event.target as HTMLSelectElement).value }) },
      h("option", { value: "" }, key === "split" ? store.report.run.data[store.judged]?.split ?? "" : `any ${words[key]}`), [...new Set(names)].filter((name) => key !== "split" || name !== store.report.run.data[store.judged]?.split).map((name) => h("option", { value: name }, name)));
  }
  const list = h("datalist", { id: `names-${key}` }, names.map((name) => h("option", { value: name })));
  document.body.append(list);
  return h("input", { list: list.id, placeholder: `any ${words[key]}`, "aria-label": words[key], onchange: (event: Event) => store.set({ [key]: (event.target as HTMLInputElement).value }) });
}

export function filterBar(store: Store): HTMLElement | null {
  if (!store.size) return null;
  const left = h("span", { class: "count", role: "status" });
  const clear = button("clear", () => store.set({}, true), { class: "small" });
  const link = copyButton(() => location.href, "copy link");
  const fields = new Map(fieldKeys.map((key) => [key, field(store, key)] as const));
  const chips = h("span", { class: "chips" });
  const chip = (key: FilterKey, text: string) => button(`${text} ×`, () => store.set({ [key]: "" }), { class: "small chip", "aria-label": `remove the filter: ${text}` });
  const update = () => {
    const middle = store.filter.similar === undefined ? undefined : store.rowOfKey(store.filter.similar);
    replace(chips, store.filter.area ? chip("area", "selection on the map") : null, middle === undefined ? null : chip("similar", `similar to ${shortened(store.inputs.id[middle], 20)}`));
    for (const [key, element] of fields) {
      if (element && element !== document.activeElement) element.value = store.filter[key] ?? "";
      if (element && store.filter[key] && element.value !== store.filter[key]) element.value = store.filter[key]!;
      element?.classList.toggle("set", Boolean(store.filter[key]));
    }
    clear.disabled = !store.filtered;
    const judged = store.inputs.right.some((r) => r !== null);
    const accuracy = () => {
      const known = store.rows.filter((row) => store.inputs.right[row] !== null);
      const all = known.reduce((sum, row) => sum + store.weight(row), 0);
      return all ? known.reduce((sum, row) => sum + store.inputs.right[row]! * store.weight(row), 0) / all : null;
    };
    const wrong = store.rows.reduce((sum, row) => sum + (store.inputs.right[row] === 0 ? 1 : 0), 0);
    const elsewhere = store.inputs.left_out ?? 0;
    const here = elsewhere ? `${count(store.rows.length)} of the ${plural(store.whole, "input")} on this page (of ${count(store.whole + elsewhere)})` : `${count(store.rows.length)} of ${plural(store.whole, "input")}`;
    left.textContent = here + (judged ? `, ${count(wrong)} wrong${store.filtered && store.report.metric?.name === "accuracy" ? ` (accuracy ${percent(accuracy())})` : ""}` : "");
  };
  store.onChange(update);
  update();
  return h("div", { class: "filters", role: "search", "aria-label": "Filter" }, [...fields.values()], chips, left, clear, link);
}
