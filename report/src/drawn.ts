// Whether all of the page is drawn, as `html[data-drawn]`: for tests, and for whoever prints it. Plots are drawn in the frame that
// tells them their width, so nothing is settled before the frame after.
let turn = 0;
let held = false;

/// At the next frame, or without one where none comes: a page that cannot be seen gets none, and is drawn nevertheless.
export function atFrame(act: () => void): void {
  let done = false;
  const once = () => {
    if (done) return;
    done = true;
    act();
  };
  requestAnimationFrame(once);
  setTimeout(once, 10_000);
}

const say = (drawn: "yes" | "no") => (document.documentElement.dataset.drawn = drawn);

/// More is to come, until `release`.
export function hold(): void {
  held = true;
  turn++;
  say("no");
}

export function release(): void {
  held = false;
  settle();
}

/// Something was drawn.
export function settle(): void {
  if (held) return;
  const now = ++turn;
  say("no");
  atFrame(() => atFrame(() => { if (now === turn) say("yes"); }));
}
