// Rows of arrays (npz, npy, saved) come as texts of numbers. They are shown as what they are: a table whose columns are counted
// from 0, as NumPy counts them.
import type { Inputs, Table, TableColumn } from "../generated/evidence";

export const columnName = (column: number): string => `column ${column}`;

const isNumber = (word: string): boolean => /^[-+]?(\d+\.?\d*(e[-+]?\d+)?|inf|nan)$/i.test(word);

/// What is usual in a column, by the rows that are stored: the document has no others.
function column(name: string, words: string[]): TableColumn {
  const values = words.map((word) => ({ word, value: Number(word) })).filter(({ value }) => Number.isFinite(value)).sort((a, b) => a.value - b.value);
  if (!values.length) return { name, input: true, typical: words[0], common: [] };
  const at = (share: number) => values[Math.floor(share * (values.length - 1))];
  const mean = values.reduce((sum, { value }) => sum + value, 0) / values.length;
  const sd = Math.sqrt(values.reduce((sum, { value }) => sum + (value - mean) ** 2, 0) / values.length);
  return { name, input: true, typical: at(0.5).word, numbers: { low: at(0.05).value, high: at(0.95).value, sd } };
}

/// Texts that all are equally many numbers, as a table; undefined where they are not.
export function tableOfNumbers({ texts }: Inputs): Table | undefined {
  const rows = Object.entries(texts).map(([row, text]): [string, string[]] => [row, text.split(" ")]);
  const width = rows[0]?.[1].length ?? 0;
  if (width < 2 || !rows.every(([, words]) => words.length === width && words.every(isNumber))) return undefined;
  const columns = Array.from({ length: width }, (_, i) => column(columnName(i), rows.map(([, words]) => words[i])));
  return { split: "stored", columns, values: Object.fromEntries(rows) };
}
