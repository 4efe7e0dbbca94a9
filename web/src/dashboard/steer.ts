// Having the job begin before all have enrolled, pausing it, over restarts, and having it go on. To end the process is left to who
// runs it: a page cannot start it again.
import type { Beginning, Begun, Paused } from "../api.js";
import { count } from "../format.js";
import { byId, message, say, show } from "../dom.js";
import { ask } from "./ask.js";
import type { Call } from "./call.js";

export class Steering {
  /** Whether who looks may pause. */
  steers = false;
  readonly #call: Call;
  #paused = false;
  #over = false;
  #beginning: Beginning | undefined;

  constructor(call: Call) {
    this.#call = call;
    byId("steer").addEventListener("click", () => void this.#turn());
    byId("begin").addEventListener("click", () => void this.#begin());
  }

  async load(): Promise<void> {
    this.#took((await (await this.#call("paused.json")).json()) as Paused);
  }

  /** Says whether the job is over. */
  over(is: boolean): void {
    if (is === this.#over) return;
    this.#over = is;
    this.#paint();
  }

  /** Takes in what the first round waits for; undefined once rounds have begun. */
  awaits(beginning: Beginning | undefined): void {
    this.#beginning = beginning;
    this.#paint();
  }

  #took({ pause }: Paused): void {
    this.#paused = pause !== null;
    this.#paint();
  }

  #paint(): void {
    show("steering", this.steers && !this.#over);
    say("steer", this.#paused ? "Let the job go on" : "Pause the job");
    const b = this.#beginning;
    show("begin", b?.by_word === true && !b.by && b.enrolled >= b.least);
    if (b) say("begin", `Begin with the ${count(b.enrolled, "device")} that ${b.enrolled === 1 ? "has" : "have"} enrolled`);
  }

  async #begin(): Promise<void> {
    const b = this.#beginning;
    if (!b) return;
    const awaited = b.awaited?.length ? ` Invitations are open for ${b.awaited.join(", ")}.` : "";
    const sure = await ask({ title: "Begin without the others?", act: "Begin",
      text: `${b.enrolled} devices have enrolled, ${b.with} are awaited.${awaited} Devices that enrol later take part from the next round. What is promised stays promised for the whole population.` });
    if (sure === undefined) return;
    try {
      const begun = (await (await this.#call("job/begin", "")).json()) as Begun;
      say("steer-said", `${begun.says}.`);
    } catch (error) {
      say("steer-said", `Not done: ${message(error)}.`);
    }
  }

  async #turn(): Promise<void> {
    const reason = this.#paused ? "" : await ask({ title: "Pause the job?", act: "Pause it", reason: "Reason (kept with your name)",
      text: "The running round goes to its end; then none is drawn until somebody lets it go on, over restarts, too. Devices wait meanwhile." });
    if (reason === undefined) return;
    try {
      this.#took((await (await this.#call(`job/${this.#paused ? "resume" : "pause"}`, reason)).json()) as Paused);
      say("steer-said", this.#paused ? "No round is drawn after this one." : "It goes on within ten seconds.");
    } catch (error) {
      say("steer-said", `Not done: ${message(error)}.`);
      await this.load().catch(() => undefined); // the stream tells of a coordinator that is gone
    }
  }
}
