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

interface Verdict { light: Light; title: Told; text: Told }

/** What is said of limits: undefined before they are known, null where the coordinator does not say enough for it. */
export function verdict(a: About, limits: Limits | undefined | null, trustLocal: boolean, groups: number): Verdict {
  if (!a.private) return { light: "bad", title: t("verdict.open"), text: t("verdict.open.text") };
  if (limits === undefined) return { light: "", title: t("verdict.asking"), text: t("verdict.asking.text") };
  if (limits === null) return { light: "", title: t("verdict.unchecked"), text: t("verdict.unchecked.text") };
  const bits = limits.example_bits, honesty = bits === undefined && (!trustLocal || limits.beyond.some((l) => alone.has(l.key)));
  const text = bits !== undefined ? most(a, bits) : honesty ? t("verdict.honesty.text") : t("verdict.own.text");
  if (honesty) return { light: "bad", title: t("verdict.honesty"), text };
  if (limits.beyond.length) return { light: "ask", title: t("verdict.more", { n: groups }), text };
  return { light: "good", title: bits === undefined ? t("verdict.own") : t("verdict.within"), text };
}

/** How much can leave about one example: never said smaller than it is. A character that a good model of the language foretells has about a bit. */
function most(a: About, bits: number): Told {
  const unit = 10 ** (Math.floor(Math.log10(bits)) - 1), up = Math.ceil(bits / unit * (1 - 1e-9)) * unit;
  const said = { bits: new Told(() => number(up, { maximumSignificantDigits: 3 })), n: Math.ceil(up) };
  return a.task === "image" || a.task === "listen" ? t("verdict.bits.answers", said) : t("verdict.bits", said);
}

/** A line that keeps the room of the longest that may be said there, so that nothing below it moves. */
function roomy(text: Told, others: Told[]): HTMLElement {
  const longest = new Told(() => [text, ...others].map(String).reduce((a, b) => a.length > b.length ? a : b));
  return element("span", { class: "roomy", "data-room": longest }, element("span", {}, text));
}

export function paintVerdict(a: About, { light, title, text }: Verdict): void {
  byId("given").dataset.light = light;
  byId("verdict-title").replaceChildren(roomy(title, [t("verdict.more", { n: 9 }), t("verdict.honesty")]));
  byId("verdict-text").replaceChildren(roomy(text, [most(a, 8888), t("verdict.unchecked.text"), t("verdict.own.text")]));
}
