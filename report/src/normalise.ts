// The document as its schema has it, so that everything after this can rely on the types. Evidence comes from other versions and from
// strangers: what cannot be read is left out or not known (null, an empty text, an empty list), and is counted.
import { schema, type Report } from "../generated/evidence";
import { columnName, tableOfNumbers } from "./number_rows";

/// The keywords that types.mjs lets through.
interface Rule {
  $ref?: string;
  $defs?: Record<string, Rule>;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  oneOf?: Rule[];
  anyOf?: Rule[];
  properties?: Record<string, Rule>;
  required?: string[];
  additionalProperties?: Rule | boolean;
  items?: Rule;
  minItems?: number;
  maxItems?: number;
  minimum?: number;
  positional?: boolean;
  index?: string;
}

type Loose = Record<string, unknown>;

const none = Symbol("cannot be read");
const isObject = (value: unknown): value is Loose => typeof value === "object" && value !== null && !Array.isArray(value);

/// What could not be read: how much, and the first places of it.
export class Unread {
  count = 0;
  readonly places: string[] = [];
  readonly path: (string | number)[] = [];

  add(key: string | number, count = 1): void {
    this.count += count;
    if (this.places.length < 20) this.places.push([...this.path, key].map((part) => (typeof part === "number" ? `[${part}]` : `.${part}`)).join("").slice(1));
  }
}

interface Reader {
  /// The value, changed in place where it is an object or a list; `none` where nothing of it can be read.
  fit: (value: unknown) => unknown;
  /// What stands where a required one is missing; `none` where nothing can.
  otherwise: () => unknown;
}

/// Readers for the rules of the schema, with the sizes that the lists of one document have.
class Readers {
  private readonly named = new Map<string, Reader>();

  constructor(private readonly root: Rule, private readonly document: Loose, private readonly unread: Unread) {}

  of(rule: Rule): Reader {
    if (rule.$ref) return this.named.get(rule.$ref) ?? this.name(rule.$ref);
    const choices = rule.oneOf ?? rule.anyOf; // of one thing and null
    if (choices) {
      const one = this.of(choices.find((choice) => choice.type !== "null")!);
      return { fit: (value) => (value === null ? null : one.fit(value)), otherwise: () => null };
    }
    if (rule.const !== undefined) return { fit: (value) => (value === rule.const ? value : none), otherwise: () => none };
    if (rule.enum) {
      const { enum: all } = rule; // the last one claims least
      return { fit: (value) => (all.indexOf(value) >= 0 ? value : none), otherwise: () => all[all.length - 1] };
    }
    if (rule.type === "object") return this.object(rule);
    if (rule.type === "array") return this.list(rule);
    return this.value(rule);
  }

  private name(ref: string): Reader {
    const reader = this.of(this.root.$defs![ref.replace("#/$defs/", "")]);
    this.named.set(ref, reader);
    return reader;
  }

  private value({ type, minimum = -Infinity, index }: Rule): Reader {
    const types = [type].flat();
    const [nullable, whole] = [types.includes("null"), types.includes("integer")];
    const below = index === undefined ? Infinity : this.sizeOf(index);
    const number = (value: unknown) => (typeof value === "number" && value >= minimum && value < below && (whole ? Number.isInteger(value) : Number.isFinite(value))) || (nullable && value === null);
    const other = (typeof_: string) => (value: unknown) => typeof value === typeof_ || (nullable && value === null);
    const fits = types.includes("string") ? other("string") : types.includes("boolean") ? other("boolean") : number;
    const otherwise = nullable ? null : types.includes("string") ? "" : types.includes("boolean") ? false : index === undefined ? null : none;
    return { fit: (value) => (fits(value) ? value : none), otherwise: () => otherwise };
  }

  /// Such a list is positional, so that it keeps its size.
  private sizeOf(path: string): number {
    const list = path.split(".").reduce<unknown>((value, key) => (isObject(value) ? value[key] : undefined), this.document);
    return Array.isArray(list) ? list.length : 0;
  }

  private list({ items, minItems, maxItems = Infinity, positional }: Rule): Reader {
    const { unread } = this;
    const item = this.of(items!);
    const tuple = minItems !== undefined && minItems === maxItems;
    const fit = (value: unknown) => {
      if (!Array.isArray(value) || (tuple && value.length !== minItems)) return none;
      let kept = 0;
      for (let i = 0; i < value.length; i++) {
        if (kept >= maxItems) {
          unread.add(i, value.length - i);
          break;
        }
        const given: unknown = value[i];
        let one: unknown = given;
        if (typeof given === "object" && given !== null) { // only these have places inside
          unread.path.push(i);
          one = item.fit(given);
          unread.path.pop();
        } else one = item.fit(given);
        if (one === none) {
          if (tuple) return none;
          unread.add(i);
          if (!positional) continue;
          one = item.otherwise();
          if (one === none) one = null;
        }
        if (kept !== i || one !== given) value[kept] = one;
        kept++;
      }
      if (kept < value.length) value.length = kept;
      return value;
    };
    const empty = () => (tuple ? Array.from({ length: minItems }, item.otherwise) : []);
    return { fit, otherwise: () => { const list = empty(); return list.includes(none) ? none : list; } };
  }

