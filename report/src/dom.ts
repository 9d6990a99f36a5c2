// Elements from values. Everything that comes from the report goes in as text nodes and attributes, never as markup.

export type Child = Node | string | number | null | undefined | false | Child[];
type Props = Record<string, unknown>;

function fill(element: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) fill(element, child);
    else element.append(child instanceof Node ? child : String(child));
  }
}

function set(element: Element, props: Props): void {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value as EventListener);
    else if (name === "value" || name === "checked" || name === "selected") Object.assign(element, { [name]: value });
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  set(element, props);
  fill(element, children);
  return element;
}

export function s<K extends keyof SVGElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  set(element, props);
  fill(element, children);
  return element;
}

export function replace(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  fill(element, children);
}

/// What `make` gives; where it fails, a sentence in its place: one part that cannot be drawn must not take the others with it.
export function guarded(what: string, make: () => Child | void): Child {
  try {
    return make() ?? null;
  } catch (error) {
    console.error(`${what} could not be drawn:`, error);
    return h("p", { class: "note failed" }, `${what} could not be drawn.`);
  }
}

/// A button that says for a moment what it did.
export function button(label: string, action: () => void, props: Props = {}): HTMLButtonElement {
  return h("button", { type: "button", onclick: action, ...props }, label);
}

export function copyButton(text: string | (() => string), label = "copy"): HTMLButtonElement {
  const self: HTMLButtonElement = button(label, () => {
    void copy(typeof text === "string" ? text : text()).then((worked) => {
      self.textContent = worked ? "copied" : "press Ctrl-C";
      setTimeout(() => (self.textContent = label), 1500);
    });
  }, { class: "small copy", title: typeof text === "string" ? text : undefined });
  return self;
}

/// Files opened from disk may not use the clipboard interface everywhere; a selected text field always works.
async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = h("textarea", { value: text, class: "offscreen", "aria-hidden": "true" });
    (document.querySelector("dialog[open]") ?? document.body).append(field);
    field.select();
    const worked = document.execCommand("copy");
    field.remove();
    return worked;
  }
}

/// A choice of a few, as buttons of which one is pressed.
export function choice<T extends string>(label: string, options: [T, string][], current: T, pick: (value: T) => void): HTMLElement {
  return h("span", { class: "choice", role: "group", "aria-label": label },
    options.map(([value, words]) => button(words, () => pick(value), { class: "small", "aria-pressed": String(value === current) })));
}

export function command(text: string): HTMLElement {
  return h("div", { class: "command" }, h("code", {}, text), copyButton(text));
}
