// Reads the document that stands in the page and draws it: the first screen at once, the sections after it.
import "./style.css";
import { classes } from "./classes";
import { compare } from "./compare";
import { confidence } from "./confidence";
import { data } from "./data";
import { Detail } from "./detail";
import { button, h } from "./dom";
import { failures } from "./failures";
import { featureMap } from "./feature_map";
import { filterBar } from "./filter_bar";
import { FindingDialog } from "./finding_view";
import { firstScreen } from "./first";
import { fileName } from "./format";
import { latency } from "./latency";
import { method } from "./method";
import { network } from "./network";
import { normalise } from "./normalise";
import { repair } from "./repair";
import type { Report } from "../generated/evidence";
import type { Section } from "./section";
import { Store } from "./store";
import { tests } from "./tests";
import { startTheme } from "./theme";

function read(): Report | string {
  try {
    return normalise(JSON.parse(document.getElementById("report")!.textContent!));
  } catch {
    return "There is no report in this page; netmend open draws it again.";
  }
}

/// One section that cannot be drawn must not take the others with it.
function update(section: Section): void {
  try {
    section.update();
  } catch (error) {
    console.error(`${section.title} could not be drawn:`, error);
    section.element.querySelector(".body")?.replaceChildren("This section could not be drawn.");
  }
}

/// Redraws sections a few milliseconds at a time, those that can be seen first.
function scheduler(sections: Section[]): () => void {
  let queue: Section[] = [];
  let running = false;
  const step = () => {
    const until = performance.now() + 12;
    while (queue.length && performance.now() < until) update(queue.shift()!);
    if (queue.length) setTimeout(step, 0);
    else {
      running = false;
      document.documentElement.dataset.drawn = "yes";
    }
  };
  return () => {
    document.documentElement.dataset.drawn = "no";
    const distance = (section: Section) => {
      const box = section.element.getBoundingClientRect();
      return box.top > innerHeight ? box.top - innerHeight : box.bottom < 0 ? -box.bottom : 0;
    };
    queue = sections.map((section) => ({ section, far: distance(section) })).sort((a, b) => a.far - b.far).map((s) => s.section);
    if (!running) setTimeout(step, 0);
    running = true;
  };
}

function draw(report: Report): void {
  document.title = `${fileName(report.run.model.name)}: netmend`;
  const store = new Store(report);
  document.documentElement.dataset.shows = store.shows; // what is read needs more room than what is looked at
  let sections: Section[] = [];
  const detail = new Detail(store, () => sections.find((s) => s.id === "failures")?.update());
  const dialog = new FindingDialog(store, detail);
  sections = [failures(store, detail), featureMap(store, detail), classes(store), data(store, detail), confidence(store), network(store, detail), tests(store, detail), repair(store, detail), compare(store, detail), latency(store), method(store)]
    .filter((section): section is Section => section !== null);
  const theme = startTheme();
  const go = (id: string) => (event: Event) => {
    event.preventDefault(); // the address belongs to the filter
    document.getElementById(id)?.scrollIntoView();
  };
  document.getElementById("page")!.append(
    h("div", { class: "top" },
      h("div", { class: "head" }, h("span", { class: "brand" }, "netmend"), h("span", { class: "model", title: report.run.model.name }, fileName(report.run.model.name)),
        h("nav", { "aria-label": "Sections" }, sections.map((s) => h("a", { href: `#${s.id}`, onclick: go(s.id) }, s.title))),
        button(theme.label(), () => undefined, { class: "small theme", "aria-label": "light or dark", onclick: theme.turn })),
      filterBar(store)),
    h("main", {}, firstScreen(store, dialog, detail), sections.map((s) => s.element),
      h("footer", {}, `netmend ${report.run.version} · ${report.run.started} · nothing in this page leaves your machine`)));
  const refresh = scheduler(sections);
  store.onChange(refresh);
  requestAnimationFrame(() => setTimeout(refresh, 0)); // after the first screen is painted
}

const report = read();
if (typeof report === "string") document.getElementById("page")!.append(h("main", {}, h("h1", {}, report)));
else draw(report);
