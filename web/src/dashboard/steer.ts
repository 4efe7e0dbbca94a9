// Pausing the job, over restarts, and having it go on. To end the process is left to who
// runs it: a page cannot start it again.
import type { Paused } from "../api.js";
import { byId, message, say, show } from "../dom.js";
import { ask } from "./ask.js";
import type { Call } from "./call.js";

export class Steering {
  /** Whether who looks may pause. */
  steers = false;
  readonly #call: Call;
  #paused = false;
  #over = false;

  constructor(call: Call) {
    this.#call = call;
    byId("steer").addEventListener("click", () => void this.#turn());
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

  #took({ pause }: Paused): void {
    this.#paused = pause !== null;
    this.#paint();
  }

  #paint(): void {
    show("steering", this.steers && !this.#over);
    say("steer", this.#paused ? "Let the job go on" : "Pause the job");
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
