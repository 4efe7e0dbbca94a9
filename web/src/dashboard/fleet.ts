// The enrolled devices: how many of which kind, who has strikes, who is excluded; ban and
// pardon. The coordinator counts and pages: ten thousand devices are no more work here
// than fifty.
import type { Device, FleetPage, Group } from "../api.js";
import { byId, element, message, say, show } from "../dom.js";
import { count, percent } from "../format.js";
import { ask } from "./ask.js";
import { gist } from "./cards.js";
import type { Call } from "./call.js";

const rowsAtOnce = 50;
const apart = 3000; // ms between two questions for a list that may have changed

export class Fleet {
  readonly #call: Call;
  #judges = false;
  /** Whether who looks was shown one job alone: the devices are the whole fleet's. */
  hidden = false;
  #from = 0;
  #loading = false;
  #fresh = false;
  #asked = 0;
  #later = 0;
  #enrolled = -1;
  #inSight = false;

  constructor(call: Call) {
    this.#call = call;
    // It is fetched while somebody looks at it, and once where its card is unfolded: what
    // comes above the card meanwhile may have pushed it out of sight.
    const card = byId<HTMLDetailsElement>("card-fleet");
    card.addEventListener("toggle", () => { if (card.open && !this.#fresh) void this.load(); });
    new IntersectionObserver((seen) => {
      this.#inSight = seen.some((e) => e.isIntersecting);
      if (this.#inSight && !this.#fresh) void this.load();
    }, { rootMargin: "200px" }).observe(byId("fleet-body"));
    let typed = 0;
    byId("fleet-filter").addEventListener("input", () => { clearTimeout(typed); typed = setTimeout(() => this.#turn(-Infinity), 200); });
    byId("fleet-held").addEventListener("change", () => this.#turn(-Infinity));
    byId("fleet-back").addEventListener("click", () => this.#turn(-rowsAtOnce));
    byId("fleet-on").addEventListener("click", () => this.#turn(rowsAtOnce));
  }

  /** Says whether who looks may ban and pardon; the list may be here before that is known. */
  set judges(may: boolean) {
    this.#judges = may;
    for (const button of byId("fleet-rows").querySelectorAll("button")) button.disabled = !may;
  }

  /** Says that the list may have changed: how many devices there are, where that is known. */
  stale(enrolled?: number): void {
    if (enrolled !== undefined && enrolled === this.#enrolled) return;
    this.#enrolled = enrolled ?? this.#enrolled;
    this.#fresh = false;
    if (enrolled !== undefined) gist("fleet", count(enrolled, "device"));
    if (!this.#inSight || this.#later) return;
    this.#later = setTimeout(() => { this.#later = 0; if (!this.#fresh) void this.load(); }, Math.max(0, this.#asked + apart - Date.now()));
  }

  /** Asks for the page again. */
  async load(): Promise<void> {
    if (this.#loading || this.hidden) return;
    this.#loading = this.#fresh = true;
    this.#asked = Date.now();
    let failed = false;
    try {
      const begins = byId<HTMLInputElement>("fleet-filter").value.trim().toLowerCase(), held = byId<HTMLInputElement>("fleet-held").checked;
      const query = new URLSearchParams({ from: String(this.#from), most: String(rowsAtOnce), ...(begins ? { begins } : {}), ...(held ? { held: "true" } : {}) });
      this.#paint((await (await this.#call(`fleet.json?${query}`)).json()) as FleetPage);
      say("fleet-failed", "");
    } catch (error) {
      say("fleet-failed", `The list of devices is not here: ${message(error)}`);
      this.#fresh = false;
      failed = true;
    }
    this.#loading = false;
    if (!this.#fresh && !failed && this.#inSight) void this.load(); // something else was asked for meanwhile
  }

  #turn(by: number): void {
    this.#from = Math.max(0, this.#from + by);
    this.#fresh = false;
    void this.load();
  }

  #paint(p: FleetPage): void {
    if (p.found > 0 && this.#from >= p.found) { // there are fewer by now
      this.#from = 0;
      this.#fresh = false;
      return;
    }
    show("fleet", p.devices.length > 0);
    show("fleet-empty", p.devices.length === 0);
    say("fleet-empty", p.enrolled === 0 ? "No device is enrolled yet." : "No device is like that.");
    gist("fleet", `${count(p.enrolled, "device")}, ${p.excluded} excluded`);
    say("fleet-counts", `${count(p.enrolled, "device")} enrolled, ${p.excluded} excluded, ${p.struck} with strikes, ${p.declining} declined a round for a limit of their owners'` +
      (p.found > rowsAtOnce ? `; shown ${this.#from + 1} to ${this.#from + p.devices.length} of ${p.found.toLocaleString("en")}` : ""));
    show("fleet-pages", p.found > rowsAtOnce);
    byId<HTMLButtonElement>("fleet-back").disabled = this.#from === 0;
    byId<HTMLButtonElement>("fleet-on").disabled = this.#from + rowsAtOnce >= p.found;
    show("fleet-groups", p.enrolled > 0);
    for (const [id, of] of [["fleet-programs", p.programs], ["fleet-platforms", p.platforms], ["fleet-seen", p.seen]] as const) groups(id, of, p.enrolled);
    const focused = document.activeElement?.id;
    byId("fleet-rows").replaceChildren(...p.devices.map((d) => this.#row(d)));
    if (focused?.startsWith("act-")) document.getElementById(focused)?.focus();
  }

  #row(d: Device): HTMLElement {
    const name = d.identity.slice(0, 8); // as the log names it
    const act = d.excluded ? "pardon" : "ban", named = d.excluded ? "Pardon" : "Ban";
    const button = element("button", { type: "button", class: "quiet small", id: `act-${d.identity}`, "aria-label": `${named} ${name}` }, named);
    button.disabled = !this.#judges;
    button.addEventListener("click", () => void this.#judge(d, act));
    const seen = new Date(d.seen);
    return element("tr", {}, element("td", {}, element("code", { title: d.identity }, name)),
      element("td", {}, seen.getTime() > 0 ? seen.toLocaleString("en-GB", { dateStyle: "short", timeStyle: "short" }) : "–"),
      element("td", {}, d.agent ?? "–"),
      element("td", {}, String(d.strikes ?? 0)), element("td", { class: d.excluded ? "failed" : "" }, d.excluded ? `excluded: ${d.excluded}` : "in"),
      element("td", {}, button));
  }

  async #judge(d: Device, act: "ban" | "pardon"): Promise<void> {
    const name = d.identity.slice(0, 8);
    const reason = act === "ban" // a pardon is taken back by a ban
      ? await ask({ title: `Ban ${name}?`, text: "From the next round on it takes part in none, until it is pardoned. Its owner is told the reason.", act: "Ban it", reason: "Reason (its owner reads it)" }) : "";
    if (reason === undefined) return document.getElementById(`act-${d.identity}`)?.focus(); // the rows may be others by now
    try {
      await this.#call(`devices/${d.identity}/${act}`, reason);
      say("fleet-said", `${name} is ${act === "ban" ? "banned" : "pardoned"}; it counts from the next round.`);
    } catch (error) {
      say("fleet-said", `Not done: ${message(error)}`);
    }
    this.#fresh = false;
    await this.load();
    document.getElementById(`act-${d.identity}`)?.focus();
  }
}

function groups(id: string, of: Group[], all: number): void {
  byId(id).replaceChildren(...of.filter((g) => g.devices > 0).map((g) => {
    const bar = element("meter", { min: "0", max: String(Math.max(1, all)), value: String(g.devices), "aria-label": `${g.name}: share of devices` });
    return element("tr", {}, element("th", { scope: "row" }, g.name), element("td", {}, bar), element("td", {}, `${g.devices.toLocaleString("en")} (${percent(all ? g.devices / all : 0)})`));
  }));
}
