// What is looked at: the filter, the views' settings and the ticked inputs. The filter and the settings live in the address, so
// that a view can be sent as a link. Views ask for rows and are told when these change.
import type { Filter as TileFilter, Inputs, Report } from "../generated/evidence";
import { decodeArea, inArea } from "./area";
import { guarded } from "./dom";
import { Places } from "./places";
import { neighbours } from "./similar";

/// What leaves only some of the inputs: what tiles can set, what is chosen in the bar, an area of the map, and the inputs similar to one.
export interface Filter extends TileFilter {
  predicted?: string;
  split?: string;
  finding?: string;
  text?: string;
  area?: string; // as in area.ts
  similar?: string; // SPLIT.SAMPLE
}
export const filterKeys = ["class", "predicted", "slice", "split", "finding", "text", "area", "similar"] as const;
export type FilterKey = (typeof filterKeys)[number];

const emptyInputs: Inputs = {
  left_out: 0, split: [], sample: [], id: [], label: [], predicted: [], confidence: [], loss: [], right: [], groups: {}, pictures: {}, texts: {},
};

export class Store {
  readonly inputs: Inputs;
  readonly size: number;
  /// What an input is to a person.
  readonly shows: "pictures" | "texts" | "rows" | "names";
  /// The split that figures are about, and how many of its inputs are here. Others are looked at by name or through findings.
  readonly judged: number;
  readonly places?: Places;
  /// Nearest rows by row, where the document lists them.
  readonly listed: Map<number, number[]>;
  whole = 0;
  filter: Filter = {};
  /// Settings of views (`failures.sort`, `confidence.threshold`) that differ from their defaults.
  private settings: Record<string, string> = {};
  readonly ticked = new Set<number>();
  /// Rows that the filter leaves, in the order of the table.
  rows: number[] = [];
  private listeners: (() => void)[] = [];
  private rowsByName?: Map<string, number>;

