// An order of classes in which those that are confused stand beside each other: groups are joined by how much they are
// confused on average, each time with the ends that belong together facing.

export function neighbourOrder(size: number, pairs: [number, number, number][]): number[] {
  const near: number[][] = Array.from({ length: size }, () => new Array<number>(size).fill(0));
  for (const [a, b, n] of pairs) {
    if (a === b || a >= size || b >= size) continue;
    near[a][b] += n;
    near[b][a] += n;
  }
  let groups: number[][] = Array.from({ length: size }, (_, i) => [i]);
  const between = (x: number[], y: number[]) => x.reduce((sum, a) => sum + y.reduce((s, b) => s + near[a][b], 0), 0) / (x.length * y.length);
  while (groups.length > 1) {
    let best = [-1, 0, 1];
    for (let i = 0; i < groups.length; i++) {
      for (let j = i + 1; j < groups.length; j++) {
        const score = between(groups[i], groups[j]);
        if (score > best[0]) best = [score, i, j];
      }
    }
    if (best[0] <= 0) break; // what is never confused keeps its order
    const [x, y] = [groups[best[1]], groups[best[2]]];
    const back = (g: number[]) => [...g].reverse();
    const ways = [[x, y], [x, back(y)], [back(x), y], [back(x), back(y)]].map(([a, b]) => ({ a, b, meet: near[a[a.length - 1]][b[0]] }));
    const way = ways.reduce((p, q) => (q.meet > p.meet ? q : p));
    groups[best[1]] = [...way.a, ...way.b];
    groups = groups.filter((_, i) => i !== best[2]);
  }
  return groups.flat();
}
