// The page as a user meets it, in Chromium: node page_test.mjs NETMEND FOLDER-OF-THE-BUILT-PAGE
// Real data needs NETMEND_DATA and Debian's python3-numpy; those parts say SKIPPED without.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { browserPath, close, csv, download, draw, drawn, folder, inputsOf, netmend, open, smallest, start, stop } from "./browser.mjs";

const data = process.env.NETMEND_DATA;
const real = Boolean(data) && existsSync(join(data, "mnist")) && existsSync(join(data, "onnx/mnist_fc"));
const skipReal = real ? false : "SKIPPED: needs NETMEND_DATA with mnist/ and onnx/mnist_fc/";
const skip = browserPath ? false : "SKIPPED: needs chromium";
if (skip) console.log(skip);
else if (skipReal) console.log(skipReal);

function example(name, ...options) {
  const run = join(folder, name);
  execFileSync("/usr/bin/python3", [join(import.meta.dirname ?? new URL(".", import.meta.url).pathname, "example.py"), netmend, data, run, ...options], { stdio: ["ignore", "ignore", "inherit"] });
  return { path: draw(name), report: JSON.parse(readFileSync(join(run, "evidence.json"), "utf8")) };
}

const text = (page, selector) => page.locator(selector).first().textContent();
const left = async (page) => Number((await text(page, ".filters .count")).match(/^[\d,]+/)[0].replaceAll(",", ""));

