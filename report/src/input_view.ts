// An input as a person sees it: its picture, its sentence, its row of a table, or its name. Several of them as a grid of
// pictures, or as a table where they are to be read.
import { button, h } from "./dom";
import { percent } from "./format";
import { headCells, rowSummary, valueCells } from "./rows";
import type { Store } from "./store";

type Open = (row: number) => void;

/// Only pictures that stand in the page itself.
export function picture(source: string | undefined, words: string): HTMLImageElement | null {
  if (!source || !/^data:image\/(png|jpeg);base64,[A-Za-z0-9+/=]+$/.test(source)) return null;
  return h("img", { src: source, alt: words, loading: "lazy", decoding: "async" });
}

const inputName = (store: Store, row: number): string => store.inputs.id[row] ?? String(row);

export function shown(store: Store, row: number): HTMLElement {
  const { inputs } = store;
  const id = inputName(store, row);
  const image = picture(inputs.pictures[row], id);
  if (image) return h("span", { class: "shown" }, image);
  const words = inputs.texts[row] ?? rowSummary(store, row);
  return h("span", { class: words ? "shown words" : "shown id", title: id }, words ?? id);
}

/// `cat, predicted dog`; one name where both are the same or only one is known.
export function predictionWords(store: Store, row: number): string {
  const name = (value: number | null | undefined) => (store.report.classes ? store.className(value) : String(value ?? "–"));
  const [label, predicted] = [store.inputs.label[row], store.inputs.predicted[row]];
  if (label === null || label === undefined) return `predicted ${name(predicted)}`;
  return label === predicted ? name(label) : `${name(label)}, predicted ${name(predicted)}`;
}

type Mark = "right" | "wrong" | "";
const markOf = (store: Store, row: number): Mark => (store.inputs.right[row] === 0 ? "wrong" : store.inputs.right[row] === 1 ? "right" : "");

/// A small clickable input with its label and prediction.
export function thumb(store: Store, row: number, open: Open, caption = true, mark = markOf(store, row)): HTMLElement {
  const words = `${inputName(store, row)}: ${predictionWords(store, row)}, confidence ${percent(store.inputs.confidence[row], 0)}`;
  return h("button", { type: "button", class: `thumb ${mark}`, title: words, "aria-label": words, onclick: () => open(row) },
    shown(store, row), caption ? h("span", { class: "caption" }, predictionWords(store, row)) : null);
}

/// What opens an input that is read: its sentence, or its name.
export function opener(store: Store, row: number, open: Open): HTMLElement {
  return button(store.shows === "texts" ? store.inputs.texts[row] ?? inputName(store, row) : inputName(store, row), () => open(row), { class: "link opener", title: "open this input" });
}

interface GalleryOptions {
  /// What is said of each input, and what that is.
  caption?: (row: number) => string;
  heading?: string;
  /// Green or red: by default whether the prediction is correct.
  mark?: Mark;
  /// Beside something else: summaries instead of whole rows.
  narrow?: boolean;
}

export function gallery(store: Store, rows: number[], open: Open, { caption = (row) => predictionWords(store, row), heading = "label, prediction", mark, narrow = false }: GalleryOptions = {}): HTMLElement {
  if (!store.isRead) return h("div", { class: narrow ? "thumbs small" : "thumbs" }, rows.map((row) => h("div", { class: "cell" }, thumb(store, row, open, false, mark), h("span", { class: "caption" }, caption(row)))));
  const table = store.shows === "rows" && !narrow;
  const words = (row: number) => (table ? valueCells(store, row) : [h("td", { class: "sentence" }, store.shows === "texts" ? opener(store, row, open) : rowSummary(store, row) ?? "–")]);
  return h("div", { class: "scroll short" }, h("table", { class: "read" },
    h("thead", {}, h("tr", {}, store.shows === "texts" ? null : h("th", {}, "id"), h("th", {}, heading), table ? headCells(store) : h("th", {}, store.shows === "texts" ? "sentence" : "values"))),
    h("tbody", {}, rows.map((row) => h("tr", { class: mark ?? markOf(store, row) },
      store.shows === "texts" ? null : h("td", {}, opener(store, row, open)), h("td", { class: "name" }, caption(row)), words(row))))));
}
