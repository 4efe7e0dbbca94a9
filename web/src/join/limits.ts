// What a job asks for beyond this device's policy: told sentence by sentence, and
// accepted one by one or not at all.
import type { Participation, PolicyError } from "../../edge/src/index.js";
import { byId, element, show } from "../dom.js";
import { listed, maybe, t, type Text } from "../language/language.js";

let shown = "";

/** What protects a device although everybody else lies: see the policy's first keys. */
const alone = new Set(["own_noise", "example_noise", "example_bits", "bits"]);

/** Shows what the participation was refused for; nothing where there is nothing. */
export function paintLimits(p: Participation): void {
  show("limits", p.limits.length > 0 && p.standing !== "stopped");
  const now = JSON.stringify(p.limits);
  if (now === shown) return;
  shown = now;
  show("limits-honesty", p.limits.some((l) => alone.has(l.key)));
  byId("limits-list").replaceChildren(...p.limits.map(row));
  ready();
  if (p.limits.length) byId("limits").focus();
}

/** Why a limit is there, by its key: those of one reason together. */
const whys: Record<string, string> = {
  shard: "shard", corrupt: "forged", breach_bits: "forged", semi_honest: "forged", unlogged: "forged", uplinks: "large", rank: "large", values: "large", clip_norm: "large",
  batch: "work", steps: "work", work: "work", memory: "memory", rounds: "rounds", epsilon: "rounds", own_noise: "honest", example_noise: "honest", example_bits: "honest", bits: "honest", bases: "base",
  tensors: "tensors", examples: "few", leak: "leak", not_private: "private",
};

/** Whose limit is no amount and no list: the sentence before it says all. */
const unsaid = new Set(["semi_honest", "unlogged", "not_private"]);

/** What is asked for and why that matters, in the page's language; one that the page does not know, in the device's words. */
function told({ key, what, why, have, want }: PolicyError): { what: Text; why: Text; limit?: Text } {
  const sentence = (have === "0" && maybe(`limit.${key}.none`)) || maybe(`limit.${key}`, { have }), reason = maybe(`why.${whys[key]}`);
  if (!sentence || !reason) return { what: `${what[0]?.toUpperCase()}${what.slice(1)}.`, why: `${why}.`, limit: want };
  const [, which, limit] = /^at (least|most) (\S+)/.exec(want) ?? [];
  return { what: sentence, why: reason, limit: unsaid.has(key) ? undefined : limit ? t(key === "breach_bits" ? "limit.chance" : which === "least" ? "limit.least" : "limit.most", { limit }) : want };
}

function row(l: PolicyError, i: number): HTMLElement {
  const box = element("input", { type: "checkbox", id: `limit-${i}`, "aria-describedby": `why-${i}` });
  box.addEventListener("change", ready);
  const { what, why, limit } = told(l);
  return element("li", {}, box, element("label", { for: box.id }, element("b", {}, listed([what])), ...(limit ? [" ", t("limits.own", { limit })] : [])),
    element("p", { id: `why-${i}`, class: "soft small" }, why));
}

function ready(): void {
  const boxes = [...byId("limits-list").querySelectorAll("input")];
  byId<HTMLButtonElement>("limits-accept").disabled = boxes.some((b) => !b.checked);
}
