// Documents that mean harm or make no sense, and a page that is used by somebody who presses everything.

/// Words that would ask, act or go elsewhere if a page took them for anything but text.
export const acts = [
  "<img src=http://127.0.0.1:9/a.png onerror=window.hacked=1>", "</script><script>window.hacked=2</script>", "javascript:window.hacked=3", "http://127.0.0.1:9/b.css",
  `"><svg onload=window.hacked=4>`, "url(http://127.0.0.1:9/c.png)", "');window.hacked=5;('", "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>", "<iframe srcdoc='<script>top.hacked=6</script>'></iframe>",
  "data:text/html,<script>window.hacked=7</script>", "{{constructor.constructor('window.hacked=8')()}}", "__proto__", "\u202e\u0000\u001b[31m\ud800",
];
/// The same and values of every other kind. `{ __proto__: … }` is a field of that name once it has been JSON.
export const odd = [null, -1, 1e308, -1e308, 0.5, 7, true, "", [], {}, [null], [[]], [{}], JSON.parse('{"__proto__":[1],"x":[1]}'), ...acts];

/// Every field that a document has, lists counted as one: `.findings[].title`.
export function fieldsOf(value, path = "", all = new Set()) {
  if (path) all.add(path);
  if (Array.isArray(value)) value.slice(0, 50).forEach((one) => fieldsOf(one, `${path}[]`, all));
  else if (value && typeof value === "object") for (const [name, one] of Object.entries(value)) fieldsOf(one, `${path}.${/^\d+$/.test(name) ? "#" : name}`, all);
  return all;
}

/// The document with all values of a field replaced.
export function withField(value, field, make, path = "") {
  if (path && path === field) return make();
  if (Array.isArray(value)) return value.map((one) => withField(one, field, make, `${path}[]`));
  if (!value || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withField(one, field, make, `${path}.${/^\d+$/.test(name) ? "#" : name}`)]));
}

export function everyText(value, make) {
  if (typeof value === "string") return make(value);
  if (Array.isArray(value)) return value.map((one) => everyText(one, make));
  return value && typeof value === "object" ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, everyText(one, make)])) : value;
}

/// Numbers 0 … 1 that are the same in every run.
export function random(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/// A copy with single entries damaged anywhere, each with this probability: replaced, left out, doubled.
export function damaged(value, chance, next) {
  if (next() < chance) return odd[Math.floor(next() * odd.length)];
  if (Array.isArray(value)) {
    const list = value.map((one) => damaged(one, chance, next));
    if (next() < chance) list.splice(Math.floor(next() * list.length), 1);
    if (next() < chance && list.length) list.push(list[0]);
    return list;
  }
  if (!value || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).filter(() => next() >= chance / 2).map(([name, one]) => [name, damaged(one, chance, next)]));
}

/// For `addInitScript`: what is saved goes nowhere, since a browser lets through few files a second; where it would go is kept.
export function saveNothing() {
  window.saved = [];
  HTMLAnchorElement.prototype.click = function () { window.saved.push(this.href); };
}

/// Presses one button and one mark of every kind, chooses in every list, and tells what became of the page.
export async function use(page) {
  await page.evaluate(() => {
    const closed = () => document.querySelectorAll("dialog[open]").forEach((dialog) => dialog.close());
    const pressed = new Set();
    const press = (all) => {
      for (const one of all) {
        const kind = [one.closest("section")?.id, one.closest("figure")?.dataset.figure, one.tagName, one.getAttribute("class"), one.matches(".thumb, .clickable, td *") || one.textContent].join();
        if (!one.isConnected || one.disabled || one.textContent === "PNG" || pressed.has(kind)) continue;
        pressed.add(kind);
        one.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
        const dialog = [...document.querySelectorAll("dialog[open]")].pop();
        for (const inner of ["button[aria-label]:enabled", "button[aria-expanded]", ".thumb", ".copy"]) dialog?.querySelector(inner)?.click();
        closed();
      }
    };
    document.querySelectorAll("details").forEach((one) => (one.open = true));
    [...document.querySelectorAll(".file")].find((one) => one.textContent === "PNG")?.click();
    press(document.querySelectorAll(".file")); // before anything is drawn again
    press(document.querySelectorAll("main button, .clickable, .top button"));
    for (const list of document.querySelectorAll("select")) {
      list.selectedIndex = list.options.length - 1;
      list.dispatchEvent(new Event("change", { bubbles: true }));
    }
    document.querySelectorAll("input[type=checkbox], input[type=range]").forEach((one) => one.click());
  });
  await page.waitForSelector("html[data-drawn=yes]", { state: "attached" });
  return page.evaluate(() => ({
    hacked: window.hacked,
    strange: [...document.querySelectorAll("iframe, object, embed, form[action], base, link, meta[http-equiv=refresh], body script:not(#report) ~ script, a:not([href^='#']), img:not([src^='data:image/png;base64,']):not([src^='data:image/jpeg;base64,'])")]
      .concat([...document.querySelectorAll("*")].filter((one) => [...one.attributes].some(({ name }) => name.startsWith("on")))).map((one) => one.outerHTML.slice(0, 200)),
    saved: window.saved.filter((href) => !href.startsWith("blob:")),
  }));
}

/// What a sound page of the same report has: its sections with something in each, its tiles and its cards.
export const shapeOf = (page) => page.evaluate(() => ({
  sections: [...document.querySelectorAll("main > section:not(#first)")].filter((one) => one.querySelector(".body > *")).map((one) => one.id),
  verdict: document.querySelector("h1")?.textContent,
  tiles: document.querySelectorAll(".tile").length, cards: document.querySelectorAll(".card").length,
  unread: document.querySelector(".unread summary")?.textContent ?? null,
  failed: [...document.querySelectorAll(".failed")].map((one) => one.textContent),
}));

/// The parts of a document that a section is drawn from.
export const partsOf = {
  failures: ["inputs"], map: ["map", "inputs"], classes: ["classes", "confusion", "per_class", "slices"], data: ["data"], confidence: ["confidence"],
  network: ["network"], tests: ["tests"], repair: ["repair"], compare: ["compare"], latency: ["latency"], method: [],
};
