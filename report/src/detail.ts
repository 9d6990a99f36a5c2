// One input in full, in a dialog: its values, its top predictions, their relevance, and similar inputs.
import { button, guarded, h, replace, type Child } from "./dom";
import { count, number, percent } from "./format";
import { gallery, predictionWords, picture, shown } from "./input_view";
import { columnsOf, differs, isUnusual, unusualWords, valuesOf, valueText } from "./rows";
import { canFindSimilar, neighbours } from "./similar";
import type { Store } from "./store";

export class Detail {
  private readonly dialog: HTMLDialogElement;
  private list: number[] = [];
  private row = 0;
  private similar = false;

  constructor(private readonly store: Store, private readonly onTick: () => void) {
    this.dialog = h("dialog", { class: "detail", "aria-label": "One input" });
    this.dialog.addEventListener("keydown", (event) => {
      if (event.key === "ArrowRight") this.step(1);
      if (event.key === "ArrowLeft") this.step(-1);
    });
    this.dialog.addEventListener("click", (event) => event.target === this.dialog && this.dialog.close());
    document.body.append(this.dialog);
  }

  /// `similar`: with the inputs that are like it.
  open(row: number, list: number[] = [row], similar = false): void {
    this.similar = similar;
    this.list = list.includes(row) ? list : [row];
    this.show(row);
    if (!this.dialog.open) this.dialog.showModal();
  }

  private step(by: number): void {
    const next = this.list[this.list.indexOf(this.row) + by];
    if (next !== undefined) this.show(next);
  }

  private show(row: number): void {
    this.row = row;
    const { inputs } = this.store;
    const place = this.list.indexOf(row);
    const focused = this.dialog.contains(document.activeElement) ? document.activeElement?.getAttribute("aria-label") : null;
    const finderFocused = document.activeElement?.hasAttribute("aria-expanded");
    const right = inputs.right[row];
    replace(this.dialog,
      h("header", {},
        h("h3", {}, inputs.id[row]),
        right === null || right === undefined ? null : h("span", { class: `tag ${right ? "right" : "wrong"}` }, right ? "correct" : "wrong"),
        h("span", { class: "grow" }),
        this.list.length > 1 ? h("span", { class: "muted" }, `${count(place + 1)} of ${count(this.list.length)}`) : null,
        button("‹", () => this.step(-1), { class: "small", "aria-label": "previous input", disabled: place <= 0 }),
        button("›", () => this.step(1), { class: "small", "aria-label": "next input", disabled: place + 1 >= this.list.length }),
        button("close", () => this.dialog.close(), { class: "small", autofocus: true })),
      guarded("This input", () => this.content(row)));
    // Keys go to what has the focus: it must not be lost with what was replaced.
    const buttons = [...this.dialog.querySelectorAll<HTMLButtonElement>("header button:not(:disabled)")];
    if (focused === null && finderFocused) return this.dialog.querySelector<HTMLButtonElement>("button[aria-expanded]")?.focus();
    return (buttons.find((b) => b.getAttribute("aria-label") === focused) ?? buttons[buttons.length - 1])?.focus();
  }

  private content(row: number): Child {
    const { store } = this;
    const near = store.inputs.near?.[row];
    const neighbours = (words: string, rows: number[] | undefined) =>
      rows?.length ? h("div", {}, h("h4", {}, words), gallery(store, rows, (other) => this.open(other, rows), { narrow: true })) : null;
    return [
      h("div", { class: "columns" },
        h("div", { class: "large" }, this.input(row)),
        h("div", {}, h("h4", {}, store.report.classes ? "Top predictions" : "Prediction"), this.top(row), h("h4", {}, "Facts"), this.facts(row), this.tick(row), this.finder(row))),
      this.similar ? this.similarInputs(row) : null,
      near ? h("div", { class: near.right.length && near.wrong.length ? "columns" : "" }, neighbours("Nearest correct predictions", near.right), neighbours("Nearest wrong predictions", near.wrong)) : null,
    ];
  }

  private input(row: number): HTMLElement {
    const { inputs } = this.store;
    if (valuesOf(this.store, row)) return this.values(row);
    const heat = picture(inputs.heat?.[row], "relevance for the predicted class");
    const text = inputs.texts[row];
    if (!heat) return h("div", {}, text && !inputs.pictures[row] ? h("p", { class: "text" }, text) : shown(this.store, row));
    heat.className = "heat";
    return h("div", {}, h("div", { class: "beside" }, shown(this.store, row), heat),
      h("p", { class: "note" }, "Beside the input: relevance. Red is evidence for the predicted class, blue against it."));
  }

