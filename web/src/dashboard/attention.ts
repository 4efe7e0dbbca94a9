// Shows what anyone who is on call must see first, where it changed.
import { byId, element } from "../dom.js";
import { unfold } from "./cards.js";
import type { Concern } from "./concerns.js";

let shown = "";

/** Shows concerns, or that there are none; yields how many are alarms. */
export function paintConcerns(found: Concern[]): number {
  const now = JSON.stringify(found);
  const alarms = found.filter((c) => c.level === "alarm").length;
  if (now === shown) return alarms;
  shown = now;
  const list = byId("attention"), at = list.contains(document.activeElement) ? document.activeElement?.getAttribute("href") : null;
  byId("attention-card").dataset.level = alarms ? "alarm" : found.length ? "warn" : "good";
  list.replaceChildren(...(found.length ? found.map(item) : [element("li", { class: "good" }, element("b", {}, "Nothing. "),
    "Checks pass, rounds are released, devices stay, no alarm in the log.")]));
  if (at) list.querySelector<HTMLElement>(`[href="${CSS.escape(at)}"]`)?.focus({ preventScroll: true }); // the keyboard keeps its place
  return alarms;
}

function item(c: Concern): HTMLElement {
  const made = element("li", { class: c.level }, element("b", {}, c.level === "alarm" ? "Alarm. " : "Look. "), c.what, ...(c.next ? [` ${c.next}`] : []));
  const card = c.card;
  if (card && document.getElementById(`card-${card}`)) {
    const go = element("a", { href: `#card-${card}` }, "Show");
    go.addEventListener("click", (event) => {
      event.preventDefault(); // the address has no room for it: what is behind its # is a token
      unfold(card);
      const at = byId(`card-${card}`);
      at.scrollIntoView({ block: "start" });
      at.querySelector<HTMLElement>("summary")?.focus({ preventScroll: true });
    });
    made.append(" ", go);
  }
  return made;
}
