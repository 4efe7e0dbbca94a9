// What a job asks for beyond this device's policy: a sentence for each reason, the limits and
// why they are there one step below, and one answer to all of it.
import type { Limits, Participation, PolicyError } from "../../edge/src/index.js";
import { ownLimit } from "../../edge/src/words.js";
import { byId, element, show } from "../dom.js";
import { listed, maybe, t, type Text } from "../language/language.js";

let shown = "";

/** Shows what a participation was refused for although nothing of it had shown before; nothing where there is nothing. */
export function paintLimits(p: Participation): void {
  show("limits", p.limits.length > 0 && p.standing !== "stopped");
  const now = JSON.stringify(p.limits);
  if (now === shown) return;
  shown = now;
  paintReasons("limits", p.limits);
  byId<HTMLInputElement>("limits-yes").checked = false;
  byId<HTMLButtonElement>("limits-accept").disabled = true;
  if (p.limits.length) byId("limits").focus();
}

byId("limits-yes").addEventListener("change", () => { byId<HTMLButtonElement>("limits-accept").disabled = !byId<HTMLInputElement>("limits-yes").checked; });

let asked = "";

/** Asks before Join for what a job is known to be beyond. Another question takes another answer. */
export function paintConsent({ beyond, granted }: Limits): void {
  show("consent", beyond.length > 0);
  show("consent-ask", !granted);
  show("consent-granted", granted === true);
  const now = JSON.stringify(beyond);
  if (now === asked) return;
  asked = now;
  byId<HTMLInputElement>("consent-yes").checked = false;
  paintReasons("consent", beyond);
}

function paintReasons(id: string, limits: PolicyError[]): void {
  const all = [...reasons(limits).entries()];
  byId(`${id}-list`).replaceChildren(...all.map(([reason, of]) => element("li", {}, summary(reason, of))));
  byId(`${id}-more`).replaceChildren(...all.map(([, of]) => element("li", {}, ...of.flatMap((l) => {
    const { what, limit } = told(l);
    return [element("p", {}, listed([what]), ...(limit ? [" ", t("limits.own", { limit })] : []))];
  }), element("p", { class: "soft" }, told(of[0]!).why))));
}

/** Why a limit is there, by its key: those of one reason are told together, in this order. */
const whys: Record<string, string> = {
  not_private: "private", own_noise: "honest", example_noise: "honest", example_bits: "honest", bits: "honest",
  corrupt: "forged", breach_bits: "forged", semi_honest: "forged", unlogged: "forged", shard: "shard", leak: "leak", bases: "base", tensors: "tensors", examples: "few",
  uplinks: "large", rank: "large", values: "large", clip_norm: "large", batch: "work", steps: "work", work: "work", memory: "memory", rounds: "rounds", epsilon: "rounds",
};

/** Limits by their reasons. Where no noise is the device's own, that says also why nothing bounds what could be told. */
export function reasons(limits: PolicyError[]): Map<string, PolicyError[]> {
  const order = Object.keys(whys), place = (l: PolicyError) => (order.indexOf(l.key) + order.length + 1) % (order.length + 1);
  const none = limits.some((l) => l.key === "own_noise" && l.have === "0");
  const found = new Map<string, PolicyError[]>();
  for (const l of limits.toSorted((a, b) => place(a) - place(b))) {
    const reason = whys[l.key] ?? l.key;
    if (none && reason === "honest" && l.key !== "own_noise") continue;
    found.set(reason, [...found.get(reason) ?? [], l]);
  }
  return found;
}

function summary(reason: string, [first]: PolicyError[]): Text {
  const none = reason === "honest" && first!.key === "own_noise" && first!.have === "0";
  return maybe(`consent.${reason}${none ? ".none" : ""}`, { have: first!.have }) ?? listed([told(first!).what]);
}

/** What is asked for and why that matters, in the page's language; one that the page does not know, in the device's words. */
function told(l: PolicyError): { what: Text; why: Text; limit?: Text } {
  const { key, what, why, have, want } = l;
  const sentence = (have === "0" && maybe(`limit.${key}.none`)) || maybe(`limit.${key}`, { have }), reason = maybe(`why.${whys[key]}`);
  if (!sentence || !reason) return { what: `${what[0]?.toUpperCase()}${what.slice(1)}.`, why: `${why}.`, limit: want };
  const own = ownLimit(l);
  return { what: sentence, why: reason, limit: typeof own === "object" ? t(own.message, { limit: own.limit }) : own };
}