  private object({ properties = {}, required = [], additionalProperties }: Rule): Reader {
    const { unread } = this;
    const fields = Object.entries(properties).map(([key, rule]) => ({ key, reader: this.of(rule), needed: required.includes(key) }));
    const more = typeof additionalProperties === "object" ? this.of(additionalProperties) : null;
    const read = (key: string, reader: Reader, value: unknown) => {
      unread.path.push(key);
      const now = reader.fit(value);
      unread.path.pop();
      return now;
    };
    const fit = (value: unknown) => {
      if (!isObject(value)) return none;
      for (const { key, reader, needed } of fields) {
        const given = value[key];
        if (given === undefined && !needed) continue;
        let now = given === undefined ? none : read(key, reader, given);
        if (now === none) {
          now = needed ? reader.otherwise() : undefined;
          if (now === none) return none;
          if (given !== undefined && (needed || given !== null)) unread.add(key);
        }
        if (now === undefined) delete value[key];
        else if (now !== given) value[key] = now;
      }
      if (more) for (const [key, given] of Object.entries(value)) {
        if (read(key, more, given) !== none) continue; // lists and objects are changed in place, others are as they were
        unread.add(key);
        delete value[key];
      }
      return value;
    };
    return { fit, otherwise: () => fit({}) };
  }
}

// What the schema cannot say.

/// What is chosen by its name has one.
function names({ classes, per_class, slices, network, findings, accepted }: Report): void {
  classes?.forEach((name, i) => (classes[i] = name || `class ${i}`));
  per_class?.forEach((row, i) => (row.name ||= classes?.[i] ?? `class ${i}`));
  slices?.forEach((slice, i) => (slice.name ||= `slice ${i}`));
  network?.layers.forEach((layer, i) => (layer.name ||= `layer ${i}`));
  for (const finding of [...findings, ...accepted]) finding.title ||= finding.id || "A finding without a name.";
}

/// Columns have an entry per input; one of another length knows nothing.
function columns({ inputs }: Report, unread: Unread): void {
  if (!inputs) return;
  const rows = inputs.id.length;
  const entry = { split: () => 0, sample: (row: number) => row, label: () => null, predicted: () => null, confidence: () => null, loss: () => null, right: () => null };
  for (const [key, make] of Object.entries(entry) as [keyof typeof entry, (row: number) => number | null][]) {
    if (inputs[key].length === rows) continue;
    if (inputs[key].length) unread.add(`inputs.${key}`);
    (inputs as unknown as Loose)[key] = Array.from({ length: rows }, (_, row) => make(row));
  }
  inputs.split.forEach((split, row) => { if (split === null) inputs.split[row] = 0; });
  for (const key of ["second", "before", "cluster", "slices"] as const) {
    if (!inputs[key] || inputs[key].length === rows) continue;
    unread.add(`inputs.${key}`);
    delete inputs[key];
  }
}

/// A row of a table has a value per column. Columns without a name are counted, and rows of numbers are a table.
function table({ inputs, data }: Report, unread: Unread): void {
  if (inputs && !inputs.table && !data?.words) {
    inputs.table = tableOfNumbers(inputs);
    if (inputs.table) inputs.texts = {};
  }
  if (!inputs?.table) return;
  const { columns, values } = inputs.table;
  columns.forEach((column, i) => (column.name ||= columnName(i)));
  for (const [row, all] of Object.entries(values)) {
    if (all.length === columns.length) continue;
    unread.add(`inputs.table.values.${row}`);
    delete values[row];
  }
  if (!columns.length) delete inputs.table;
}

/// Points of the map without an input and inputs without neighbours are left out; without two points there is no map.
function features(report: Report, unread: Unread): void {
  const { map, similar } = report;
  if (map) {
    const drawable = (value: number) => Number.isFinite(value) && Math.abs(value) < 1e100; // so that differences and their share of the width stay finite
    const known = [...map.rows.keys()].filter((i) => Number.isFinite(map.rows[i]) && drawable(map.x[i]) && drawable(map.y[i]));
    const beyond = [...map.x, ...map.y].filter((value) => Number.isFinite(value) && !drawable(value)).length;
    if (beyond) unread.add("map", beyond);
    if (map.x.length !== map.rows.length || map.y.length !== map.rows.length) unread.add("map");
    if (known.length < map.rows.length) for (const key of ["rows", "x", "y"] as const) map[key] = known.map((i) => map[key][i]);
    if (known.length < 2) delete report.map;
  }
  if (similar) {
    if (similar.nearest.length !== similar.rows.length) unread.add("similar");
    const known = [...similar.rows.keys()].filter((i) => Number.isFinite(similar.rows[i]) && similar.nearest[i]?.length);
    report.similar = { rows: known.map((i) => similar.rows[i]), nearest: known.map((i) => similar.nearest[i]) };
  }
}

/// Both classes of a cell are classes that there are.
function cells(report: Report, unread: Unread): void {
  const size = report.classes?.length ?? 0;
  for (const [part, place] of [[report, "confusion"], [report.compare, "compare.confusion"]] as const) {
    if (!part?.confusion) continue;
    const known = part.confusion.filter(([label, predicted]) => label < size && predicted < size);
    if (known.length < part.confusion.length) unread.add(place, part.confusion.length - known.length);
    part.confusion = known;
  }
}

export interface Reading {
  report: Report;
  unread: Unread;
}

/// The document as a report; a sentence for people where it is none.
export function normalise(document: unknown): Reading | string {
  if (!isObject(document) || document.format !== "netmend.report/1") {
    const format = isObject(document) && typeof document.format === "string" ? document.format : "this document";
    return `This page cannot show ${format}; netmend open writes it again.`;
  }
  const unread = new Unread();
  new Readers(schema as Rule, document, unread).of(schema as Rule).fit(document);
  const report = document as unknown as Report;
  for (const step of [names, columns, table, features, cells]) step(report, unread);
  return { report, unread };
}
