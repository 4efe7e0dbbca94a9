// How long the rest of a job takes, by the rounds that this page has seen made.
const enough = 2; // rounds, before anything is said
const most = 8; // of them count: a job's pace changes

export class Pace {
  #seen: { version: number; at: number }[] = [];

  /** Notes how many rounds are made, at a time in seconds. */
  note(version: number, at: number): void {
    const last = this.#seen.at(-1);
    if (last && version < last.version) this.#seen = []; // another job, or a store that was put back
    if (last && version === last.version) return;
    this.#seen.push({ version, at });
    if (this.#seen.length > most + 1) this.#seen.shift();
  }

  /** Seconds until all rounds are made; undefined before it can be told. */
  left(rounds: number, now: number): number | undefined {
    // The first was made before this page looked.
    const [, first] = this.#seen, last = this.#seen.at(-1);
    if (!first || !last || last.version - first.version < enough || rounds <= last.version) return undefined;
    const each = (last.at - first.at) / (last.version - first.version), waited = now - last.at;
    return waited > 3 * each + 10 ? undefined : Math.max(each, each * (rounds - last.version) - waited); // it has stalled
  }
}
