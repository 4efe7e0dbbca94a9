// <starling-consent url="https://fl.example.org">: asks the visitor of somebody's page for their consent, and takes part.
// It says who asks, whom one trusts, and what the job asks for beyond the device's limits; each is accepted by itself.
//
//   import "@starling-fl/edge/consent";
//
// Attributes: url, token, lang (of en, de, fr, es; default the browser's), trust-local. Property: source, examples of
// the page's own, in place of a file that the visitor chooses. Events: change and finished, with the Participation, and
// failed, with a StarlingError. Parts to style: text, file, button, limits, state.
import { ownLimit, visible } from "./words.js";
import { browserTrust, Participation, StarlingError, type PolicyError, type Source } from "./index.js";

type Message = string | (Partial<Record<Intl.LDMLPluralRule, string>> & { other: string });

/** The page's own texts that this element shows, by language and key: put in by build.mjs. */
declare const CONSENT_WORDS: Record<string, Record<string, Message>>;

/** What the files that are chosen may be called. */
const kinds = ".tsv,.csv,.txt,.jsonl,.ndjson,.gz";

/** Somebody else's words on one line. */
const line = (text: string): string => visible(text).replace(/[\t\n]/g, "\ufffd");

export class StarlingConsent extends HTMLElement {
  static observedAttributes = ["url", "token", "lang"];

  /** The visitor's part, once they have joined. */
  participation?: Participation;

  #source?: Source;
  #file?: File;
  #root = this.attachShadow({ mode: "open" });
  #asked = 0; // a later question has the say
  #who = "";
  #shown = "";

  /** Examples of the page's own; the visitor is asked for no file then. */
  set source(source: Source | undefined) {
    this.#source = source;
    this.#paint();
  }

  get source(): Source | undefined { return this.#source; }

  connectedCallback(): void { this.#ask(); }

  attributeChangedCallback(): void { if (this.isConnected) this.#ask(); }

  /** A visitor who leaves the page leaves the job. */
  disconnectedCallback(): void { this.participation?.close(); }

  /** Leaves the job at once. */
  leave(): void { this.participation?.stop(); }

  /** Asks the coordinator who asks, and shows it. A coordinator that is silent now says why when it is joined. */
  #ask(): void {
    const mine = ++this.#asked;
    this.#who = "";
    this.#paint();
    const job = new URL(this.getAttribute("url") ?? "", document.baseURI);
    job.hash = job.search = "";
    const base = job.href.replace(/\/+$/, "");
    fetch(`${base}/v1/job`, { credentials: "omit" }).then((r) => r.json() as Promise<{ asks?: { organisation?: string; purpose?: string } }>).then(({ asks }) => {
      if (mine !== this.#asked) return;
      // Somebody else's page cannot take the coordinator's word for what a domain has signed.
      this.#who = asks?.organisation ? `${this.#say("asks.who", { organisation: asks.organisation })}: ${this.#brief(asks.purpose ?? "")} (${this.#say("asks.unconfirmed")})`
        : this.#say("asks.nobody", { host: job.host });
      this.#paint();
    }, () => {});
  }

  get #words(): Record<string, Message> {
    const wanted = [this.getAttribute("lang"), ...navigator.languages].map((tag) => tag?.toLowerCase().split("-")[0] ?? "");
    return CONSENT_WORDS[wanted.find((tag) => Object.hasOwn(CONSENT_WORDS, tag)) ?? "en"]!;
  }

  #say(key: string, values: Record<string, string | number> = {}): string {
    const message = this.#words[key] ?? key;
    const text = typeof message === "string" ? message : message[new Intl.PluralRules(this.getAttribute("lang") || undefined).select(Number(values.n))] ?? message.other;
    return text.replace(/\{(\w+)\}/g, (_, name: string) => line(String(values[name] ?? "")));
  }

  /** Somebody else's words, which cannot change how others are read. */
  #brief(text: string): string { return line(text.slice(0, 300)); }

  async #join(): Promise<void> {
    const file = this.#file;
    try {
      const source = this.#source ?? (file && { fileName: file.name, data: new Uint8Array(await file.arrayBuffer()) });
      if (!source || this.participation) return;
      const part = this.participation = new Participation({
        url: this.getAttribute("url") ?? "", token: this.getAttribute("token") ?? undefined, source, trustLocal: this.hasAttribute("trust-local"),
        onChange: (p) => {
          this.participation ??= p;
          this.#paint();
          this.dispatchEvent(new CustomEvent("change", { detail: p }));
        },
      });
      this.dispatchEvent(new CustomEvent("finished", { detail: await part.finished }));
    } catch (error) {
      this.dispatchEvent(new CustomEvent("failed", { detail: error }));
      if (!(error instanceof StarlingError)) throw error;
    }
  }

