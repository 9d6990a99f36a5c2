// An area of the map: a polygon on a fixed grid, so that it is the same area after it has been in the address. Two letters of
// base 36 per coordinate, four per corner.
export type Point = [x: number, y: number];

export const gridSteps = 36 * 36 - 1;
const mostCorners = 48;

export function encodeArea(corners: Point[]): string {
  const letters = (value: number) => Math.round(Math.min(gridSteps, Math.max(0, value))).toString(36).padStart(2, "0");
  return corners.map(([x, y]) => letters(x) + letters(y)).join("");
}

/// Null where the text is no polygon.
export function decodeArea(text: string): Point[] | null {
  if (!/^([0-9a-z]{4}){3,64}$/.test(text)) return null;
  return text.match(/.{4}/g)!.map((corner) => [parseInt(corner.slice(0, 2), 36), parseInt(corner.slice(2), 36)]);
}

/// Even-odd rule.
export function inArea(corners: Point[], [x, y]: Point): boolean {
  let inside = false;
  for (let i = 0, j = corners.length - 1; i < corners.length; j = i++) {
    const [ax, ay] = corners[i];
    const [bx, by] = corners[j];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}

export const rectangle = (a: Point, b: Point): Point[] => [a, [b[0], a[1]], b, [a[0], b[1]]];

/// Ramer, Douglas and Peucker: the corners from which the line strays more than `tolerance`.
function thinned(line: Point[], tolerance: number): Point[] {
  if (line.length < 3) return line;
  const [a, b] = [line[0], line[line.length - 1]];
  const length = Math.hypot(b[0] - a[0], b[1] - a[1]);
  const away = ([x, y]: Point) => (length ? Math.abs((b[0] - a[0]) * (a[1] - y) - (a[0] - x) * (b[1] - a[1])) / length : Math.hypot(x - a[0], y - a[1]));
  let far = 0;
  line.forEach((point, i) => { if (away(point) > away(line[far])) far = i; });
  if (away(line[far]) <= tolerance) return [a, b];
  return [...thinned(line.slice(0, far + 1), tolerance), ...thinned(line.slice(far), tolerance).slice(1)];
}

/// A drawn line as a polygon with few corners.
export function simplified(line: Point[]): Point[] {
  const rounded = line.map(([x, y]): Point => [Math.round(x), Math.round(y)]).filter((p, i, all) => i === 0 || p[0] !== all[i - 1][0] || p[1] !== all[i - 1][1]);
  let corners = rounded;
  for (let tolerance = 3; corners.length > mostCorners || corners === rounded; tolerance *= 1.5) corners = thinned(rounded, tolerance);
  return corners;
}
