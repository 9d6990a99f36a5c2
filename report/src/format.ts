// Numbers as people read them.
import type { Figure } from "../generated/evidence";

export function count(n: number | null | undefined): string {
  if (n === null || n === undefined || !Number.isFinite(n)) return "–";
  return Math.abs(n) < 1e15 ? n.toLocaleString("en-US", { maximumFractionDigits: 0 }) : n.toExponential(1);
}

/// Beyond all sense as a number with an exponent: nothing in a page may be three hundred digits long.
const fixed = (value: number, digits: number): string => (Math.abs(value) < 1e15 ? value.toFixed(digits) : value.toExponential(1));

export function percent(share: number | null | undefined, digits = 1): string {
  return share === null || share === undefined || !Number.isFinite(share) ? "–" : `${fixed(100 * share, digits)} %`;
}

/// 0.0123 → `+1.2 points`
export function points(change: number | null | undefined): string {
  if (change === null || change === undefined || !Number.isFinite(change)) return "–";
  const value = fixed(100 * change, 1).replace(/^-0\.0$/, "0.0");
  return `${change > 0 ? "+" : ""}${value.replace("-", "−")} points`;
}

export function number(value: number | null | undefined, digits = 3): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (Number.isInteger(value)) return count(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(1).replace("e-", "e−");
  return size >= 1000 ? count(value) : String(Number(value.toPrecision(digits)));
}

export function duration(seconds: number | null): string {
  if (seconds === null || !Number.isFinite(seconds) || seconds >= 1e12) return "–";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/// ` (90.7–91.8)`; nothing where the interval is not known.
export function interval(figure: Figure, scale = 100, digits = 1): string {
  if (!Number.isFinite(figure.low) || !Number.isFinite(figure.high)) return "";
  const [low, high] = [figure.low!, figure.high!];
  const text = (value: number) => fixed(scale * value, digits).replace(/^-(0(\.0+)?)$/, "$1").replace("-", "−");
  return ` (${text(low)}${low < 0 ? " to " : "–"}${text(high)})`;
}

export function shortened(text: string, length: number): string {
  const letters = [...text];
  return letters.length <= length ? text : letters.slice(0, length - 1).join("") + "…";
}

/// `models/a.onnx` → `a.onnx`: where it lies is told under Method.
export const fileName = (path: string): string => path.split("/").pop() || path;

export function plural(n: number, one: string, many = one + "s"): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/// Wilson's 95 % interval of a share.
export function wilson(right: number, total: number): Figure {
  if (total <= 0) return { value: null, low: null, high: null };
  const z = 1.959964;
  const p = right / total;
  const middle = (p + (z * z) / (2 * total)) / (1 + (z * z) / total);
  const half = (z * Math.sqrt((p * (1 - p)) / total + (z * z) / (4 * total * total))) / (1 + (z * z) / total);
  return { value: p, low: Math.max(0, middle - half), high: Math.min(1, middle + half) };
}

/// `it breaks more` → `It breaks more.`
export function sentence(text: string): string {
  const words = text.trim();
  return words ? words[0].toUpperCase() + words.slice(1) + (/[.!?]$/.test(words) ? "" : ".") : "";
}
