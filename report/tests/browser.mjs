// What the tests of the page share: a browser that may not reach anything, pages that report what goes wrong, and readers of what
// they export.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { spawnSync } from "node:child_process";

export const [netmend, home] = process.argv.slice(2);
if (!netmend || !home) throw new Error("usage: node page_test.mjs NETMEND FOLDER-OF-THE-BUILT-PAGE");
const { chromium } = createRequire(join(home, "package.json"))("playwright-core");

export const browserPath = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) => path && existsSync(path));
export const folder = mkdtempSync(join(tmpdir(), "netmend-page-"));
const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

const patience = 180_000; // ms: what has not happened by then does not happen, on however busy a machine

let browser;
export async function start() {
  browser = await chromium.launchPersistentContext(join(folder, "profile"), { executablePath: browserPath, args: flags, viewport: { width: 1366, height: 768 }, acceptDownloads: true });
}
export async function stop() {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
}

const template = readFileSync(join(home, "dist", "template.html"), "utf8");
const [pageHead, pageTail] = template.split("@NETMEND_REPORT@");

/// The built page with this document in it, as netmend puts it there.
export const pageOf = (document) => pageHead + JSON.stringify(document).replaceAll("<", "\\u003c") + pageTail;

/// The same as a file to open.
export function draw(name, document) {
  const path = join(folder, `${name}.html`);
  writeFileSync(path, pageOf(document));
  return path;
}

/// Runs netmend in the folder of the tests; whatever it finds, it may say so.
export function run(...args) {
  const done = spawnSync(netmend, args.map(String), { cwd: folder, encoding: "utf8", maxBuffer: 1 << 28 });
  assert.equal(done.status, 0, `netmend ${args.join(" ")}: ${done.stderr}`);
  return done.stdout;
}

/// The document of a real run.
export function check(name, model, ...args) {
  run("check", model, ...args, "--budget", "quick", "--fail-on", "never", "--quiet", "--out", name);
  return JSON.parse(readFileSync(join(folder, name, "evidence.json"), "utf8"));
}

/// Opens a page; whatever it complains about or asks for is kept in `page.troubles`.
export async function open(path, { hash = "", width = 1366, height = 768, scheme = "light" } = {}) {
  const page = await browser.newPage();
  page.troubles = [];
  page.failed = [];
  page.on("requestfailed", (request) => page.failed.push(`${request.url()} ${request.failure().errorText}`));
  page.setDefaultTimeout(patience);
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && page.troubles.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => page.troubles.push(`error: ${error.message}`));
  page.on("request", (request) => /^(file|data|blob):/.test(request.url()) || page.troubles.push(`request: ${request.url()}`));
  await page.setViewportSize({ width, height });
  await page.emulateMedia({ colorScheme: scheme });
  await page.goto(`file://${path}${hash}`);
  await drawn(page);
  return page;
}

/// Waits until the page says that all of it is drawn. What changes it says so at once.
export async function drawn(page) {
  await page.waitForSelector("html[data-drawn=yes]", { state: "attached" });
}

export async function close(page) {
  const { troubles } = page;
  await page.close();
  assert.deepEqual(troubles, []);
}

export async function download(page, act) {
  const [file] = await Promise.all([page.waitForEvent("download"), act()]);
  await page.waitForTimeout(150); // Chromium drops downloads beyond ten a second
  return { name: file.suggestedFilename(), bytes: readFileSync(await file.path()) };
}

export function csv(bytes) {
  const rows = [[]];
  let field = "", quoted = false;
  const text = bytes.toString("utf8");
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c === '"' && text[i + 1] === '"') field += text[++i];
      else if (c === '"') quoted = false;
      else field += c;
    } else if (c === '"') quoted = true;
    else if (c === "," || c === "\n") {
      rows.at(-1).push(field.replace(/\r$/, ""));
      field = "";
      if (c === "\n") rows.push([]);
    } else field += c;
  }
  rows.pop();
  const [columns, ...rest] = rows;
  return rest.map((row) => {
    assert.equal(row.length, columns.length);
    return Object.fromEntries(columns.map((column, i) => [column, row[i]]));
  });
}

/// The smallest report there is; tests put into it what they are about.
export function smallest() {
  return {
    format: "netmend.report/1", verdict: "Fine.", tiles: [], findings: [], accepted: [], passed: [], skipped: [], preflight: { lines: [], tried: [] }, method: [],
    run: { command: "netmend check m.onnx", version: "0", started: "", seconds: 1, seed: 1, timed: false, model: { name: "m.onnx", checksum: "", layers: 0, units: 0, weights: 0 }, data: [], pictures: false },
  };
}

/// A table of inputs with `count` rows made by a function of the row.
export function inputsOf(count, make) {
  const inputs = { left_out: 0, split: [], sample: [], id: [], label: [], predicted: [], confidence: [], loss: [], right: [], groups: {}, pictures: {}, texts: {} };
  for (let row = 0; row < count; row++) {
    const { label, predicted, confidence = 0.8, id = `i${row}` } = make(row);
    inputs.split.push(0);
    inputs.sample.push(row);
    inputs.id.push(id);
    inputs.label.push(label);
    inputs.predicted.push(predicted);
    inputs.confidence.push(confidence);
    inputs.loss.push(1 - confidence);
    inputs.right.push(Number(label === predicted));
  }
  return inputs;
}
