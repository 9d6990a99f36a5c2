// A finding as a card, and in full.
import { button, command, copyButton, guarded, h, replace, type Child } from "./dom";
import { number } from "./format";
import { gallery, predictionWords, shown, thumb } from "./input_view";
import type { Finding } from "../generated/evidence";
import type { Store } from "./store";
import type { Detail } from "./detail";

const certaintyWords = { confirmed: "counted, or confirmed on held-out data", likely: "tested on inputs that were not used to find it, or stable over resamples", possible: "look before you act" };

export class FindingDialog {
  private readonly dialog = h("dialog", { class: "detail", "aria-label": "A finding" });

  constructor(private readonly store: Store, private readonly detail: Detail) {
    this.dialog.addEventListener("click", (event) => event.target === this.dialog && this.dialog.close());
    document.body.append(this.dialog);
  }

  open(finding: Finding): void {
    replace(this.dialog,
      h("header", {}, h("span", { class: `level ${finding.level}` }, finding.level), h("h3", {}, finding.title), h("span", { class: "grow" }),
        button("close", () => this.dialog.close(), { class: "small", autofocus: true })),
      guarded("This finding", () => this.content(finding)));
    this.dialog.showModal();
  }

  private content(finding: Finding): Child {
    const { store } = this;
    const rows = store.findingRows(finding.id);
    const numbers = Object.entries(finding.numbers).filter(([, value]) => typeof value === "number" || typeof value === "string");
    return [
      h("p", { class: "id" }, finding.id),
      h("p", {}, finding.evidence),
      finding.meaning ? h("p", {}, finding.meaning) : null,
      rows.length ? h("div", {}, h("h4", {}, "Inputs that show it"), gallery(store, rows.slice(0, 24), (r) => this.detail.open(r, rows)),
        button("filter the page to these", () => { this.dialog.close(); store.set({ finding: finding.id }, true); document.getElementById("failures")?.scrollIntoView(); }, { class: "small" })) : null,
      typeof finding.numbers.plot === "string" ? button("show the plot", () => { this.dialog.close(); showPlot(String(finding.numbers.plot)); }, { class: "small" }) : null,
      finding.next.length ? h("div", {}, h("h4", {}, "Next"), finding.next.map(command)) : null,
      h("h4", {}, "More"),
      h("dl", {}, h("dt", {}, "certainty"), h("dd", {}, `${finding.certainty}: ${certaintyWords[finding.certainty]}`),
        finding.fault ? [h("dt", {}, "fault"), h("dd", {}, finding.fault)] : null,
        finding.related.length ? [h("dt", {}, "merged findings"), h("dd", {}, finding.related.join(", "))] : null,
        numbers.map(([name, value]) => [h("dt", {}, name), h("dd", {}, typeof value === "number" ? number(value) : String(value))]),
        finding.accepted ? [h("dt", {}, "accepted"), h("dd", {}, finding.accepted.reason + (finding.accepted.until ? `, until ${finding.accepted.until}` : ""))] : null),
      finding.accepted ? null : [h("h4", {}, "To accept this finding"), command(`netmend accept ${quoted(finding.id)} --reason "…"`)]];
  }
}

/// The figure of that name, where the page has it.
function showPlot(name: string): void {
  for (const one of document.querySelectorAll<HTMLElement>("figure[data-figure]")) if (one.dataset.figure === name) return one.scrollIntoView({ block: "center" });
}

const longestExample = 150;

/// One input in words, the first that is short enough to stand on a card; the dialog has all of them.
function example(store: Store, rows: number[], detail: Detail): HTMLElement | null {
  const words = (row: number) => shown(store, row).textContent!;
  const row = rows.find((one) => words(one).length <= longestExample);
  if (row === undefined) return null;
  return h("p", { class: "example" }, "for example ", button(words(row), () => detail.open(row, rows), { class: "link", title: "open this input" }), ` (${predictionWords(store, row)})`);
}

/// As one word for a shell.
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`;
}

export function card(store: Store, finding: Finding, dialog: FindingDialog, detail: Detail): HTMLElement {
  const rows = store.findingRows(finding.id);
  return h("article", { class: `card ${finding.level}` },
    h("div", { class: "says" },
      h("h3", {}, h("span", { class: `level ${finding.level}` }, finding.level), button(finding.title, () => dialog.open(finding), { class: "link", title: `${finding.id}: show all evidence` })),
      h("p", { class: "evidence" }, finding.brief || finding.evidence),
      store.isRead ? example(store, rows, detail) : null),
    store.isRead ? h("span", {}) : h("div", { class: "four" }, rows.slice(0, 4).map((row) => thumb(store, row, (r) => detail.open(r, rows), false))),
    h("div", { class: "does" }, h("span", { class: `certainty ${finding.certainty}`, title: `certainty: ${certaintyWords[finding.certainty]}` }, finding.certainty),
      finding.next.length ? copyButton(finding.next[0], "copy next command") : null));
}
