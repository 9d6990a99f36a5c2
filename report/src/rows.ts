// Rows of a table as people read them: raw values under their columns, and which of them are unusual.
import { h } from "./dom";
import type { TableColumn } from "../generated/evidence";
import type { Store } from "./store";

const mostInSummary = 4;

export function columnsOf(store: Store): TableColumn[] {
  return store.inputs.table?.columns ?? [];
}

export function valuesOf(store: Store, row: number): string[] | undefined {
  return store.inputs.table?.values[row];
}

/// Outside the middle 90 % of a column's numbers, or a word in fewer than one row of twenty. Where no word is common, none is rare.
export function isUnusual(column: TableColumn, value: string): boolean {
  if (column.numbers) return value.trim() !== "" && (Number(value) < column.numbers.low || Number(value) > column.numbers.high);
  return Boolean(column.common?.length) && !column.common!.includes(value);
}

/// Another word, or a number that is more than half a standard deviation away.
export function differs(column: TableColumn, value: string, other: string): boolean {
  const away = Math.abs(Number(value) - Number(other));
  return column.numbers && Number.isFinite(away) ? away > column.numbers.sd / 2 : value !== other;
}

export const unusualWords = (store: Store): string => `Marked values are unusual: outside the middle 90 % of the ${store.inputs.table?.split ?? ""} inputs, or in fewer than 5 % of them.`;

function usual(column: TableColumn): string {
  return column.numbers ? `usual: ${column.numbers.low} to ${column.numbers.high}` : column.common?.length ? `usual: ${column.common.join(", ")}` : "no usual value";
}

/// An empty cell must be seen to be empty.
export const valueText = (value: string): string => (value.trim() === "" ? "(empty)" : value);

export function headCells(store: Store): HTMLElement[] {
  return columnsOf(store).map((column) => h("th", { class: `${column.numbers ? "figures" : ""} ${column.input ? "" : "aside"}`, title: `${column.input ? "" : "not given to the model; "}${usual(column)}` }, column.name));
}

export function valueCells(store: Store, row: number): HTMLElement[] {
  const values = valuesOf(store, row);
  return columnsOf(store).map((column, i) => (values ? h("td", { class: `${column.numbers ? "figures" : "word"} ${isUnusual(column, values[i]) ? "unusual" : ""}`, title: usual(column) }, valueText(values[i])) : h("td", {}, "–")));
}

/// A few values of a row, the unusual ones first: `age 66, education 10th and 12 more columns`.
export function rowSummary(store: Store, row: number): string | undefined {
  const values = valuesOf(store, row);
  if (!values) return undefined;
  const all = columnsOf(store).map((column, i) => ({ words: `${column.name} ${valueText(values[i])}`, unusual: isUnusual(column, values[i]), input: column.input }));
  const some = [...all].sort((a, b) => Number(b.unusual) - Number(a.unusual) || Number(b.input) - Number(a.input)).slice(0, mostInSummary);
  const rest = all.length - some.length;
  return some.map((one) => one.words).join(", ") + (rest ? ` and ${rest} more column${rest === 1 ? "" : "s"}` : "");
}