describe("a real report", { skip: skip || skipReal }, () => {
  let path, report, rows;
  before(async () => {
    await start();
    ({ path, report } = example("real"));
    rows = report.inputs.id.map((_, row) => row).filter((row) => report.inputs.split[row] === 0);
  });

  it("stays small and paints at once", async () => {
    assert.ok(statSync(path).size < 15e6, `${statSync(path).size} bytes`);
    const times = [];
    for (let i = 0; i < 5; i++) {
      const page = await open(path);
      times.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime));
      await close(page);
    }
    console.log(`page ${(statSync(path).size / 1e6).toFixed(2)} MB, ${report.inputs.id.length} inputs; first contentful paint ${times.map(Math.round).join(", ")} ms`);
    assert.ok(Math.min(...times) < 1000, times.join());
  });

  it("shows everything that matters on the first screen", async () => {
    for (const hash of ["", "#class=9"]) {
      const page = await open(path, { hash });
      const bottom = await page.locator("#first").evaluate((e) => e.getBoundingClientRect().bottom);
      assert.ok(bottom <= 768, `first screen ends at ${bottom}`);
      assert.equal(await text(page, "#first h1"), report.verdict);
      assert.equal(await page.locator("#first .tile").count(), 4);
      assert.equal(await page.locator("#first .card").count(), 5);
      assert.equal(await page.locator("#first .card").first().locator("img").count(), 4);
      assert.equal(await page.locator("#first .card .copy").count(), 5);
      assert.match(await text(page, ".strip"), /10,000.*drift, training labels/s);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false);
      await close(page);
    }
  });

  it("draws every section with plots that have their three files", async () => {
    const page = await open(path);
    for (const id of ["failures", "classes", "data", "confidence", "network", "tests", "repair", "compare", "method"]) {
      assert.ok((await page.locator(`#${id} .body > *`).count()) > 0, id);
    }
    const figures = page.locator("figure");
    assert.ok((await figures.count()) >= 14, `${await figures.count()} plots`);
    const seen = new Set();
    for (let i = 0; i < (await figures.count()); i++) {
      const figure = figures.nth(i);
      const name = await figure.getAttribute("data-figure");
      assert.ok(!seen.has(name), `${name} twice`);
      seen.add(name);
      await figure.locator("svg").first().waitFor();
      const svg = await download(page, () => figure.locator(".file", { hasText: "SVG" }).click());
      assert.equal(svg.name, `${name}.svg`);
      const checked = await page.evaluate((source) => {
        const parsed = new DOMParser().parseFromString(source, "image/svg+xml");
        return { error: parsed.querySelector("parsererror")?.textContent, marks: parsed.querySelectorAll("rect,path,line,circle").length };
      }, svg.bytes.toString("utf8"));
      assert.equal(checked.error, undefined, name);
      assert.ok(checked.marks > 2, name);
      assert.ok(!svg.bytes.includes("var(--"), `${name} leaves colours to a style sheet`);
      const png = await download(page, () => figure.locator(".file", { hasText: "PNG" }).click());
      assert.equal(png.bytes.subarray(0, 8).toString("latin1"), "\x89PNG\r\n\x1a\n");
      assert.ok(png.bytes.readUInt32BE(16) > 300 && png.bytes.readUInt32BE(20) > 60 && png.bytes.length > 1000, `${name}: ${png.bytes.length} bytes`);
      const table = csv((await download(page, () => figure.locator(".file", { hasText: "CSV" }).click())).bytes);
      assert.ok(table.length > 0, name);
    }
    await close(page);
  });

  it("filters together, counts what is left, and comes back from the link", async () => {
    const { inputs } = report;
    const { label, predicted, slices } = inputs;
    const slice = report.slices.findIndex((s) => s.name === "writer=student");
    const page = await open(path);
    assert.equal(await left(page), rows.length);
    await page.getByRole("combobox", { name: "class" }).selectOption("4");
    await drawn(page);
    assert.equal(await left(page), rows.filter((r) => label[r] === 4).length);
    await page.getByRole("combobox", { name: "answer" }).selectOption("9");
    await page.getByRole("combobox", { name: "slice" }).selectOption("writer=student");
    await drawn(page);
    const expected = rows.filter((r) => label[r] === 4 && predicted[r] === 9 && slices[r].includes(slice));
    assert.ok(expected.length > 0);
    assert.equal(await left(page), expected.length);
    assert.equal(await page.locator("#failures .thumbs .thumb").count(), expected.length);
    for (const id of ["failures", "classes", "data", "confidence", "network", "tests", "repair", "compare"]) assert.match(await text(page, `#${id} .left`), new RegExp(`^${expected.length} of 10,000`));
    await page.getByRole("searchbox").fill(inputs.id[expected[0]]);
    await page.waitForTimeout(250);
    await drawn(page);
    assert.equal(await left(page), 1);
    const link = await page.evaluate(() => location.hash);
    const other = await open(path, { hash: link });
    assert.equal(await left(other), 1);
    assert.equal(await other.getByRole("combobox", { name: "slice" }).inputValue(), "writer=student");
    assert.equal(await other.getByRole("searchbox").inputValue(), inputs.id[expected[0]]);
    await other.getByRole("button", { name: "clear", exact: true }).click();
    await drawn(other);
    assert.equal(await left(other), rows.length);
    await close(other);
    await close(page);
  });

  it("filters by finding, by tile, by cell and by bar", async () => {
    const page = await open(path);
    const finding = report.findings[0];
    await page.getByRole("combobox", { name: "finding" }).selectOption(finding.id);
    await drawn(page);
    assert.equal(await left(page), finding.inputs.length);
    await page.locator(".tile", { hasText: "worst class" }).click();
    await drawn(page);
    const worst = report.tiles[1].filter.class;
    assert.equal(await page.getByRole("combobox", { name: "class" }).inputValue(), worst);
    assert.equal(await page.getByRole("combobox", { name: "finding" }).inputValue(), "");
    await page.getByRole("button", { name: "clear", exact: true }).click();
    await drawn(page);
    const [a, b, n] = report.confusion.filter(([x, y]) => x !== y).sort((x, y) => y[2] - x[2])[0];
    const cell = page.locator("#classes").getByRole("button", { name: new RegExp(`^${a} called ${b}: ${n} `) });
    await cell.focus();
    await page.keyboard.press("Enter");
    await drawn(page);
    assert.equal(await left(page), n);
    await cell.click();
    await drawn(page);
    assert.equal(await left(page), rows.length);
    await page.locator("#classes").getByRole("button", { name: /^thickness=bold:/ }).click();
    await drawn(page);
    assert.equal(await left(page), report.slices.find((s) => s.name === "thickness=bold").samples);
    await close(page);
  });

  it("exports the figures that it shows", async () => {
    const page = await open(path);
    const take = async (name) => csv((await download(page, () => page.locator(`figure[data-figure=${name}] .file`, { hasText: "CSV" }).click())).bytes);
    const cells = await take("confusion");
    assert.deepEqual(cells.map((c) => [Number(c.label), Number(c.answer), Number(c.count)]), report.confusion);
    const classes = await take("classes");
    assert.deepEqual(classes.map((c) => Number(c.value)), report.per_class.map((c) => c.value));
    // Filtered: the same as counting the rows.
    await page.getByRole("combobox", { name: "slice" }).selectOption("thickness=thin");
    await drawn(page);
    const slice = report.slices.findIndex((s) => s.name === "thickness=thin");
    const thin = rows.filter((r) => report.inputs.slices[r].includes(slice));
    for (const { label, answer, count } of await take("confusion")) {
      assert.equal(Number(count), thin.filter((r) => report.inputs.label[r] === Number(label) && report.inputs.predicted[r] === Number(answer)).length);
    }
    const bins = await take("confidence");
    assert.equal(bins.reduce((sum, b) => sum + Number(b.wrong), 0), thin.filter((r) => !report.inputs.right[r]).length);
    assert.equal(bins.reduce((sum, b) => sum + Number(b.right), 0), thin.filter((r) => report.inputs.right[r]).length);
    await close(page);
  });

  it("lists failures worst first, and exports what is ticked", async () => {
    const { inputs } = report;
    const page = await open(path);
    const wrong = rows.filter((r) => inputs.right[r] === 0).sort((x, y) => inputs.loss[y] - inputs.loss[x]);
    const all = csv((await download(page, () => page.getByRole("button", { name: "all of these as CSV" }).click())).bytes);
    assert.equal(all.length, wrong.length);
    assert.deepEqual(all.map((r) => Number(r.loss)), wrong.map((r) => inputs.loss[r]));
    await page.locator("#failures").getByRole("button", { name: "table", exact: true }).click();
    await drawn(page);
    const ticks = page.locator("#failures tbody input[type=checkbox]");
    await ticks.nth(0).check();
    await ticks.nth(2).check();
    const ids = csv((await download(page, () => page.getByRole("button", { name: "ids as CSV" }).click())).bytes);
    assert.deepEqual(new Set(ids.map((r) => r.id)), new Set([all[0].id, all[2].id]));
    for (const row of ids) {
      const at = inputs.id.indexOf(row.id);
      assert.deepEqual([row.split, Number(row.sample), Number(row.label), Number(row.predicted), Number(row.confidence)], ["test", inputs.sample[at], inputs.label[at], inputs.predicted[at], inputs.confidence[at]]);
    }
    const labels = csv((await download(page, () => page.getByRole("button", { name: "mislabelled as CSV" }).click())).bytes);
    assert.deepEqual(labels.map((r) => [r.given, r.likely]), ids.map((r) => [r.label, r.predicted]));
    await page.locator("#failures").getByRole("button", { name: "by pair" }).click();
    await drawn(page);
    assert.equal(await page.locator("#failures h3.group").count(), new Set(wrong.map((r) => `${inputs.label[r]} ${inputs.predicted[r]}`)).size);
    await page.locator("#failures").getByRole("button", { name: "by cluster" }).click();
    await drawn(page);
    assert.equal(await page.locator("#failures h3.group").count(), new Set(wrong.map((r) => inputs.cluster[r])).size);
    assert.match(await page.evaluate(() => location.hash), /failures\.group=cluster.*failures\.view=table/);
    await close(page);
  });

  it("opens one input in full, by keyboard too", async () => {
    const page = await open(path);
    await page.locator("#failures .thumb").first().focus();
    await page.keyboard.press("Enter");
    const dialog = page.locator("dialog[open]");
    const title = await text(page, "dialog[open] h3");
    assert.ok((await dialog.locator(".answers li").count()) === 5);
    assert.equal(await dialog.locator(".heat").count(), 1);
    assert.match(await dialog.textContent(), /Nearest that are right.*Nearest that are wrong/s);
    await page.keyboard.press("ArrowRight");
    assert.notEqual(await text(page, "dialog[open] h3"), title);
    await page.keyboard.press("ArrowLeft");
    assert.equal(await text(page, "dialog[open] h3"), title);
    await page.keyboard.press("Escape");
    assert.equal(await dialog.count(), 0);
    await page.locator(".card h3 button").first().click();
    assert.match(await dialog.textContent(), /Inputs that show it.*netmend failures.*netmend accept/s);
    await close(page);
  });

  it("says what a threshold would do, for all and for groups", async () => {
    const { inputs } = report;
    const page = await open(path, { hash: "#confidence.threshold=0.9" });
    const kept = rows.filter((r) => inputs.confidence[r] >= 0.9);
    const right = kept.filter((r) => inputs.right[r]).length;
    const facts = await text(page, "#confidence .facts");
    assert.ok(facts.includes(`${((100 * right) / kept.length).toFixed(1)} %`), facts);
    assert.ok(facts.includes(`${((100 * kept.length) / rows.length).toFixed(1)} %`), facts);
    assert.ok(facts.includes(`${kept.length - right}wrong`), facts);
    const bold = kept.filter((r) => inputs.groups.thickness.of[r] === 2);
    const line = await page.locator("#confidence tr", { hasText: "thickness=bold" }).textContent();
    assert.ok(line.includes(`${((100 * bold.filter((r) => inputs.right[r]).length) / bold.length).toFixed(1)} %`), line);
    await page.getByRole("slider").fill("0");
    assert.ok((await text(page, "#confidence .facts")).includes("100.0 %of inputs"));
    await close(page);
  });

  it("goes from the network to a layer, a unit and its inputs", async () => {
    const page = await open(path);
    const layer = page.locator("#network").getByRole("button", { name: /^dense4: / });
    await layer.focus();
    await page.keyboard.press("Enter");
    await drawn(page);
    const worst = report.network.units.filter((u) => u.layer === 3).sort((x, y) => y.blame - x.blame)[0];
    await page.locator("figure[data-figure=layer]").getByRole("button", { name: new RegExp(`^${worst.name}: `) }).click();
    await drawn(page);
    assert.equal(await page.locator("figure[data-figure=unit] svg").count(), 1);
    assert.equal(await page.locator("figure[data-figure=unit-classes] svg").count(), 1);
    assert.equal(await page.locator("#network .thumbs .thumb").count(), worst.drivers.length);
    await page.locator("#network").getByRole("button", { name: "list", exact: true }).click();
    await drawn(page);
    await page.locator("#network tbody").first().getByRole("button", { name: "dense2" }).press("Enter");
    await drawn(page);
    assert.match(await page.locator("#network table").nth(1).textContent(), /dense2\//);
    await close(page);
  });

  it("is light or dark, as the system has it or as one likes", async () => {
    const page = await open(path, { scheme: "dark" });
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await background();
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
    await page.getByRole("button", { name: "light or dark" }).click();
    assert.notEqual(await background(), dark);
    await page.getByRole("button", { name: "light or dark" }).click();
    await page.evaluate(() => localStorage.clear());
    await close(page);
  });

  it("fits narrow screens", async () => {
    const page = await open(path, { width: 420, height: 900 });
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false);
    await close(page);
  });

  it("is quiet when there is nothing to say", async () => {
    const healthy = example("healthy", "--healthy");
    const page = await open(healthy.path);
    assert.equal(await page.locator(".card").count(), 0);
    assert.match(await text(page, ".quiet"), /No findings/);
    for (const id of ["repair", "compare", "data"]) assert.equal(await page.locator(`#${id}`).count(), 0, id);
    assert.match(await text(page, ".strip"), /6 checks found nothing/);
    await close(page);
  });

  it("keeps hostile names as text", async () => {
    const hostile = example("hostile", "--hostile");
    const page = await open(hostile.path);
    const { findings, classes, inputs } = hostile.report;
    assert.ok(classes.some((name) => name.includes("<script>")));
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.ok((await text(page, ".card h3 button")).includes(findings[0].where.slice(0, 20)));
    await page.locator(".card h3 button").first().click();
    await page.keyboard.press("Escape");
    const evil = classes.find((name) => name.includes("<script>"));
    await page.getByRole("combobox", { name: "class" }).selectOption(evil);
    await drawn(page);
    assert.equal(await left(page), inputs.label.filter((l, r) => inputs.split[r] === 0 && classes[l] === evil).length);
    await page.getByRole("combobox", { name: "slice" }).selectOption(hostile.report.slices[0].name);
    await drawn(page);
    const again = await open(hostile.path, { hash: await page.evaluate(() => location.hash) });
    assert.equal(await again.getByRole("combobox", { name: "class" }).inputValue(), evil);
    await again.getByRole("button", { name: "clear", exact: true }).click();
    await drawn(again);
    const all = csv((await download(again, () => again.getByRole("button", { name: "all of these as CSV" }).click())).bytes);
    for (const id of inputs.id.filter((name) => /script|cmd/.test(name))) assert.ok(all.some((row) => row.id === id), id);
    const svg = (await download(again, () => again.locator("figure[data-figure=confusion] .file", { hasText: "SVG" }).click())).bytes.toString("utf8");
    assert.ok(!/<script>window/.test(svg));
    await again.locator("#failures .thumb").first().click();
    assert.equal(await again.evaluate(() => window.hacked), undefined);
    await close(again);
    await close(page);
  });
});

