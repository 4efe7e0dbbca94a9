// Who may take part and who may look: invitations, links that show this run, and what
// operators did. A secret is shown once, when it is made.
import type { Acts, Added, Invitation, Invited, Operator } from "../api.js";
import { byId, element, message, say, show } from "../dom.js";
import { count } from "../format.js";
import { ask } from "./ask.js";
import type { Call } from "./call.js";

const actsAtOnce = 20;
const day = 24 * 3600;

const when = (t: string) => new Date(t).toLocaleString("en-GB", { dateStyle: "short", timeStyle: "short" });

/** Whether something that ends at t has ended. */
const over = (t: string) => Date.parse(t) <= Date.now();

export class Access {
  readonly #call: Call;
  #acts: Acts = { acts: [], head: "" };
  #from = 0;
  #turn = 0; // what another question has followed has no say any more

  constructor(call: Call) {
    this.#call = call;
    byId("card-access").addEventListener("toggle", () => void this.load());
    byId("invitation-form").addEventListener("submit", (event) => { event.preventDefault(); void this.#invite(); });
    byId("share-form").addEventListener("submit", (event) => { event.preventDefault(); void this.#share(); });
    for (const of of ["invitation", "share"]) byId(`${of}-copy`).addEventListener("click", () => void this.#copy(`${of}-link`));
    byId("acts-newer").addEventListener("click", () => { this.#from -= actsAtOnce; this.#paintActs(); });
    byId("acts-older").addEventListener("click", () => { this.#from += actsAtOnce; this.#paintActs(); });
  }

  /** Asks for all of it, where somebody looks. */
  async load(): Promise<void> {
    if (!byId<HTMLDetailsElement>("card-access").open || byId("access-section").hidden) return;
    const mine = ++this.#turn;
    try {
      const [invitations, operators, acts] = await Promise.all(["invitations.json", "operators.json", "acts.json"].map(async (p) => (await this.#call(p)).json() as Promise<unknown>));
      if (mine !== this.#turn) return;
      this.#paintInvitations(invitations as Invitation[]);
      this.#paintLinks((operators as Operator[]).filter((o) => o.role === "viewer"));
      this.#acts = acts as Acts;
      this.#paintActs();
      say("access-failed", "");
    } catch (error) {
      if (mine !== this.#turn) return;
      say("access-failed", `What is kept of access is not here: ${message(error)}`);
    }
  }

  #paintInvitations(all: Invitation[]): void {
    show("invitations", all.length > 0);
    byId("invitation-rows").replaceChildren(...all.toReversed().slice(0, 50).map((i) => {
      const ended = i.revoked ? "revoked" : i.used >= i.uses ? "used up" : over(i.expires) ? "expired" : "";
      const button = element("button", { type: "button", class: "quiet small", "aria-label": `Revoke invitation ${i.id}` }, "Revoke");
      button.addEventListener("click", () => void this.#end({ title: `Revoke invitation ${i.id}?`, text: "Nobody enrols by it any more. Who has, stays.", act: "Revoke it" }, `invitations/${i.id}/revoke`, "invitation-said"));
      return element("tr", {}, element("th", { scope: "row" }, String(i.id)), element("td", {}, i.note ?? ""), element("td", {}, `${i.used} of ${i.uses}`),
        element("td", {}, when(i.expires)), element("td", {}, ended || button));
    }));
  }

  #paintLinks(all: Operator[]): void {
    show("shares", all.length > 0);
    byId("share-rows").replaceChildren(...all.toReversed().slice(0, 50).map((o) => {
      const ended = o.revoked ? "revoked" : over(o.expires) ? "expired" : "";
      const button = element("button", { type: "button", class: "quiet small", "aria-label": `Revoke the link of ${o.name}` }, "Revoke");
      button.addEventListener("click", () => void this.#end({ title: `Revoke the link of ${o.name}?`, text: "It shows nothing any more, at once; a page that is open with it ends within seconds.", act: "Revoke it" },
        `operators/${encodeURIComponent(o.name)}/revoke`, "share-said"));
      return element("tr", {}, element("th", { scope: "row" }, o.name), element("td", {}, when(o.expires)), element("td", {}, ended || button));
    }));
  }

  #paintActs(): void {
    const all = this.#acts.acts.toReversed();
    this.#from = Math.max(0, Math.min(this.#from, all.length - 1));
    const shown = all.slice(this.#from, this.#from + actsAtOnce);
    show("acts", all.length > 0);
    byId("act-rows").replaceChildren(...shown.map((a) => element("tr", {}, element("th", { scope: "row" }, String(a.seq)), element("td", {}, when(a.at)), element("td", {}, a.by),
      element("td", {}, `${a.act} ${a.subject.replace(/\b([0-9a-f]{8})[0-9a-f]{56}\b/, "$1")}`))));
    show("acts-pages", all.length > actsAtOnce);
    byId<HTMLButtonElement>("acts-newer").disabled = this.#from === 0;
    byId<HTMLButtonElement>("acts-older").disabled = this.#from + actsAtOnce >= all.length;
    say("acts-head", all.length ? `${count(all.length, "act")}, each chained to the one before. The chain's head is ${this.#acts.head.slice(0, 16)}…: noted elsewhere, it shows a chain that was written anew.` : "Nothing was done yet.");
  }

  async #invite(): Promise<void> {
    const value = (id: string) => byId<HTMLInputElement>(id).value.trim();
    await this.#done("invitation-said", async () => {
      const made = (await (await this.#call("invitations", { note: value("invitation-note"), uses: Number(value("invitation-uses")), seconds: Math.round(Number(value("invitation-days")) * day) })).json()) as Invited;
      if (!made.link) throw new Error("it is made, but how devices reach this coordinator is not known: see starling token create --url");
      byId<HTMLInputElement>("invitation-link").value = made.link;
      show("invitation-code", made.svg !== undefined);
      byId<HTMLImageElement>("invitation-code").src = made.svg ? `data:image/svg+xml,${encodeURIComponent(made.svg)}` : "";
      show("invitation-made", true);
      return `Invitation ${made.id} is made, for ${count(made.uses, "device")} until ${when(made.expires)}. The link is shown this once.`;
    });
  }

  async #share(): Promise<void> {
    const name = byId<HTMLInputElement>("share-name").value.trim(), days = Number(byId<HTMLInputElement>("share-days").value);
    await this.#done("share-said", async () => {
      const made = (await (await this.#call("operators", { name, role: "viewer", seconds: Math.round(days * day) })).json()) as Added;
      // Behind the #: a browser sends it to nobody, and no log has it.
      byId<HTMLInputElement>("share-link").value = `${location.origin}${location.pathname}#${made.token}`;
      show("share-made", true);
      return `Whoever has this link sees this run, and changes nothing, until ${when(made.expires)}. It is shown this once.`;
    });
  }

  /** Asks, then ends something. */
  async #end(question: Parameters<typeof ask>[0], path: string, where: string): Promise<void> {
    if (await ask(question) === undefined) return;
    await this.#done(where, async () => {
      await this.#call(path, {});
      return "It is revoked.";
    });
    if (document.activeElement === document.body) byId(where === "share-said" ? "shares" : "invitations").focus(); // the button is gone with its row
  }

  async #done(where: string, act: () => Promise<string>): Promise<void> {
    try {
      say(where, await act());
    } catch (error) {
      say(where, `Not done: ${message(error)}.`);
    }
    await this.load();
  }

  async #copy(id: string): Promise<void> {
    const input = byId<HTMLInputElement>(id), where = id.startsWith("share") ? "share-said" : "invitation-said";
    try {
      await navigator.clipboard.writeText(input.value);
      say(where, "The link is copied.");
    } catch {
      input.select(); // the browser keeps the clipboard to itself
      say(where, "The link is selected: copy it.");
    }
  }
}
