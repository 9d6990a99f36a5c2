// What the page is drawn from: `evidence.json` and `findings.json` of a run folder, put into the page as one document.
// The same names as in docs/formats.md. Everything but `format`, `run`, `verdict`, `findings` and `skipped` may be missing;
// a section without data is not drawn. Figures are shares (0.913), never per cents; no NaN: what is not known is null.

export interface Report {
  format: "netmend.report/1";
  run: Run;
  verdict: string; // one sentence
  task?: "classes" | "binary" | "labels" | "number" | "none";
  metric?: Figure & { name: string; error: boolean }; // error: smaller is better
  tiles: Tile[]; // metric, worst class, worst slice, failures
  findings: Finding[]; // ranked
  accepted: Finding[]; // known, with `accepted`
  passed: { what: string; value: string }[]; // checks without a finding, and how near they were
  skipped: { what: string; enable: string }[];
  preflight: { lines: { text: string; holds: boolean }[]; tried: { words: string; line: string; accuracy: Figure }[] };
  classes?: string[];
  inputs?: Inputs;
  per_class?: ClassRow[];
  confusion?: [label: number, answer: number, count: number][]; // without zeros; class numbers
  slices?: SliceRow[];
  confidence?: Confidence;
  data?: Data;
  network?: Network;
  tests?: Tests;
  repair?: Repair;
  compare?: Compare;
  method: { name: string; text: string }[]; // settings, definitions, what differs from the literature
}

export interface Figure {
  value: number | null;
  low: number | null;
  high: number | null;
}

export interface Run {
  command: string;
  version: string;
  started: string;
  seconds: number;
  seed: number;
  model: { name: string; checksum: string; layers: number; units: number; weights: number };
  data: { split: string; spec: string; size: number; used: number }[]; // used < size: a sample
  pictures: boolean; // false with --no-images
}

export interface Tile {
  name: string; // `accuracy`, `worst class`
  value: string; // `91.3 %`
  detail: string; // `90.7–91.8`, `cat`
  change?: string; // against the reference
  filter?: Filter;
}

/// The filter bar; also what a tile, bar, cell or finding sets when it is clicked. Written into the address.
export interface Filter {
  class?: string;
  predicted?: string;
  slice?: string;
  split?: string;
  finding?: string;
  text?: string;
}

export interface Finding {
  id: string;
  kind: string;
  where: string;
  level: "blocker" | "serious" | "minor" | "note";
  certainty: "confirmed" | "likely" | "possible";
  title: string;
  brief: string;
  evidence: string;
  meaning: string;
  fault: string;
  gain: number;
  value: number;
  next: string[];
  inputs: { split: string; sample: number; id: string }[];
  numbers: Record<string, unknown>;
  related: string[];
  accepted?: { reason: string; until: string | null; value: number };
}

/// One entry an input, column by column. All failures are here, and of the rest what fits (`left_out` says how many not).
export interface Inputs {
  left_out: number;
  split: number[]; // index into run.data
  sample: number[]; // position in the data
  id: string[];
  label: (number | null)[]; // class number, or the number itself
  predicted: (number | null)[];
  confidence: (number | null)[];
  second?: (number | null)[]; // the next likely class
  loss: (number | null)[];
  right: (0 | 1 | null)[];
  before?: (0 | 1 | null)[]; // right in the reference
  cluster?: (number | null)[]; // of failures
  slices?: number[][]; // indices into slices
  groups: Record<string, { values: string[]; of: number[] }>; // columns kept aside: values and which one an input has
  near?: Record<string, { right: number[]; wrong: number[] }>; // by row of this table: nearest rows
  pictures: Record<string, string>; // by row: data URI of a PNG
  heat?: Record<string, string>; // by row: relevance as a PNG
  texts: Record<string, string>; // by row: a sentence, or a table's row
  answers?: Record<string, [answer: number, share: number][]>; // by row: the likeliest classes, best first
}

export interface ClassRow extends Figure {
  // value: the recall
  name: string;
  samples: number;
  correct: number;
  predicted: number;
  precision: number | null;
  train?: number; // inputs in training
}

export interface SliceRow extends Figure {
  name: string; // `hour=night`, `brightness < 0.2 and label`
  source: "group" | "rule" | "cluster";
  samples: number;
  failures: number;
  elsewhere: number;
}

export interface Confidence {
  bins: { low: number; high: number; count: number; confidence: number; accuracy: number }[];
  histogram: { low: number; high: number; right: number; wrong: number }[];
  calibration_error: number;
  temperature?: number;
}

export interface Data {
  splits: { name: string; size: number; classes: number[] }[];
  ranges: { split: string; name: string; min: number; max: number; mean: number; sd: number; missing: number }[];
  duplicates: { where: string; exact: number; near: number; effect: string; pairs: [row: number, row: number][] }[];
  suspected: { row: number; given: number; likely: number; confidence: number }[];
  words?: { split: string; unknown: number; mean_length: number }[];
}

export interface Network {
  layers: Layer[];
  units: Unit[];
}
export interface Layer {
  name: string; // `layer1.0.conv1`
  kind: string; // Conv, Gemm, LSTM …
  shape: string;
  units: number;
  weights: number;
  dead: number;
  blame: number | null; // the worst unit's, 0 … 1
  importance: number | null;
  untested: number; // units that tests never drive as high as training
  from: string[]; // layers that feed it
}
export interface Unit {
  name: string; // `conv1/7`
  layer: number;
  mean: number;
  sd: number;
  min: number;
  max: number;
  zeros: number | null; // share of inputs
  blame: number | null; // 0 … 1
  rank: number | null;
  importance: number | null;
  untested: number; // share of training inputs above the highest test
  edges?: number[]; // of the histogram
  right?: number[];
  wrong?: number[];
  by_class?: number[]; // mean by label
  drivers?: number[]; // rows of inputs that drive it highest
}

export interface Tests {
  criteria: { name: string; value: number | null; covered: number | null; goals: number | null; about: string }[]; // without goals there is no share
  growth: { inputs: number; share: number }[];
  untried: { unit: string; low: number; high: number; train: number; rows: number[] }[]; // train: inputs above every test
  redundant: number;
  needed: number;
  redundant_rows?: number[]; // rows of inputs that add nothing
  useful_rows?: number[]; // rows of inputs that are enough, most useful first
}

export interface Repair {
  verdict: string;
  reason: string;
  method: string;
  before: Figure;
  after: Figure;
  change: Figure;
  fixed: number;
  broken: number;
  p: number;
  inputs: number; // held out
  per_class: { name: string; fixed: number; broken: number }[];
  edits: { unit: string; words: string; distance: number | null }[];
  alternatives: { method: string; change: number; fixed: number; broken: number; seconds: number; why_not: string }[];
  flips: { row: number; fixed: boolean; before: number; after: number }[];
  whatif: string; // command
}

export interface Compare {
  reference: string;
  fixed: number;
  broken: number;
  change: Figure;
  verdict: string;
  per_class: { name: string; fixed: number; broken: number; change: Figure }[];
  groups: { name: string; fixed: number; broken: number; change: Figure }[];
  flips: { row: number; fixed: boolean; confidence_before: number | null }[];
  confusion?: [label: number, answer: number, count: number][]; // the reference's
}
