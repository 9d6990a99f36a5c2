// A plot with its heading, its legend, and its three files. Drawn for the width there is, and again when that changes.
import * as Plot from "@observablehq/plot";
import { button, guarded, h, replace } from "./dom";
import { csv, pngBlob, save, svgText, type Legend, type Table } from "./export";

export interface Drawing {
  name: string; // of files: `confusion`
  title: string;
  note?: string;
  legend?: Legend;
  tools?: HTMLElement; // buttons beside the heading
  table: () => Table;
  draw: (width: number) => SVGSVGElement;
}

export function figure(drawing: Drawing): HTMLElement {
  const place = h("div", { class: "drawing" });
  const files = h("span", { class: "files" },
    button("SVG", () => withSvg((svg) => save(`${drawing.name}.svg`, svg, "image/svg+xml")), { class: "file", "aria-label": `${drawing.title}: download SVG` }),
    button("PNG", () => withSvg((svg) => void pngBlob(svg).then((blob) => save(`${drawing.name}.png`, blob))), { class: "file", "aria-label": `${drawing.title}: download PNG` }),
    button("CSV", () => save(`${drawing.name}.csv`, csv(drawing.table())), { class: "file", "aria-label": `${drawing.title}: download CSV` }));
  const element = h("figure", { "data-figure": drawing.name },
    h("figcaption", {}, h("h3", {}, drawing.title), drawing.tools, files),
    drawing.note ? h("p", { class: "note" }, drawing.note) : null,
    drawing.legend ? h("p", { class: "legend" }, drawing.legend.map(([words, colour]) => h("span", {}, swatch(colour), words))) : null,
    place);
  const withSvg = (act: (svg: string) => void) => { // none before the width is known
    const svg = place.querySelector("svg");
    if (svg) act(svgText(svg, drawing.title, drawing.legend));
  };
  let drawn = 0;
  const watch = new ResizeObserver(([entry]) => {
    const width = Math.floor(entry.contentRect.width);
    if (width < 40 || width === drawn) return;
    drawn = width;
    replace(place, guarded("This plot", () => {
      const picture = drawing.draw(width);
      picture.setAttribute("role", picture.querySelector(".clickable") ? "group" : "img");
      picture.setAttribute("aria-label", drawing.title);
      return picture;
    }));
  });
  watch.observe(place);
  return element;
}

/// A plot whose axes are named without arrows: an arrow in this page leads from before to after.
export function plot(options: Plot.PlotOptions): SVGSVGElement {
  const { x, y } = options;
  return Plot.plot({ ...options, x: { labelArrow: "none", ...x }, y: { labelArrow: "none", ...y } }) as SVGSVGElement;
}

function swatch(colour: string): HTMLElement {
  const element = h("i", { class: "swatch" });
  element.style.background = colour;
  return element;
}

/// Lets the marks of a plot be clicked, by mouse and keyboard. `name`: the mark has the class `marks-NAME`.
export function clickable<T>(svg: SVGSVGElement, name: string, data: T[], words: (d: T) => string, act: (d: T) => void): void {
  for (const mark of svg.querySelectorAll(`.marks-${name} > *`)) {
    const datum = data[(mark as unknown as { __data__: number }).__data__]; // D3 keeps the position in the data there
    if (datum === undefined) continue;
    const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
    title.textContent = words(datum);
    mark.append(title);
    mark.setAttribute("tabindex", "0");
    mark.setAttribute("role", "button");
    mark.setAttribute("aria-label", words(datum));
    mark.setAttribute("class", "clickable");
    mark.addEventListener("click", () => act(datum));
    mark.addEventListener("keydown", (event) => {
      const key = (event as KeyboardEvent).key;
      if (key !== "Enter" && key !== " ") return;
      event.preventDefault();
      act(datum);
    });
  }
}

/// How wide the names on an axis are, within reason.
export function nameMargin(names: string[], most = 150): number {
  return Math.min(most, 16 + 6.6 * Math.max(2, ...names.map((name) => [...name].length)));
}
