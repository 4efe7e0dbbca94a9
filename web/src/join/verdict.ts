// What this device says of a job before data are chosen: one verdict, by its own policy and its own arithmetic.
// What a job asks for beyond that is asked once, before Join, in consent.
import type { Limits } from "../../edge/src/index.js";
import type { About } from "../api.js";
import { byId, element } from "../dom.js";
import { number, t, Told } from "../language/language.js";

/** What protects a device although everybody else lies: see the policy's first keys. */
const alone = new Set(["own_noise", "example_noise", "example_bits", "bits"]);

/** Green, amber and red; "" is not known yet. */
type Light = "good" | "ask" | "bad" | "";

interface Verdict { light: Light; title: Told; text: Told; bits?: number }

/** What is said of limits: undefined before they are known, null where the coordinator does not say enough for it. */
export function verdict(a: About, limits: Limits | undefined | null, trustLocal: boolean, groups: number): Verdict {
  if (!a.private) return { light: "bad", title: t("verdict.open"), text: t("verdict.open.text") };
  if (limits === undefined) return { light: "", title: t("verdict.asking"), text: t("verdict.asking.text") };
  if (limits === null) return { light: "", title: t("verdict.unchecked"), text: t("verdict.unchecked.text") };
  const bits = limits.example_bits, honesty = bits === undefined && (!trustLocal || limits.beyond.some((l) => alone.has(l.key)));
  const text = bits !== undefined ? most(a, bits) : honesty ? t("verdict.honesty.text") : t("verdict.own.text");
  if (honesty) return { light: "bad", title: t("verdict.honesty"), text };
  if (limits.beyond.length) return { light: "ask", title: t("verdict.more", { n: groups }), text, bits };
  return { light: "good", title: bits === undefined ? t("verdict.own") : t("verdict.within"), text, bits };
}

/** Bits as they are said: never smaller than they are. */
function up(bits: number): number {
  const unit = 10 ** (Math.floor(Math.log10(bits)) - 1);
  return Math.ceil(bits / unit * (1 - 1e-9)) * unit;
}

/** Whether a task's examples are texts, of which a character has about a bit for a good model of the language. */
const ofTexts = (a: About) => a.task !== "image" && a.task !== "listen";

/** How much can leave about one example. */
function most(a: About, bits: number): Told {
  const said = { bits: new Told(() => number(up(bits), { maximumSignificantDigits: 3 })), n: Math.ceil(up(bits)) };
  return ofTexts(a) ? t("verdict.bits", said) : t("verdict.bits.answers", said);
}

const line = 80; // characters

/** The same as so many of a line's characters; as all where nothing bounds it; undefined: that is not known, or does not matter. */
export const ofLine = ({ light, bits }: Verdict): number | undefined =>
  light === "bad" ? line : bits === undefined ? undefined : Math.min(line, Math.ceil(up(bits)));

function picture(n: number): HTMLElement {
  const made = element("span", { class: "line", ...n < line ? { role: "img", "aria-label": t("verdict.picture", { n }) } : { "aria-hidden": "true" } }, element("i", {}));
  made.style.setProperty("--of", String(n));
  return made;
}

/** A line that keeps the room of the longest that may be said there, so that nothing below it moves. */
function roomy(text: Told, others: Told[]): HTMLElement {
  const longest = new Told(() => [text, ...others].map(String).reduce((a, b) => a.length > b.length ? a : b));
  return element("span", { class: "roomy", "data-room": longest }, element("span", {}, text));
}

export function paintVerdict(a: About, of: Verdict): void {
  const { light, title, text } = of, n = ofLine(of);
  byId("given").dataset.light = light;
  byId("verdict-title").replaceChildren(roomy(title, [t("verdict.more", { n: 9 }), t("verdict.honesty")]));
  byId("verdict-text").replaceChildren(roomy(text, [most(a, 8888), t("verdict.unchecked.text"), t("verdict.own.text")]));
  byId("verdict-picture").replaceChildren(...(ofTexts(a) && n !== undefined ? [picture(n)] : []));
}
