// Layers as boxes that fit a screen: blocks that repeat are one box until they are opened, and where there are still too many,
// neighbours share a box.
import type { Layer } from "../generated/evidence";

export interface Box {
  name: string; // `layer1 ×3`
  layers: number[];
  block?: string; // opens it
}

export const mostBoxes = 200;

const partsOf = (name: string) => name.split(/[./]/);

export function fold(layers: Layer[], opened: Set<string>): Box[] {
  const boxes: Box[] = [];
  for (let i = 0; i < layers.length; ) {
    const block = partsOf(layers[i].name)[0];
    let end = i;
    while (end < layers.length && partsOf(layers[end].name)[0] === block) end++;
    const members = Array.from({ length: end - i }, (_, k) => i + k);
    const repeats = new Set(members.map((m) => partsOf(layers[m].name)[1]).filter((part) => /^\d+$/.test(part ?? "")));
    if (members.length > 1 && repeats.size > 1 && !opened.has(block)) boxes.push({ name: `${block} ×${repeats.size}`, layers: members, block });
    else for (const m of members) boxes.push({ name: layers[m].name, layers: [m] });
    i = end;
  }
  if (boxes.length <= mostBoxes) return boxes;
  const each = Math.ceil(boxes.length / mostBoxes);
  const merged: Box[] = [];
  for (let i = 0; i < boxes.length; i += each) {
    const some = boxes.slice(i, i + each);
    merged.push({ name: `${some[0].name} … ${some[some.length - 1].name}`, layers: some.flatMap((b) => b.layers) });
  }
  return merged;
}
