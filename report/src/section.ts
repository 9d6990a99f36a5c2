// A part of the page: its place, and how it is drawn again when the filter changes.
import { guarded, h, replace } from "./dom";
import { settle } from "./drawn";
import { count, plural } from "./format";
import type { Store } from "./store";

export interface Section {
  id: string;
  title: string;
  element: HTMLElement;
  update: () => void;
}

/// A section with a heading that says how many inputs the filter leaves. Where it cannot be drawn it says so.
export function section(store: Store, id: string, title: string, about: string, fill: (body: HTMLElement) => void): Section {
  const left = h("span", { class: "left" });
  const body = h("div", { class: "body" });
  const element = h("section", { id, "aria-labelledby": `${id}-title` },
    h("header", {}, h("h2", { id: `${id}-title` }, title), h("p", { class: "about" }, about), left), body);
  return {
    id, title, element,
    update() {
      left.textContent = store.size && store.filtered ? `${count(store.rows.length)} of ${plural(store.whole, "input")}` : "";
      // Settings redraw a section from inside: what had the focus gets it back.
      const held = body.contains(document.activeElement) ? focusPath(body, document.activeElement as HTMLElement) : null;
      const failed = guarded("This section", () => fill(body));
      if (failed) replace(body, failed);
      if (held) refocus(body, held);
      settle();
    },
  };
}

function focusPath(body: HTMLElement, element: HTMLElement): string | null {
  const name = element.getAttribute("aria-label") ?? element.textContent;
  return name && body.contains(element) ? `${element.tagName}|${name}` : null;
}

function refocus(body: HTMLElement, path: string): void {
  const [tag, name] = [path.slice(0, path.indexOf("|")), path.slice(path.indexOf("|") + 1)];
  for (const element of body.querySelectorAll<HTMLElement>(tag)) {
    if ((element.getAttribute("aria-label") ?? element.textContent) === name) return element.focus({ preventScroll: true });
  }
}
