// An input as a person sees it: its picture, its words, or its name.
import { h } from "./dom";
import { percent, shortened } from "./format";
import type { Store } from "./store";

/// Only pictures that stand in the page itself.
export function picture(source: string | undefined, words: string): HTMLImageElement | null {
  if (!source || !/^data:image\/(png|jpeg);base64,[A-Za-z0-9+/=]+$/.test(source)) return null;
  return h("img", { src: source, alt: words, loading: "lazy", decoding: "async" });
}

export function shown(store: Store, row: number): HTMLElement {
  const { inputs } = store;
  const id = inputs.id[row] ?? String(row);
  const image = picture(inputs.pictures[row], id);
  if (image) return h("span", { class: "shown" }, image);
  const text = inputs.texts[row];
  return h("span", { class: text ? "shown words" : "shown id", title: id }, shortened(text ?? id, text ? 160 : 24));
}

export function predictionWords(store: Store, row: number): string {
  const { inputs } = store;
  const label = inputs.label[row];
  const predicted = inputs.predicted[row];
  if (store.report.classes) return label === null || label === undefined ? store.className(predicted) : `${store.className(label)} → ${store.className(predicted)}`;
  return label === null || label === undefined ? String(predicted ?? "–") : `${label} → ${predicted ?? "–"}`;
}

/// A small clickable input with its label and prediction.
export function thumb(store: Store, row: number, open: (row: number) => void, caption = true): HTMLElement {
  const { inputs } = store;
  const right = inputs.right[row];
  const words = `${inputs.id[row]}: ${predictionWords(store, row)}, confidence ${percent(inputs.confidence[row], 0)}`;
  return h("button", { type: "button", class: `thumb ${right === 0 ? "wrong" : right === 1 ? "right" : ""}`, title: words, "aria-label": words, onclick: () => open(row) },
    shown(store, row), caption ? h("span", { class: "caption" }, predictionWords(store, row)) : null);
}
