// How the points of the map are coloured: groups of rows, each with words and a colour, drawn in this order.
import * as Plot from "@observablehq/plot";
import { percent } from "./format";
import type { Store } from "./store";

export type ColourBy = "label" | "predicted" | "right" | "slice" | "confidence";

export interface Layer {
  words: string;
  colour: string;
  rows: number[];
  rest?: boolean; // what has no colour of its own
}

export interface Colouring {
  layers: Layer[];
  mixed: boolean; // none of the layers is more important: their points are drawn in turns
}

const palette = ["#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7", "#a463f2", "#97bbf5", "#9c6b4e", "#8c8f1f"];
const confidenceSteps = 6;

export function colourings(store: Store, rows: number[]): [ColourBy, string][] {
  const { inputs, report } = store;
  const known = (column: unknown[]) => rows.some((row) => column[row] !== null);
  const all: [ColourBy, string, boolean][] = [
    ["label", "label", Boolean(report.classes) && known(inputs.label)],
    ["predicted", "predicted class", Boolean(report.classes) && known(inputs.predicted)],
    ["right", "correct or wrong", known(inputs.right)],
    ["slice", "slice", Boolean(report.slices?.length && inputs.slices)],
    ["confidence", "confidence", known(inputs.confidence)],
  ];
  return all.filter(([, , there]) => there).map(([by, words]) => [by, words]);
}

/// The most frequent classes have a colour each; the others share one. Colours do not change with the filter.
function byClass(store: Store, all: number[], rows: number[], column: (number | null)[]): Layer[] {
  const counts = new Map<number, number>();
  for (const row of all) if (column[row] !== null) counts.set(column[row]!, (counts.get(column[row]!) ?? 0) + 1);
  const few = counts.size <= palette.length ? [...counts.keys()] : [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, palette.length - 1).map(([c]) => c);
  const shown = few.sort((a, b) => a - b);
  const at = new Map(shown.map((c, i) => [c, i]));
  const layers = shown.map((c, i): Layer => ({ words: store.className(c), colour: palette[i], rows: [] }));
  const others: Layer = { words: counts.size > shown.length ? `${counts.size - shown.length} other classes` : "not known", colour: "var(--muted)", rows: [], rest: true };
  for (const row of rows) (layers[at.get(column[row] ?? -1) ?? -1] ?? others).rows.push(row);
  return [others, ...layers];
}

function byConfidence(store: Store, all: number[], rows: number[]): Layer[] {
  const { confidence } = store.inputs;
  const known = all.filter((row) => confidence[row] !== null);
  const low = known.reduce((least, row) => Math.min(least, confidence[row]!), 1);
  const high = known.reduce((most, row) => Math.max(most, confidence[row]!), 0);
  const step = (high - low) / confidenceSteps || 1;
  const scale = Plot.scale({ color: { type: "linear", domain: [0, confidenceSteps - 1], scheme: "viridis" } })!;
  const layers = Array.from({ length: confidenceSteps }, (_, i): Layer => ({ words: `${percent(low + i * step)} – ${percent(low + (i + 1) * step)}`, colour: scale.apply(i) as string, rows: [] }));
  for (const row of rows) if (confidence[row] !== null) layers[Math.min(confidenceSteps - 1, Math.floor((confidence[row]! - low) / step))]?.rows.push(row);
  return layers.reverse(); // the least confident on top
}

/// `rows` of `all` on the map pass the filter.
export function colouring(store: Store, all: number[], rows: number[], by: ColourBy, slice: number): Colouring {
  const { inputs, report } = store;
  const split = (yes: (row: number) => boolean, words: [string, string], colours: [string, string]): Colouring => ({ mixed: false, layers: [
    { words: words[1], colour: colours[1], rows: rows.filter((row) => !yes(row)) },
    { words: words[0], colour: colours[0], rows: rows.filter(yes) },
  ] });
  switch (by) {
    case "label": return { mixed: true, layers: byClass(store, all, rows, inputs.label) };
    case "predicted": return { mixed: true, layers: byClass(store, all, rows, inputs.predicted) };
    case "right": return split((row) => inputs.right[row] === 0, ["wrong", "correct"], ["var(--wrong)", "var(--right)"]);
    case "slice": return split((row) => Boolean(inputs.slices?.[row]?.includes(slice)), [report.slices?.[slice]?.name ?? "slice", "other inputs"], ["var(--second)", "var(--muted)"]);
    case "confidence": return { mixed: false, layers: byConfidence(store, all, rows) };
  }
}
