// Reads the document that stands in the page and draws it: the first screen at once, the sections after it.
import "./style.css";
import { classes } from "./classes";
import { compare } from "./compare";
import { confidence } from "./confidence";
import { data } from "./data";
import { Detail } from "./detail";
import { button, guarded, h, replace, type Child } from "./dom";
import { atFrame, hold, release, settle } from "./drawn";
import { failures } from "./failures";
import { featureMap } from "./feature_map";
import { filterBar } from "./filter_bar";
import { FindingDialog } from "./finding_view";
import { firstScreen } from "./first";
import { fileName } from "./format";
import { latency } from "./latency";
import { method } from "./method";
import { network } from "./network";
import { normalise, type Reading } from "./normalise";
import { repair } from "./repair";
import { section, type Section } from "./section";
import { Store } from "./store";
import { tests } from "./tests";
import { startTheme } from "./theme";
import { training } from "./training";

function read(): Reading | string {
  try {
    return normalise(JSON.parse(document.getElementById("report")!.textContent!));
  } catch {
    return "This page contains no report; netmend open writes it again.";
  }
}

/// Redraws sections a few milliseconds at a time, those that can be seen first.
function scheduler(sections: Section[]): () => void {
  let queue: Section[] = [];
  let running = false;
  const step = () => {
    const until = performance.now() + 12;
    while (queue.length && performance.now() < until) queue.shift()!.update();
    if (queue.length) setTimeout(step, 0);
    else {
      running = false;
      release();
    }
  };
  return () => {
    hold();
    const distance = (section: Section) => {
      const box = section.element.getBoundingClientRect();
      return box.top > innerHeight ? box.top - innerHeight : box.bottom < 0 ? -box.bottom : 0;
    };
    queue = sections.map((section) => ({ section, far: distance(section) })).sort((a, b) => a.far - b.far).map((s) => s.section);
    if (!running) setTimeout(step, 0);
    running = true;
  };
}

/// Where a section cannot even be begun, its heading stands with a sentence under it.
function begun(store: Store, title: string, make: () => Section | null): Section | null {
  try {
    return make();
  } catch (error) {
    return section(store, title.toLowerCase(), title, "", () => { throw error; });
  }
}

function draw({ report, unread }: Reading): Child {
  document.title = `${fileName(report.run.model.name)}: netmend`;
  const store = new Store(report);
  document.documentElement.dataset.shows = store.shows; // what is read needs more room than what is looked at
  let sections: Section[] = [];
  const detail = new Detail(store, () => sections.find((s) => s.id === "failures")?.update());
  const dialog = new FindingDialog(store, detail);
  const makers: [string, () => Section | null][] = [
    ["Failures", () => failures(store, detail)], ["Map", () => featureMap(store, detail)], ["Classes", () => classes(store)], ["Data", () => data(store, detail)], ["Confidence", () => confidence(store)],
    ["Network", () => network(store, detail)], ["Tests", () => tests(store, detail)], ["Repair", () => repair(store, detail)], ["Compare", () => compare(store, detail)], ["Training", () => training(store)], ["Latency", () => latency(store)], ["Method", () => method(store)],
  ];
  sections = makers.map(([title, make]) => begun(store, title, make)).filter((one): one is Section => one !== null);
  const theme = startTheme();
  const go = (id: string) => (event: Event) => {
    event.preventDefault(); // the address belongs to the filter
    document.getElementById(id)?.scrollIntoView();
  };
  const refresh = scheduler(sections);
  store.onChange(refresh);
  hold();
  atFrame(() => setTimeout(refresh, 0)); // after the first screen is painted
  return [
    h("div", { class: "top" },
      h("div", { class: "head" }, h("span", { class: "brand" }, "netmend"), h("span", { class: "model", title: report.run.model.name }, fileName(report.run.model.name)),
        h("nav", { "aria-label": "Sections" }, sections.map((s) => h("a", { href: `#${s.id}`, onclick: go(s.id) }, s.title))),
        button(theme.label(), () => undefined, { class: "small theme", "aria-label": "light or dark", onclick: theme.turn })),
      guarded("The filter", () => filterBar(store))),
    h("main", {}, firstScreen(store, dialog, detail, unread), sections.map((s) => s.element),
      h("footer", {}, `netmend ${report.run.version} · ${report.run.started} · nothing in this page leaves your machine`))];
}

const reading = read();
replace(document.getElementById("page")!, typeof reading === "string" ? h("main", {}, h("h1", {}, reading)) : guarded("This report", () => draw(reading)));
settle();
