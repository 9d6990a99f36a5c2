// Drawing on a plot: a loop around points selects them, a click opens one, hovering names it. Mouse, pen and touch alike.
import { s } from "./dom";
import type { Point } from "./area";

interface Settings {
  svg: SVGSVGElement;
  select: (line: Point[]) => void; // in units of the drawing
  click: (at: Point) => void;
  hover: (at: Point | null) => void;
}

const smallestLoop = 8; // pixels: less is a click

export function lasso({ svg, select, click, hover }: Settings): void {
  let line: Point[] | null = null;
  const loop = s("path", { class: "loop", fill: "var(--accent)", "fill-opacity": 0.12, stroke: "var(--accent)", "stroke-width": 1.5 });
  const at = (event: PointerEvent): Point => {
    const box = svg.getBoundingClientRect();
    const view = svg.viewBox.baseVal;
    return [((event.clientX - box.left) * view.width) / box.width, ((event.clientY - box.top) * view.height) / box.height];
  };
  const end = () => {
    line = null;
    loop.remove();
  };
  svg.classList.add("lasso");
  svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !event.isPrimary) return;
    event.preventDefault();
    svg.setPointerCapture(event.pointerId);
    line = [at(event)];
    loop.setAttribute("d", "");
    svg.append(loop);
    hover(null);
  });
  svg.addEventListener("pointermove", (event) => {
    if (!line) return hover(at(event));
    line.push(at(event));
    loop.setAttribute("d", `M${line.map((p) => p.map((v) => v.toFixed(1)).join(",")).join("L")}Z`);
  });
  svg.addEventListener("pointerup", (event) => {
    if (!line) return;
    const drawn = [...line, at(event)];
    end();
    const size = (axis: 0 | 1) => Math.max(...drawn.map((p) => p[axis])) - Math.min(...drawn.map((p) => p[axis]));
    if (Math.max(size(0), size(1)) < smallestLoop) click(drawn[0]);
    else select(drawn);
  });
  svg.addEventListener("pointercancel", end);
  svg.addEventListener("pointerleave", () => hover(null));
}
