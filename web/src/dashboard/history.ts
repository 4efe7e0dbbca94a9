// The rounds that are over, a page of rows at a time, the newest first.
import type { RankAccuracy, RoundRecord } from "../api.js";
import { byId, element, say, show } from "../dom.js";
import { duration, percent } from "../format.js";
import { gist } from "./cards.js";
import { stayed } from "./parts.js";

const rowsAtOnce = 20;
const mostNamed = 3; // accuracies beside the best, in a row

/** A round's accuracies by the ranks' names: the best first, the others where they are few. */
function accuracies(measured: RankAccuracy[]): (Node | string)[] {
  const [best, ...others] = measured.toSorted((a, b) => b.accuracy - a.accuracy);
  if (!best) return ["–"];
  const named = (a: RankAccuracy) => `${percent(a.accuracy)} ${a.rank ? `at rank ${a.rank}` : "with the head alone"}`;
  const last = others.at(-1);
  const rest = others.length > mostNamed && last ? `${others.length} others from ${named(last)}` :
    others.toSorted((a, b) => a.rank - b.rank).map((a) => `${a.rank || "head"}: ${percent(a.accuracy)}`).join(", ");
  return [named(best), ...(rest ? [element("span", { class: "soft small others" }, rest)] : [])];
}

export class History {
  #all: RoundRecord[] = [];
  /** Rows from the newest that are not shown. */
  #from = 0;
  /** The newest round that is shown to anyone who has turned to older ones; undefined follows what comes. */
  #at?: number;

  constructor() {
    byId("history-newer").addEventListener("click", () => this.#turn(-rowsAtOnce));
    byId("history-older").addEventListener("click", () => this.#turn(rowsAtOnce));
  }

  /** Shows records, the oldest first. Anyone who has turned to older ones stays at them. */
  show(all: RoundRecord[]): void {
    this.#all = all;
    // By its number: after a connection was lost all are told again, piece by piece.
    const at = this.#at;
    this.#from = at === undefined ? 0 : Math.max(0, all.length - 1 - Math.max(0, all.findLastIndex((r) => r.round <= at)));
    this.#paint();
  }

  #turn(by: number): void {
    this.#from = Math.max(0, Math.min(this.#from + by, this.#all.length - 1));
    this.#at = this.#from > 0 ? this.#all.at(-1 - this.#from)?.round : undefined;
    this.#paint();
  }

  #paint(): void {
    const n = this.#all.length, end = n - this.#from, begin = Math.max(0, end - rowsAtOnce);
    show("history-empty", n === 0);
    show("history", n > 0);
    show("history-pages", n > rowsAtOnce);
    byId<HTMLButtonElement>("history-newer").disabled = this.#from === 0;
    byId<HTMLButtonElement>("history-older").disabled = begin === 0;
    const shown = this.#all.slice(begin, end);
    say("history-shown", n > rowsAtOnce ? `Rounds ${shown[0]?.round} to ${shown.at(-1)?.round} of ${this.#all.at(-1)?.round.toLocaleString("en")}` : "");
    const nothing = this.#all.filter((r) => !r.released).length;
    gist("history", n ? `${n.toLocaleString("en")} over, ${nothing ? `${nothing.toLocaleString("en")} without a release` : "all released"}` : "none yet");
    byId("history-rows").replaceChildren(...shown.toReversed().map((r) => element("tr", {},
      element("td", {}, String(r.round)), element("td", {}, String(r.rank)),
      element("td", {}, `${stayed(r)} of ${r.cohort - r.absent}`), element("td", {}, r.seconds < 10 ? `${r.seconds.toFixed(1)} s` : duration(r.seconds)),
      element("td", {}, ...accuracies(r.accuracy ?? [])),
      element("td", {}, r.released ? "released" : `abandoned: ${r.reason ?? ""}`))));
  }
}
