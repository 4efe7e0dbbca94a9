// The enrolled devices: who has strikes, who is excluded; ban and pardon. A page of
// rows at a time, so that ten thousand devices are no more work than fifty.
import type { Device } from "../api.js";
import { byId, element, message, say, show } from "../dom.js";
import { count } from "../format.js";
import { gist } from "./cards.js";

const rowsAtOnce = 50;
const sureFor = 6000; // ms in which a ban must be confirmed

type Call = (path: string, options?: RequestInit) => Promise<Response>;

export class Fleet {
  /** Whether who looks may ban and pardon. */
  judges = true;
  readonly #call: Call;
  #devices: Device[] = [];
  #from = 0;
  #loading = false;
  #fresh = false;
  #enrolled = 0;
  #inSight = false;

  constructor(call: Call) {
    this.#call = call;
    // The list of a large fleet is long: it is fetched while somebody looks at it.
    new IntersectionObserver((seen) => {
      this.#inSight = seen.some((e) => e.isIntersecting);
      if (this.#inSight && !this.#fresh) void this.load();
    }, { rootMargin: "200px" }).observe(byId("fleet-section"));
    byId("fleet-filter").addEventListener("input", () => { this.#from = 0; this.#paint(); });
    byId("fleet-held").addEventListener("change", () => { this.#from = 0; this.#paint(); });
    byId("fleet-back").addEventListener("click", () => this.#turn(-rowsAtOnce));
    byId("fleet-on").addEventListener("click", () => this.#turn(rowsAtOnce));
  }

  /** Says that the list may have changed: how many devices there are, where that is known. */
  stale(enrolled?: number): void {
    if (enrolled !== undefined && enrolled === this.#enrolled) return;
    this.#enrolled = enrolled ?? this.#enrolled;
    this.#fresh = false;
    if (enrolled !== undefined) gist("fleet", count(enrolled, "device"));
    if (this.#inSight) void this.load();
  }

  /** Asks for the list again. */
  async load(): Promise<void> {
    if (this.#loading) return;
    this.#loading = this.#fresh = true;
    let failed = false;
    try {
      this.#devices = (await (await this.#call("devices.json")).json()) as Device[];
      this.#devices.sort((a, b) => Number(b.excluded !== undefined) - Number(a.excluded !== undefined) || (b.strikes ?? 0) - (a.strikes ?? 0));
      say("fleet-failed", "");
    } catch (error) {
      say("fleet-failed", `The list of devices is not here: ${message(error)}`);
      this.#fresh = false;
      failed = true;
    }
    this.#loading = false;
    this.#paint();
    if (!this.#fresh && !failed && this.#inSight) void this.load(); // it changed meanwhile
  }

  #turn(by: number): void {
    this.#from = Math.max(0, this.#from + by);
    this.#paint();
  }

  #paint(): void {
    const wanted = byId<HTMLInputElement>("fleet-filter").value.trim().toLowerCase();
    const held = byId<HTMLInputElement>("fleet-held").checked;
    const found = this.#devices.filter((d) => d.identity.startsWith(wanted) && (!held || d.excluded || d.strikes));
    if (this.#from >= found.length) this.#from = 0;
    const shown = found.slice(this.#from, this.#from + rowsAtOnce);
    show("fleet", shown.length > 0);
    show("fleet-empty", shown.length === 0);
    say("fleet-empty", this.#devices.length === 0 ? "No device is enrolled yet." : "No device is like that.");
    const out = this.#devices.filter((d) => d.excluded).length;
    if (this.#fresh) gist("fleet", `${count(this.#devices.length, "device")}, ${out} excluded`);
    say("fleet-counts", `${count(this.#devices.length, "device")} enrolled, ${out} excluded` +
      (found.length > rowsAtOnce ? `; shown ${this.#from + 1} to ${this.#from + shown.length} of ${found.length.toLocaleString("en")}` : ""));
    show("fleet-pages", found.length > rowsAtOnce);
    byId<HTMLButtonElement>("fleet-back").disabled = this.#from === 0;
    byId<HTMLButtonElement>("fleet-on").disabled = this.#from + rowsAtOnce >= found.length;
    const focused = document.activeElement?.id;
    byId("fleet-rows").replaceChildren(...shown.map((d) => this.#row(d)));
    if (focused?.startsWith("act-")) document.getElementById(focused)?.focus();
  }

  #row(d: Device): HTMLElement {
    const name = d.identity.slice(0, 8); // as the log names it
    const act = d.excluded ? "pardon" : "ban";
    const button = element("button", { type: "button", class: "quiet small", id: `act-${d.identity}`, "aria-label": `${d.excluded ? "Pardon" : "Ban"} ${name}` },
      d.excluded ? "Pardon" : "Ban");
    button.disabled = !this.judges;
    let sure = d.excluded !== undefined; // a pardon is taken back by a ban
    button.addEventListener("click", () => {
      if (sure) return void this.#judge(d, act);
      sure = true;
      button.textContent = "Ban it?";
      button.setAttribute("aria-label", `Ban ${name}: press again to confirm`);
      setTimeout(() => { sure = false; button.textContent = "Ban"; button.setAttribute("aria-label", `Ban ${name}`); }, sureFor);
    });
    const seen = new Date(d.seen);
    return element("tr", {}, element("td", {}, element("code", { title: d.identity }, name)),
      element("td", {}, seen.getTime() > 0 ? seen.toLocaleString("en-GB", { dateStyle: "short", timeStyle: "short" }) : "–"),
      element("td", {}, String(d.strikes ?? 0)), element("td", { class: d.excluded ? "failed" : "" }, d.excluded ? `excluded: ${d.excluded}` : "in"),
      element("td", {}, button));
  }

  async #judge(d: Device, act: string): Promise<void> {
    try {
      await this.#call(`devices/${d.identity}/${act}`, { method: "POST" });
      say("fleet-said", `${d.identity.slice(0, 8)} is ${act === "ban" ? "banned" : "pardoned"}; it counts from the next round.`);
    } catch (error) {
      say("fleet-said", `Not done: ${message(error)}`);
    }
    await this.load();
  }
}
