// TEMPORARY: brings a document of an engine that does not yet follow evidence.schema.json to the schema, so that the page can be
// tested on real runs. To be deleted with its uses once the engine follows. Nothing is made up: what is renamed is renamed,
// what is unknown is null or left out, and the map is a PCA of the inputs' own pixels.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

export const isCurrent = (document) => document.run.timed !== undefined;

const certainty = { sure: "confirmed", likely: "likely", hint: "possible" };

export function upgrade(document, data) {
  if (isCurrent(document)) return document;
  document.run.timed = false;
  for (const finding of [...document.findings, ...document.accepted]) {
    finding.certainty = certainty[finding.sureness];
    delete finding.sureness;
  }
  const { inputs } = document;
  if (!inputs) return document;
  if (inputs.answers) inputs.top = inputs.answers;
  delete inputs.answers;
  const file = join(data ?? "", "mnist", "t10k-images-idx3-ubyte.gz");
  if (document.run.data[0]?.spec === "mnist:test" && existsSync(file)) project(document, gunzipSync(readFileSync(file)).subarray(16), 784);
  return document;
}

/// Map and neighbours of the test rows, from `width` bytes an input.
function project(document, bytes, width) {
  const { inputs } = document;
  const rows = inputs.id.map((_, row) => row).filter((row) => inputs.split[row] === 0);
  const x = rows.map((row) => Float64Array.from(bytes.subarray(inputs.sample[row] * width, (inputs.sample[row] + 1) * width), (v) => v / 255));
  const mean = new Float64Array(width);
  for (const one of x) for (let j = 0; j < width; j++) mean[j] += one[j] / x.length;
  for (const one of x) for (let j = 0; j < width; j++) one[j] -= mean[j];
  const total = x.reduce((sum, one) => sum + dot(one, one), 0);
  const axes = [];
  for (let k = 0; k < 2; k++) axes.push(leading(x, axes, width));
  const coordinates = axes.map((axis) => x.map((one) => Math.round(1e4 * dot(one, axis)) / 1e4));
  document.map = { layer: "the input", method: "PCA", explained: coordinates.map((c) => c.reduce((sum, v) => sum + v * v, 0) / total), rows, x: coordinates[0], y: coordinates[1] };
  const asked = rows.map((_, i) => i).filter((i) => inputs.right[rows[i]] === 0);
  const squares = x.map((one) => dot(one, one));
  const nearest = asked.map((i) => {
    const away = x.map((one, j) => squares[j] - 2 * dot(one, x[i]));
    return rows.map((_, j) => j).filter((j) => j !== i).sort((a, b) => away[a] - away[b]).slice(0, 12).map((j) => rows[j]);
  });
  document.similar = { rows: asked.map((i) => rows[i]), nearest };
}

function dot(a, b) {
  let sum = 0;
  for (let j = 0; j < a.length; j++) sum += a[j] * b[j];
  return sum;
}

/// The leading principal axis that is orthogonal to those already found, by power iteration.
function leading(x, found, width) {
  let axis = Float64Array.from({ length: width }, (_, j) => Math.sin(j + 1 + found.length));
  for (let round = 0; round < 30; round++) {
    const next = new Float64Array(width);
    for (const one of x) {
      const along = dot(one, axis);
      for (let j = 0; j < width; j++) next[j] += along * one[j];
    }
    for (const other of found) {
      const along = dot(next, other);
      for (let j = 0; j < width; j++) next[j] -= along * other[j];
    }
    const length = Math.sqrt(dot(next, next));
    axis = next.map((v) => v / length);
  }
  return axis;
}
