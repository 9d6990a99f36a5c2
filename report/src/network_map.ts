// The layers as boxes in reading order, with the lines that data takes.
import { s } from "./dom";
import type { Box } from "./fold";
import { number, shortened } from "./format";
import type { Layer } from "../generated/evidence";

interface Settings {
  layers: Layer[];
  boxes: Box[];
  width: number;
  picked: number;
  value: (layer: Layer) => number | null;
  pick: (layer: number) => void;
  open: (block: string) => void;
}

const size = { w: 128, h: 46, gapX: 22, gapY: 30 };

export function boxMap({ layers, boxes, width, picked, value, pick, open }: Settings): SVGSVGElement {
  const across = Math.max(1, Math.floor((width - 4 + size.gapX) / (size.w + size.gapX)));
  const down = Math.ceil(boxes.length / across);
  const at = (i: number) => ({ x: 2 + (i % across) * (size.w + size.gapX), y: 14 + Math.floor(i / across) * (size.h + size.gapY) });
  const boxOf = new Map<string, number>();
  boxes.forEach((box, i) => box.layers.forEach((l) => boxOf.set(layers[l].name, i)));
  const most = Math.max(1e-9, ...layers.map((l) => value(l) ?? 0));

  const lines = new Set<string>();
  layers.forEach((layer) => layer.from.forEach((from) => {
    const [a, b] = [boxOf.get(from), boxOf.get(layer.name)];
    if (a !== undefined && b !== undefined && a !== b) lines.add(`${a} ${b}`);
  }));
  const path = (a: number, b: number) => {
    const [p, q] = [at(a), at(b)];
    if (b === a + 1 && p.y === q.y) return `M${p.x + size.w},${p.y + size.h / 2}H${q.x}`;
    if (p.y === q.y) return `M${p.x + size.w / 2},${p.y}C${p.x + size.w / 2},${p.y - 16} ${q.x + size.w / 2},${q.y - 16} ${q.x + size.w / 2},${q.y}`;
    const middle = (p.y + size.h + q.y) / 2;
    return `M${p.x + size.w / 2},${p.y + size.h}C${p.x + size.w / 2},${middle} ${q.x + size.w / 2},${middle} ${q.x + size.w / 2},${q.y}`;
  };

  const draw = (box: Box, i: number) => {
    const { x, y } = at(i);
    const values = box.layers.map((l) => value(layers[l])).filter((v): v is number => v !== null);
    const worst = values.length ? Math.max(...values) : null;
    const single = box.layers.length === 1 ? layers[box.layers[0]] : null;
    const words = `${box.name}: ${single ? `${single.kind}, ${number(single.units)} units` : `${box.layers.length} layers`}${worst === null ? "" : `, ${number(worst)}`}`;
    const act = () => (box.block ? open(box.block) : pick(box.layers.reduce((a, b) => ((value(layers[b]) ?? 0) > (value(layers[a]) ?? 0) ? b : a))));
    const group = s("g", {
      class: "clickable box", tabindex: 0, role: "button", "aria-label": words, transform: `translate(${x},${y})`, onclick: act,
      onkeydown: (event: KeyboardEvent) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); act(); } },
    },
      s("title", {}, words),
      box.layers.length > 1 ? s("rect", { x: 3, y: -3, width: size.w, height: size.h, rx: 6, fill: "var(--panel)", stroke: "var(--line)" }) : null,
      s("rect", { width: size.w, height: size.h, rx: 6, fill: "var(--panel)", stroke: "none" }),
      s("rect", { width: size.w, height: size.h, rx: 6, fill: "var(--serious)", "fill-opacity": worst === null ? 0 : 0.05 + 0.6 * Math.sqrt(Math.max(0, worst) / most), stroke: box.layers.includes(picked) ? "var(--ink)" : "var(--line)", "stroke-width": box.layers.includes(picked) ? 2 : 1 }),
      s("text", { x: 9, y: 19, fill: "currentColor", "font-size": 12, "font-weight": 600 }, shortened(box.name, 17)),
      s("text", { x: 9, y: 36, fill: "currentColor", "fill-opacity": 0.75, "font-size": 11 }, single ? `${single.kind} ${number(single.units)}` : `${box.layers.length} layers`),
      s("text", { x: size.w - 9, y: 36, fill: "currentColor", "font-size": 11, "text-anchor": "end" }, worst === null ? "" : number(worst, 2)));
    return group;
  };
  const height = 14 + down * (size.h + size.gapY) - size.gapY + 6;
  return s("svg", { viewBox: `0 0 ${width} ${height}`, width, height },
    [...lines].map((line) => { const [a, b] = line.split(" ").map(Number); return s("path", { d: path(a, b), fill: "none", stroke: "var(--muted)", "stroke-opacity": 0.5, "stroke-width": b === a + 1 ? 1.5 : 1 }); }),
    boxes.map(draw));
}