describe("any report", { skip }, () => {
  before(() => (real ? undefined : start()));
  after(stop);

  it("draws the smallest one", async () => {
    const page = await open(draw("smallest", smallest()));
    assert.equal(await text(page, "h1"), "Fine.");
    assert.deepEqual(await page.locator("main > section").evaluateAll((all) => all.map((e) => e.id)), ["first", "method"]);
    assert.equal(await page.locator(".filters").count(), 0);
    await close(page);
  });

  it("draws what is there when much is missing or of the wrong kind", async () => {
    const bare = { format: "netmend.report/1", run: {}, verdict: "Bare.", findings: [{ id: "a" }, 7, null], skipped: [] };
    let page = await open(draw("bare", bare));
    assert.equal(await page.locator(".card").count(), 1);
    await page.locator(".card h3 button").click();
    await close(page);
    const parts = { ...bare, classes: ["a"], inputs: { id: ["x", "y"] }, confidence: {}, data: { splits: 3 }, network: { layers: [{ name: "l", units: 2, dead: 1 }] }, tests: {}, repair: "no", compare: { reference: "r", change: {} }, slices: 4, per_class: null };
    page = await open(draw("parts", parts));
    assert.deepEqual(await page.locator("main > section").evaluateAll((all) => all.map((e) => e.id)), ["first", "failures", "network", "compare", "method"]);
    await close(page);
  });

  it("fits the first screen when there is much to say", async () => {
    const report = smallest();
    const long = "a name that goes on and on and does not come to an end for a long time, and then some more of it";
    report.verdict = `Weak in many places: ${long}; ${long}; ${long}.`;
    report.run.model = { name: `/some/where/${long}.onnx`, checksum: "", layers: 22, units: 794, weights: 271690 };
    report.run.data = [{ split: "test", spec: "x", size: 10000, used: 10000 }, { split: "train", spec: "x", size: 50000, used: 50000 }];
    report.classes = [long, "b"];
    report.inputs = inputsOf(40, (row) => ({ label: row % 2, predicted: 1, id: `${long}${row}` }));
    report.tiles = Array.from({ length: 4 }, () => ({ name: long, value: "91.3 %", detail: long, change: "+0.3 points", filter: {} }));
    report.findings = Array.from({ length: 9 }, (_, i) => ({ id: `weak-class:${i}`, kind: "weak-class", where: String(i), level: "serious", sureness: "likely", title: long, brief: long, evidence: long, meaning: long, fault: "", gain: 0, value: 0, next: [long], inputs: [0, 1, 2, 3, 4].map((sample) => ({ split: "test", sample, id: "" })), numbers: {}, related: [] }));
    report.passed = Array.from({ length: 20 }, () => ({ what: long, value: long }));
    report.skipped = Array.from({ length: 12 }, () => ({ what: long, enable: long }));
    report.accepted = [report.findings[0]];
    report.preflight.lines = Array.from({ length: 5 }, () => ({ text: long, holds: true }));
    const page = await open(draw("much", report));
    const bottom = await page.locator("#first").evaluate((e) => e.getBoundingClientRect().bottom);
    assert.ok(bottom <= 768, `first screen ends at ${bottom}`);
    assert.equal(await page.locator(".card").count(), 5);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false);
    await page.getByRole("button", { name: "+ 4 more findings" }).click();
    assert.equal(await page.locator(".card").count(), 9);
    await close(page);
  });

  it("shows a blocker with the set-ups that were tried", async () => {
    const report = smallest();
    report.preflight = { lines: [{ text: "accuracy 10 %", holds: false }], tried: [{ words: "scale 1/255", line: "input.x.scale = \"1/255\"", accuracy: { value: 0.918, low: 0.89, high: 0.94 } }] };
    report.findings = [{ id: "preprocessing:scale", kind: "preprocessing", where: "scale", level: "blocker", sureness: "sure", title: "Not scaled as in training.", brief: "", evidence: "10 %.", meaning: "", fault: "", gain: 0, value: 0, next: ["netmend check"], inputs: [], numbers: {}, related: [] }];
    const page = await open(draw("blocker", report));
    assert.match(await text(page, ".tried"), /scale 1\/255.*91\.8 %.*input\.x\.scale/s);
    assert.equal(await page.locator(".card.blocker").count(), 1);
    await close(page);
  });

  it("lists the worst pairs of many classes", async () => {
    const report = smallest();
    const names = Array.from({ length: 10000 }, (_, i) => `class ${i}`);
    report.classes = names;
    report.run.data = [{ split: "test", spec: "x", size: 500, used: 500 }];
    report.inputs = inputsOf(500, (row) => ({ label: row, predicted: row % 3 ? row : (row + 7) % 500 }));
    report.confusion = report.inputs.label.map((label, row) => [label, report.inputs.predicted[row], 1]);
    report.per_class = names.map((name) => ({ name, samples: 1, correct: 1, predicted: 1, precision: 1, value: 1, low: 0.2, high: 1 }));
    const page = await open(draw("many", report));
    assert.equal(await page.locator("figure[data-figure=confusion] .marks-pairs rect").count(), 30);
    assert.ok((await page.locator("figure[data-figure=classes] .marks-shares rect").count()) <= 30);
    await page.getByRole("combobox", { name: "class" }).fill("class 3");
    await page.keyboard.press("Tab");
    await drawn(page);
    assert.equal(await left(page), 1);
    await close(page);
  });

  it("folds repeated blocks and never draws more than 200 boxes", async () => {
    const layer = (name, from) => ({ name, kind: "Conv", shape: "N×8", units: 8, weights: 72, dead: 0, blame: 0.1, importance: 0.5, untested: 0, from });
    const folded = smallest();
    const names = ["stem", ..."123".split("").flatMap((b) => "012".split("").flatMap((i) => [`layer${b}.${i}.conv1`, `layer${b}.${i}.conv2`])), "fc"];
    folded.network = { layers: names.map((name, i) => layer(name, i ? [names[i - 1]] : [])), units: [] };
    let page = await open(draw("folded", folded));
    assert.equal(await page.locator("#network .box").count(), 5);
    assert.match(await text(page, "#network svg"), /layer1 ×3/);
    await page.locator("#network").getByRole("button", { name: /^layer2 ×3/ }).click();
    await drawn(page);
    assert.equal(await page.locator("#network .box").count(), 10);
    await close(page);
    const long = smallest();
    long.network = { layers: Array.from({ length: 1500 }, (_, i) => layer(`conv${i}`, i ? [`conv${i - 1}`] : [])), units: [] };
    page = await open(draw("long", long));
    const boxes = await page.locator("#network .box").count();
    assert.ok(boxes > 100 && boxes <= 200, `${boxes} boxes`);
    await close(page);
  });

  it("counts right inputs that are not in the page through those that are", async () => {
    const report = smallest();
    report.classes = ["a", "b"];
    report.run.data = [{ split: "test", spec: "x", size: 1000, used: 1000 }];
    report.inputs = inputsOf(100, (row) => ({ label: row % 2, predicted: row < 10 ? 1 - (row % 2) : row % 2 }));
    report.inputs.left_out = 900;
    report.confusion = [[0, 0, 495], [0, 1, 5], [1, 1, 495], [1, 0, 5]];
    report.per_class = ["a", "b"].map((name) => ({ name, samples: 500, correct: 495, predicted: 500, precision: 0.99, value: 0.99, low: 0.97, high: 1 }));
    const page = await open(draw("sampled", report), { hash: "#class=a" });
    const cells = csv((await download(page, () => page.locator("figure[data-figure=confusion] .file", { hasText: "CSV" }).click())).bytes);
    assert.deepEqual(cells.map((c) => [c.answer, Number(c.count)]).sort(), [["a", 495], ["b", 5]]);
    assert.match(await text(page, "#failures"), /900 inputs that were answered rightly are not in this page/);
    await close(page);
  });

  it("shows numbers, texts and inputs without labels", async () => {
    const report = smallest();
    report.task = "number";
    report.run.data = [{ split: "test", spec: "x", size: 20, used: 20 }];
    report.inputs = inputsOf(20, (row) => ({ label: row / 2, predicted: row / 2 + 0.1 }));
    report.inputs.texts = { 0: "<b>a sentence</b>" };
    let page = await open(draw("numbers", report));
    assert.match(await text(page, "#failures"), /<b>a sentence<\/b>/);
    await close(page);
    report.task = "none";
    report.inputs.label = report.inputs.label.map(() => null);
    report.inputs.right = report.inputs.right.map(() => null);
    page = await open(draw("unlabelled", report), { hash: "#failures.view=table" });
    assert.equal(await text(page, "#failures h2"), "Inputs");
    assert.equal(await page.locator("#failures tbody tr").count(), 20);
    await close(page);
  });

  it("cannot be made to ask for anything", async () => {
    const report = smallest();
    report.classes = ["a", "b"];
    report.run.data = [{ split: "test", spec: "x", size: 3, used: 3 }];
    report.inputs = inputsOf(3, () => ({ label: 0, predicted: 1 }));
    report.inputs.pictures = { 0: "http://127.0.0.1:9/a.png", 1: "javascript:alert(1)", 2: "data:image/svg+xml;base64,PHN2Zy8+" };
    const page = await open(draw("addresses", report));
    assert.equal(await page.locator("#failures .thumb").count(), 3);
    assert.equal(await page.locator("img").count(), 0);
    assert.deepEqual(page.troubles, []);
    const tried = await page.evaluate(() => {
      const image = new Image();
      image.src = "http://127.0.0.1:9/b.png";
      const script = document.createElement("script");
      script.textContent = "window.hacked = 5";
      document.body.append(image, script);
      return fetch("http://127.0.0.1:9/").then(() => "sent", () => "refused");
    });
    await page.waitForTimeout(200);
    assert.equal(tried, "refused");
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    for (const refused of [/b\.png.*Content Security Policy|Content Security Policy.*b\.png/s, /inline script.*Content Security Policy/s, /(connect|fetch).*Content Security Policy|Content Security Policy.*connect/is]) {
      assert.ok(page.troubles.some((t) => refused.test(t)), `${refused}: ${page.troubles.join("\n")}`);
    }
    // The browser tells of the picture before it refuses it.
    assert.deepEqual(page.troubles.filter((t) => t.startsWith("request:")), ["request: http://127.0.0.1:9/b.png"]);
    assert.deepEqual(page.failed, ["http://127.0.0.1:9/b.png csp"]);
    await page.close();
  });

  it("does not believe addresses", async () => {
    const page = await open(draw("address", smallest()), { hash: "#class=%00<script>&__proto__.x=1&failures.view=<b>&confidence.threshold=zzz" });
    assert.equal(await text(page, "h1"), "Fine.");
    await close(page);
  });
});
