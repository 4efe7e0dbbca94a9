// Work on the page is done a piece a frame: a round's end redraws four charts and a
// table, which together are longer than a frame may be.

const waiting = new Map<string, () => void>();
let asked = false;

/** Does a piece of work in a frame of its own; of one name the latest is done. */
export function soon(name: string, piece: () => void): void {
  waiting.delete(name);
  waiting.set(name, piece);
  ask();
}

function ask(): void {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    const [next] = waiting;
    if (!next) return;
    waiting.delete(next[0]);
    next[1]();
    if (waiting.size) ask();
  });
}
