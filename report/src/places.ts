// Where inputs are on the map, in its own coordinates and on the grid of areas.
import type { FeatureMap } from "../generated/evidence";
import { gridSteps, type Point } from "./area";

/// The least and the largest value with some room around them.
function domain(values: number[]): [number, number] {
  const low = values.reduce((a, b) => Math.min(a, b), Infinity);
  const high = values.reduce((a, b) => Math.max(a, b), -Infinity);
  const room = (high - low || 1) * 0.04;
  return [low - room, high + room];
}

export class Places {
  readonly x: [number, number];
  readonly y: [number, number];
  private readonly at = new Map<number, number>();

  constructor(readonly map: FeatureMap) {
    this.x = domain(map.x);
    this.y = domain(map.y);
    map.rows.forEach((row, i) => this.at.set(row, i));
  }

  of(row: number): Point | undefined {
    const i = this.at.get(row);
    return i === undefined ? undefined : [this.map.x[i], this.map.y[i]];
  }

  toGrid([x, y]: Point): Point {
    return [((x - this.x[0]) / (this.x[1] - this.x[0])) * gridSteps, ((y - this.y[0]) / (this.y[1] - this.y[0])) * gridSteps];
  }

  fromGrid([x, y]: Point): Point {
    return [this.x[0] + (x / gridSteps) * (this.x[1] - this.x[0]), this.y[0] + (y / gridSteps) * (this.y[1] - this.y[0])];
  }
}
