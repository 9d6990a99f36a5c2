// Files out of the page: tables as CSV, drawings as SVG and PNG.

export type Cell = string | number | boolean | null | undefined;
export interface Table {
  columns: string[];
  rows: Cell[][];
}

function field(value: Cell): string {
  const text = value === null || value === undefined ? "" : String(value);
  return /[",\n\r]/.test(text) || text !== text.trim() ? `"${text.replace(/"/g, '""')}"` : text;
}

export function csv(table: Table): string {
  return [table.columns, ...table.rows].map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
}

export function save(name: string, content: Blob | string, type = "text/csv;charset=utf-8"): void {
  const url = URL.createObjectURL(typeof content === "string" ? new Blob([content], { type }) : content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export type Legend = [words: string, colour: string][];

/// The drawing as a file of its own: heading and legend inside, the theme's colours written out.
export function svgText(drawing: SVGSVGElement, title: string, legend: Legend = []): string {
  const copy = drawing.cloneNode(true) as SVGSVGElement;
  const box = drawing.viewBox.baseVal;
  const width = box.width || drawing.clientWidth;
  const height = box.height || drawing.clientHeight;
  const entryWidth = (words: string) => 30 + 6.2 * [...words].length;
  const lines: Legend[] = [];
  let used = Infinity;
  for (const entry of legend) {
    if (used + entryWidth(entry[0]) > width) {
      lines.push([]);
      used = 8;
    }
    lines[lines.length - 1].push(entry);
    used += entryWidth(entry[0]);
  }
  const head = 28 + 18 * lines.length;
  const ns = "http://www.w3.org/2000/svg";
  const out = document.createElementNS(ns, "svg");
  const put = (tag: string, props: Record<string, string | number>, text = "") => {
    const element = document.createElementNS(ns, tag);
    for (const [name, value] of Object.entries(props)) element.setAttribute(name, String(value));
    element.textContent = text;
    out.append(element);
  };
  out.setAttribute("viewBox", `0 0 ${width} ${height + head}`);
  out.setAttribute("width", String(width));
  out.setAttribute("height", String(height + head));
  out.setAttribute("style", "color: var(--ink); font: 12px sans-serif");
  put("title", {}, title);
  put("rect", { width: "100%", height: "100%", fill: "var(--panel)" });
  put("text", { x: 8, y: 18, fill: "currentColor", "font-weight": 600, "font-size": 14 }, title);
  lines.forEach((line, i) => {
    let x = 8;
    for (const [words, colour] of line) {
      put("rect", { x, y: 29 + 18 * i, width: 10, height: 10, fill: colour });
      put("text", { x: x + 14, y: 38 + 18 * i, fill: "currentColor", "font-size": 11 }, words);
      x += entryWidth(words);
    }
  });
  copy.setAttribute("x", "0");
  copy.setAttribute("y", String(head));
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  out.append(copy);
  const theme = getComputedStyle(document.documentElement);
  // Names may hold what no XML may: control characters and halves of letters.
  const text = new XMLSerializer().serializeToString(out).replace(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|\p{Surrogate}/gu, "\ufffd");
  return text.replace(/var\((--[\w-]+)\)/g, (_, name: string) => theme.getPropertyValue(name).trim() || "currentColor");
}

export async function pngBlob(svg: string): Promise<Blob> {
  const picture = new Image();
  picture.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg);
  await picture.decode();
  const canvas = document.createElement("canvas");
  canvas.width = picture.width * 2;
  canvas.height = picture.height * 2;
  canvas.getContext("2d")!.drawImage(picture, 0, 0, canvas.width, canvas.height);
  // toBlob waits until the browser is idle, for seconds on a busy machine.
  const bytes = atob(canvas.toDataURL("image/png").split(",")[1]);
  return new Blob([Uint8Array.from(bytes, (letter) => letter.charCodeAt(0))], { type: "image/png" });
}