  /// A row's values beside those of the nearest input that is predicted correctly, and beside the usual ones.
  private values(row: number): HTMLElement {
    const { store } = this;
    const own = valuesOf(store, row)!;
    const near = store.inputs.near?.[row]?.right.find((r) => valuesOf(store, r));
    const other = near === undefined ? undefined : valuesOf(store, near);
    return h("div", {},
      h("table", { class: "read" }, h("thead", {}, h("tr", {}, h("th", {}, "column"), h("th", {}, "this input"), other ? h("th", {}, `nearest correct: ${store.inputs.id[near!]}`) : null, h("th", { title: "the median, or the most frequent word" }, "typical"))),
        h("tbody", {}, columnsOf(store).map((column, i) => h("tr", {}, h("td", { class: column.input ? "" : "aside" }, column.name),
          h("td", { class: isUnusual(column, own[i]) ? "unusual" : "" }, valueText(own[i])), other ? h("td", { class: differs(column, own[i], other[i]) ? "different" : "" }, valueText(other[i])) : null, h("td", { class: "muted" }, valueText(column.typical)))))),
      h("p", { class: "note" }, unusualWords(store), other ? " Bold: the input of the nearest correct prediction has another word, or a number more than half a standard deviation away." : null,
        columnsOf(store).some((column) => !column.input) ? " Columns in italics are not given to the model." : null));
  }

  private top(row: number): HTMLElement {
    const { store } = this;
    const { inputs } = store;
    if (!store.report.classes) return h("p", { class: "figures" }, predictionWords(store, row));
    const known = inputs.top?.[row];
    const list: [number, number | null][] = known ?? [];
    if (!known) {
      if (inputs.predicted[row] !== null) list.push([inputs.predicted[row]!, inputs.confidence[row]]);
      const second = inputs.second?.[row];
      if (second !== null && second !== undefined) list.push([second, null]);
    }
    return h("ol", { class: "top-k" }, list.map(([predicted, share]) => {
      const bar = h("i", {});
      bar.style.width = `${100 * (share ?? 0)}%`;
      return h("li", { class: predicted === inputs.label[row] ? "label" : "" },
        h("span", {}, store.className(predicted), predicted === inputs.label[row] ? " (label)" : ""), h("span", { class: "bar" }, bar), h("span", { class: "figures" }, percent(share)));
    }));
  }

  private facts(row: number): HTMLElement {
    const { store } = this;
    const { inputs, report } = store;
    const facts: [string, string][] = [["split", `${store.splitName(row)}, position ${inputs.sample[row] ?? "–"}`]];
    if (inputs.label[row] !== null) facts.push(["label", report.classes ? store.className(inputs.label[row]) : number(inputs.label[row])]);
    facts.push(["loss", number(inputs.loss[row])]);
    const before = inputs.before?.[row];
    if (before !== null && before !== undefined) facts.push(["reference", before ? "correct" : "wrong"]);
    const own = new Set(columnsOf(store).map((column) => column.name)); // stand in the table already
    for (const [name, group] of Object.entries(inputs.groups)) if (!own.has(name)) facts.push([name, group.values[group.of[row]] ?? "–"]);
    const slices = (inputs.slices?.[row] ?? []).map((i) => report.slices?.[i]?.name ?? "").filter(Boolean);
    if (slices.length) facts.push(["slices", slices.join(", ")]);
    const findings = report.findings.filter((f) => f.inputs.some((i) => i.sample === inputs.sample[row] && i.split === store.splitName(row)));
    if (findings.length) facts.push(["findings", findings.map((f) => f.id).join(", ")]);
    return h("dl", {}, facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
  }

  private tick(row: number): HTMLElement {
    const { ticked } = this.store;
    return h("label", { class: "tick" }, h("input", {
      type: "checkbox", checked: ticked.has(row), onchange: () => { ticked.has(row) ? ticked.delete(row) : ticked.add(row); this.onTick(); },
    }), " tick for export");
  }

  private finder(row: number): HTMLElement | null {
    if (!canFindSimilar(this.store, row)) return null;
    return h("p", {}, button(this.similar ? "hide similar" : "find similar", () => { this.similar = !this.similar; this.show(row); }, { class: "small", "aria-expanded": String(this.similar) }));
  }

  private similarInputs(row: number): HTMLElement {
    const { store } = this;
    const near = neighbours(store, row);
    return h("div", { class: "similar" }, h("h4", {}, "Similar inputs"), h("p", { class: "note" }, near.words),
      gallery(store, near.rows, (other) => this.open(other, near.rows), { narrow: true }),
      near.rows.length ? button("filter the page to these", () => { this.dialog.close(); store.set({ similar: store.keyOf(row) }, true); }, { class: "small" }) : null);
  }
}