  constructor(readonly report: Report) {
    this.inputs = report.inputs ?? emptyInputs;
    this.size = this.inputs.id.length;
    this.shows = Object.keys(this.inputs.pictures).length ? "pictures" : this.inputs.table ? "rows" : Object.keys(this.inputs.texts).length ? "texts" : "names";
    this.judged = Math.max(0, report.run.data.findIndex((d) => d.split === "test"));
    this.places = report.map && new Places(report.map);
    this.listed = new Map(report.similar?.rows.map((row, i) => [row, report.similar!.nearest[i]]));
    this.read();
    addEventListener("hashchange", () => {
      if (location.hash.slice(1) !== this.address()) {
        this.read();
        this.tell();
      }
    });
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  /// Whether inputs are read rather than looked at.
  get isRead(): boolean {
    return this.shows === "texts" || this.shows === "rows";
  }

  get filtered(): boolean {
    return filterKeys.some((key) => this.filter[key]);
  }

  /// Replaces the filter, or changes some of it: an empty value takes that part away.
  set(change: Filter, whole = false): void {
    const next: Filter = whole ? {} : { ...this.filter };
    for (const key of filterKeys) {
      if (!(key in change)) continue;
      if (change[key]) next[key] = change[key];
      else delete next[key];
    }
    this.filter = next;
    this.changed();
  }

  /// Sets what is not set so, takes away what is: clicking a bar twice leaves things as they were.
  toggle(change: Filter): void {
    const same = filterKeys.every((key) => !(key in change) || this.filter[key] === change[key]);
    this.set(same ? Object.fromEntries(Object.keys(change).map((key) => [key, ""])) : change);
  }

  setting(name: string, otherwise: string): string {
    return this.settings[name] ?? otherwise;
  }

  choose(name: string, value: string, otherwise: string): void {
    if (value === otherwise) delete this.settings[name];
    else this.settings[name] = value;
    this.write();
  }

  className(n: number | null | undefined): string {
    if (n === null || n === undefined) return "–";
    return this.report.classes?.[n] ?? String(n);
  }

  splitName(row: number): string {
    return this.report.run.data[this.inputs.split[row]]?.split ?? "";
  }

  rowOf(split: string, sample: number): number | undefined {
    if (!this.rowsByName) {
      this.rowsByName = new Map();
      for (let row = 0; row < this.size; row++) this.rowsByName.set(`${this.splitName(row)} ${this.inputs.sample[row]}`, row);
    }
    return this.rowsByName.get(`${split} ${sample}`);
  }

  /// An input's name in the address, and the row behind such a name.
  keyOf(row: number): string {
    return `${this.splitName(row)}.${this.inputs.sample[row]}`;
  }
  rowOfKey(key: string): number | undefined {
    const dot = key.lastIndexOf(".");
    return this.rowOf(key.slice(0, dot), Number(key.slice(dot + 1)));
  }

  findingRows(id: string): number[] {
    const finding = [...this.report.findings, ...this.report.accepted].find((f) => f.id === id);
    return (finding?.inputs ?? []).map((i) => this.rowOf(i.split, i.sample)).filter((row): row is number => row !== undefined);
  }

  /// How many inputs a row stands for: right ones that the page has no room for count through those that it has.
  weight(row: number): number {
    return this.inputs.right[row] === 1 ? this.rightWeight : 1;
  }
  private get rightWeight(): number {
    if (!this.inputs.left_out) return 1;
    this.rightRows ??= this.inputs.right.reduce<number>((sum, right) => sum + (right === 1 ? 1 : 0), 0);
    return this.rightRows ? (this.rightRows + this.inputs.left_out) / this.rightRows : 1;
  }
  private rightRows?: number;

  private address(): string {
    const parts = new URLSearchParams();
    for (const key of filterKeys) if (this.filter[key]) parts.set(key, this.filter[key]);
    for (const key of Object.keys(this.settings).sort()) parts.set(key, this.settings[key]);
    return parts.toString();
  }

  private read(): void {
    this.filter = {};
    this.settings = {};
    for (const [key, value] of new URLSearchParams(location.hash.slice(1))) {
      if ((filterKeys as readonly string[]).includes(key)) this.filter[key as FilterKey] = value;
      else if (/^[a-z]+\.[a-z]+$/.test(key)) this.settings[key] = value;
    }
    if (this.filter.area && !(this.places && decodeArea(this.filter.area))) delete this.filter.area;
    if (this.filter.similar && this.rowOfKey(this.filter.similar) === undefined) delete this.filter.similar;
    this.select();
  }

  private write(): void {
    history.replaceState(null, "", "#" + this.address());
  }

  private changed(): void {
    this.select();
    this.write();
    this.tell();
  }

  private tell(): void {
    for (const listener of this.listeners) guarded("What the filter leaves", listener);
  }

  /// Whether the filter leaves a row, of whatever split unless one is chosen: for evidence from other splits than the judged one.
  passes: (row: number) => boolean = () => true;

  private select(): void {
    const { filter, inputs, report } = this;
    const named = (name: string | undefined) => (name === undefined ? undefined : report.classes?.indexOf(name));
    const label = named(filter.class);
    const predicted = named(filter.predicted);
    const slice = filter.slice === undefined ? undefined : (report.slices ?? []).findIndex((s) => s.name === filter.slice);
    const split = filter.split === undefined ? undefined : report.run.data.findIndex((d) => d.split === filter.split);
    const finding = filter.finding === undefined ? undefined : new Set(this.findingRows(filter.finding));
    const area = filter.area === undefined ? undefined : decodeArea(filter.area);
    const middle = filter.similar === undefined ? undefined : this.rowOfKey(filter.similar);
    const similar = middle === undefined ? undefined : new Set([middle, ...neighbours(this, middle).rows]);
    const within = (row: number) => {
      const place = this.places?.of(row);
      return place !== undefined && inArea(area!, this.places!.toGrid(place));
    };
    const words = filter.text?.toLowerCase().split(/\s+/).filter(Boolean);
    this.passes = (row) =>
      (label === undefined || inputs.label[row] === label) &&
      (predicted === undefined || inputs.predicted[row] === predicted) &&
      (slice === undefined || Boolean(inputs.slices?.[row]?.includes(slice))) &&
      (split === undefined || inputs.split[row] === split) &&
      (!finding || finding.has(row)) &&
      (!similar || similar.has(row)) &&
      (!area || within(row)) &&
      (!words?.length || this.holds(row, words));
    this.rows = [];
    this.whole = 0;
    for (let row = 0; row < this.size; row++) {
      if (!finding && !similar && inputs.split[row] !== (split ?? this.judged)) continue;
      this.whole++;
      if (this.passes(row)) this.rows.push(row);
    }
  }

  private holds(row: number, words: string[]): boolean {
    const { inputs } = this;
    let all = `${inputs.id[row]} ${this.className(inputs.label[row])} ${this.className(inputs.predicted[row])} ${inputs.texts[row] ?? ""} ${inputs.table?.values[row]?.join(" ") ?? ""}`;
    for (const group of Object.values(inputs.groups)) all += " " + (group.values[group.of[row]] ?? "");
    all = all.toLowerCase();
    return words.every((word) => all.includes(word));
  }
}
