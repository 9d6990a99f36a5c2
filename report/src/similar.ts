// Inputs that are like an input: its nearest neighbours in the features of the last hidden layer where the document lists
// them, else its nearest on the map.
import type { Store } from "./store";

const mostOnMap = 12;

export interface Neighbours {
  rows: number[];
  words: string; // what is meant by near
}

export function canFindSimilar(store: Store, row: number): boolean {
  return store.listed.has(row) || store.places?.of(row) !== undefined;
}

export function neighbours(store: Store, row: number): Neighbours {
  const listed = store.listed.get(row);
  if (listed) return { rows: listed, words: `Nearest first, by distance in the features of ${store.report.map?.layer ?? "the last hidden layer"}.` };
  const { places } = store;
  const here = places?.of(row);
  if (!places || !here) return { rows: [], words: "Neither its neighbours nor its place on the map is stored in this page." };
  const near = places.map.rows.map((other, i) => ({ other, away: Math.hypot(places.map.x[i] - here[0], places.map.y[i] - here[1]) })).filter(({ other }) => other !== row);
  near.sort((a, b) => a.away - b.away || a.other - b.other);
  return { rows: near.slice(0, mostOnMap).map(({ other }) => other), words: "The neighbours of this input are not stored in this page. These are the nearest on the 2-D map, which shows only part of the differences between inputs." };
}
