// Fills in what a document leaves out, so that everything after it can rely on the schema. Evidence of other versions, and of
// models for which a part makes no sense, lacks this and that.
import type { Finding, Report } from "../generated/evidence";

type Loose = Record<string, unknown>;

const isObject = (value: unknown): value is Loose => typeof value === "object" && value !== null && !Array.isArray(value);

/// Missing or wrong lists become empty, missing or wrong tables too.
function fill(target: Loose, lists: string[], tables: string[] = []): void {
  for (const key of lists) if (!Array.isArray(target[key])) target[key] = [];
  for (const key of tables) if (!isObject(target[key])) target[key] = {};
}

function finding(value: unknown): value is Finding {
  if (!isObject(value) || typeof value.id !== "string") return false;
  fill(value, ["next", "inputs", "related"], ["numbers"]);
  for (const key of ["kind", "where", "title", "brief", "evidence", "meaning", "fault"]) if (typeof value[key] !== "string") value[key] = "";
  if (!["blocker", "serious", "minor", "note"].includes(String(value.level))) value.level = "note";
  if (!["confirmed", "likely", "possible"].includes(String(value.certainty))) value.certainty = "possible";
  value.title ||= value.id;
  return true;
}

function part(report: Loose, key: string, lists: string[]): void {
  if (report[key] === undefined) return;
  if (isObject(report[key])) fill(report[key] as Loose, lists);
  else delete report[key];
}

const numbers = (value: unknown): value is number[] => Array.isArray(value) && value.every((one) => Number.isFinite(one));

/// A table is used only where every row of it has as many values as there are columns.
function table(inputs: Loose): void {
  const { columns, values } = isObject(inputs.table) ? inputs.table : ({} as Loose);
  const fits = Array.isArray(columns) && columns.length > 0 && columns.every((c) => isObject(c) && typeof c.name === "string") && isObject(values) &&
    Object.values(values).every((row) => Array.isArray(row) && row.length === columns.length && row.every((value) => typeof value === "string"));
  if (!fits) delete inputs.table;
}

/// The map and the neighbours are used only where every row that they name is there.
function features(report: Loose): void {
  const size = isObject(report.inputs) ? (report.inputs.id as unknown[]).length : 0;
  const rows = (value: unknown): value is number[] => numbers(value) && value.every((row) => Number.isInteger(row) && row >= 0 && row < size);
  const { map, similar } = report as { map: Loose | undefined; similar: Loose | undefined };
  if (!isObject(map) || !rows(map.rows) || map.rows.length < 2 || !numbers(map.x) || !numbers(map.y) || map.x.length !== map.rows.length || map.y.length !== map.rows.length) delete report.map;
  else if (!numbers(map.explained)) map.explained = [];
  if (!isObject(similar) || !rows(similar.rows) || !Array.isArray(similar.nearest) || similar.nearest.length !== similar.rows.length || !similar.nearest.every(rows)) delete report.similar;
}

/// The document as a report; a sentence for people where it is none.
export function normalise(document: unknown): Report | string {
  if (!isObject(document) || document.format !== "netmend.report/1") {
    const format = isObject(document) && typeof document.format === "string" ? document.format : "what it was given";
    return `This page cannot show ${format}; netmend open draws it again.`;
  }
  fill(document, ["tiles", "findings", "accepted", "passed", "skipped", "method"], ["run", "preflight"]);
  fill(document.preflight as Loose, ["lines", "tried"]);
  document.verdict = String(document.verdict ?? "");
  const run = document.run as Loose;
  fill(run, ["data"], ["model"]);
  for (const [target, keys] of [[run, ["command", "version", "started"]], [run.model as Loose, ["name", "checksum"]]] as [Loose, string[]][]) for (const key of keys) target[key] = String(target[key] ?? "");
  for (const [target, keys] of [[run, ["seconds", "seed"]], [run.model as Loose, ["layers", "units", "weights"]]] as [Loose, string[]][]) for (const key of keys) target[key] = Number(target[key]) || 0;
  for (const key of ["findings", "accepted"]) document[key] = (document[key] as unknown[]).filter(finding);
  for (const key of ["classes", "per_class", "confusion", "slices"]) if (!Array.isArray(document[key])) delete document[key];
  part(document, "inputs", ["split", "sample", "id", "label", "predicted", "confidence", "loss", "right"]);
  if (document.inputs) {
    const inputs = document.inputs as Loose;
    fill(inputs, [], ["groups", "pictures", "texts"]);
    inputs.left_out = Number(inputs.left_out) || 0;
    for (const key of ["second", "before", "cluster", "slices"]) if (!Array.isArray(inputs[key])) delete inputs[key];
    for (const key of ["near", "heat", "top"]) if (!isObject(inputs[key])) delete inputs[key];
    table(inputs);
    // A column that is missing is one that knows nothing.
    const rows = (inputs.id as unknown[]).length;
    const column = (key: string, value: (row: number) => unknown) => { if ((inputs[key] as unknown[]).length !== rows) inputs[key] = Array.from({ length: rows }, (_, row) => value(row)); };
    column("split", () => 0);
    column("sample", (row) => row);
    for (const key of ["label", "predicted", "confidence", "loss", "right"]) column(key, () => null);
  }
  features(document);
  if (!isObject(document.latency) || !isObject(document.latency.all)) delete document.latency;
  else fill(document.latency, ["groups"]);
  part(document, "confidence", ["bins", "histogram"]);
  part(document, "data", ["splits", "ranges", "duplicates", "suspected"]);
  part(document, "network", ["layers", "units"]);
  for (const layer of (document.network as { layers: Loose[] } | undefined)?.layers ?? []) fill(layer, ["from"]);
  part(document, "tests", ["criteria", "growth", "untried"]);
  part(document, "repair", ["per_class", "edits", "alternatives", "flips"]);
  part(document, "compare", ["per_class", "groups", "flips"]);
  return document as unknown as Report;
}