  /** What the device does, in the visitor's language. */
  #doing(): string {
    const p = this.participation;
    if (!p) return "";
    const n = p.totals.rounds, round = p.event?.round ? this.#say("state.round", { round: p.event.round }) : "";
    if (p.standing === "failed") return `${this.#say("state.failed")} ${this.#brief(p.reason)}`;
    if (p.standing !== "running" && p.standing !== "pausing") return this.#say(`state.${p.standing}`, { n });
    const state = { fetching: "fetching", committed: "committed", refused: "declined", backoff: "connecting", finished: "over" }[p.event?.state as string] ?? p.event?.state ?? "starting";
    const doing = this.#say(`state.${state}`, { round: state === "committed" ? p.event?.round ?? 0 : round, n });
    return p.standing === "pausing" ? this.#say("state.pausing", { doing }) : doing;
  }

  /** What is asked for beyond a limit: in the visitor's language where it has words for it, else in the device's. */
  #limit(l: PolicyError): string {
    const { key, what, have } = l;
    const known = have === "0" && this.#words[`limit.${key}.none`] ? `limit.${key}.none` : `limit.${key}`;
    const own = ownLimit(l), limit = typeof own === "object" ? this.#say(own.message, { limit: own.limit }) : own;
    return `${this.#words[known] ? this.#say(known, { have }) : `${what}.`}${limit ? ` ${this.#say("limits.own", { limit })}` : ""}`;
  }

  #paint(): void {
    if (!this.isConnected) return;
    const p = this.participation, refused = p?.standing === "refused" || (p?.limits.length ?? 0) > 0 && p?.standing !== "stopped";
    const busy = p?.standing === "starting" || p?.standing === "running" || p?.standing === "pausing";
    const state = this.#root.querySelector("[role=status]");
    const stage = JSON.stringify([this.#who, p?.standing, refused && p?.limits, !!this.#source, this.getAttribute("lang")]);
    if (state && stage === this.#shown) { // nothing that has the focus is made anew
      state.textContent = this.#doing();
      return;
    }
    this.#shown = stage;
    const had = (this.#root.activeElement as HTMLElement | null)?.dataset.name;
    const button = (name: string, text: string, act: () => void, disabled = false) =>
      made("button", { type: "button", part: "button", "data-name": name, ...(disabled ? { disabled: "" } : {}) }, act, text);
    const body: HTMLElement[] = [made("p", { part: "text", id: "who" }, undefined, made("strong", {}, undefined, this.#who))];
    if (!p) {
      body.push(made("p", { part: "text" }, undefined, this.#say("trust") || browserTrust), made("p", { part: "text" }, undefined, this.#say("plain.stop")));
      if (!this.#source) {
        const input = made("input", { type: "file", accept: kinds, part: "file", "data-name": "file" });
        input.addEventListener("change", () => {
          this.#file = (input as HTMLInputElement).files?.[0];
          (this.#root.querySelector("[data-name=join]") as HTMLButtonElement).disabled = !this.#file;
        });
        body.push(made("p", {}, undefined, made("label", {}, undefined, `${this.#say("data.file")} `, input)));
      }
      body.push(made("p", {}, undefined, button("join", this.#say("join"), () => void this.#join(), !this.#source && !this.#file)));
    }
    if (p && refused) {
      const list = made("ul", { part: "limits" }, undefined, ...p.limits.map((l, i) => made("li", {}, undefined,
        made("label", {}, undefined, made("input", { type: "checkbox", "data-name": `limit-${i}` }, () => {
          const boxes = [...this.#root.querySelectorAll<HTMLInputElement>("[type=checkbox]")];
          (this.#root.querySelector("[data-name=accept]") as HTMLButtonElement).disabled = boxes.some((b) => !b.checked);
        }), " ", this.#limit(l)))));
      body.push(made("h2", { tabindex: "-1", "data-name": "limits" }, undefined, this.#say("limits.title")), made("p", { part: "text" }, undefined, this.#say("limits.decide")), list,
        made("p", {}, undefined, button("accept", this.#say("limits.accept"), () => p.accept(), true)));
    }
    if (p?.standing === "running") body.push(button("pause", this.#say("device.pause"), () => p.pause()));
    if (p?.standing === "paused") body.push(button("resume", this.#say("device.resume"), () => p.resume()));
    if (busy || p?.standing === "paused") body.push(button("stop", this.#say("device.stop"), () => p!.stop()));
    body.push(made("p", { role: "status", part: "state" }, undefined, this.#doing()));
    this.#root.replaceChildren(made("section", { "aria-labelledby": "who" }, undefined, ...body));
    const next = this.#root.querySelector<HTMLElement>(`[data-name="${refused && had ? "limits" : had}"]`) ?? (had ? this.#root.querySelector<HTMLElement>("button") : null);
    next?.focus();
  }
}

function made(tag: string, attributes: Record<string, string>, click?: () => void, ...children: (Node | string)[]): HTMLElement {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  if (click) e.addEventListener("click", click);
  e.append(...children);
  return e;
}

declare global {
  interface HTMLElementTagNameMap { "starling-consent": StarlingConsent }
}

if (!customElements.get("starling-consent")) customElements.define("starling-consent", StarlingConsent);
