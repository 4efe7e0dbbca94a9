// What a job asks for beyond this device's policy: told sentence by sentence, and
// accepted one by one or not at all.
import type { Participation, PolicyError } from "../../edge/src/index.js";
import { byId, element, show } from "../dom.js";
import { t } from "../language/language.js";

let shown = "";

/** What protects a device although everybody else lies: see the policy's first keys. */
const alone = new Set(["own_noise", "bits"]);

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

function row(l: PolicyError, i: number): HTMLElement {
  const box = element("input", { type: "checkbox", id: `limit-${i}`, "aria-describedby": `why-${i}` });
  box.addEventListener("change", ready);
  return element("li", {}, box, element("label", { for: box.id }, element("b", {}, `${l.what[0]?.toUpperCase()}${l.what.slice(1)}.`),
    " ", t("limits.own", { limit: l.want })), element("p", { id: `why-${i}`, class: "soft small" }, `${l.why}.`));
}

function ready(): void {
  const boxes = [...byId("limits-list").querySelectorAll("input")];
  byId<HTMLButtonElement>("limits-accept").disabled = boxes.some((b) => !b.checked);
}
