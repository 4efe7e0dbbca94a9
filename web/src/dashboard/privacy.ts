// What the job has spent of its budget, and what the rest of it will cost: as the
// coordinator accounts it, never as a line drawn on.
import type { About, Forecast, Guarantee, RoundRecord, Status } from "../api.js";
import { byId, element } from "../dom.js";
import { bound, count, meaning, significant } from "../format.js";
import type { Concern } from "./concerns.js";
import { gist } from "./cards.js";
import { alignedTo, type Run } from "./compare.js";
import { spending } from "./figures.js";
import type { Line, Plot } from "./plot.js";

let shown = "";

/** The guarantees in words, with a meter each. */
export function paintGuarantees(p: Status, about: About | undefined): void {
  const now = JSON.stringify([p.private, p.simulated, p.delivered, p.public, p.coalition, p.visible, p.untrusted, about]);
  if (now === shown) return;
  shown = now;
  const lines: Node[] = [];
  const put = (name: string, spent?: Guarantee, whole?: Guarantee) => {
    if (!spent) return;
    const share = whole && whole.epsilon > 0 ? spent.epsilon / whole.epsilon : 0;
    const meter = element("progress", { max: "1", "aria-label": `${name}: share spent` });
    meter.value = Math.min(1, share);
    lines.push(element("p", {}, element("b", {}, name), ` ${bound(spent)}`, whole ? ` of ${significant(whole.epsilon)}` : ""), meter,
      element("p", { class: "soft small" }, spent.epsilon > 0 ? `So far ${meaning(spent)}.` : "Nothing has been spent yet."));
  };
  if (!p.private) lines.push(element("p", { class: "failed" }, "None: a reproducible run, or one without noise. It protects nobody."));
  put("Simulated population", p.simulated, about?.simulated);
  put(`${about?.protects === "provider" ? "Each provider" : "Each device"}, ${observed(p.delivered)}`, p.delivered, about?.delivered);
  put("Against those who see releases alone", p.public, about?.public);
  put("If devices tell whom they saw", p.coalition, about?.coalition);
  put("If who takes part is seen", p.visible, about?.visible);
  put("Without trust in this coordinator", p.untrusted, about?.untrusted);
  if (p.private && p.delivered && !p.untrusted) {
    lines.push(element("p", { class: "soft small" }, "Without trust in this coordinator: no bound. It says that it adds the noise."));
  }
  byId("privacy").replaceChildren(...lines);
  const [spent, whole] = p.simulated ? [p.simulated, about?.simulated] : [p.delivered, about?.delivered];
  gist("privacy", !p.private ? "nothing is promised" : spent ? `ε ${significant(spent.epsilon)}${whole ? ` of ${significant(whole.epsilon)}` : ""}` : "");
}

/** Whom an epsilon holds against. */
function observed(g: Guarantee | undefined): string {
  switch (g?.observer) {
    case "coalition": return `also if ${significant(100 * (g.coalition_share ?? 0))} % of the devices tell whom they saw`;
    case "participants": return "also if who takes part is seen";
    default: return "against the public";
  }
}

const which = (records: RoundRecord[]): "simulated" | "delivered" => records.some((r) => r.simulated) ? "simulated" : "delivered";

/** Spent and foretold epsilon beside the budget. */
export function paintSpending(plot: Plot, records: RoundRecord[], forecast: Forecast | undefined, about: About | undefined, other: Run | undefined): void {
  const of = which(records), s = spending(records, of, forecast);
  const budget = forecast?.epsilon ?? about?.[of]?.epsilon;
  const lines: Line[] = [{ label: "ε spent", values: s.spent, colour: 0 }];
  if (forecast && s.foretold.some((v) => v !== null)) lines.push({ label: "ε to come", values: s.foretold, colour: 2, kind: "bound" });
  if (budget !== undefined) lines.push({ label: "budget", values: s.x.map(() => budget), colour: 1, kind: "bound" });
  if (other) lines.push({ label: "the other run", values: alignedTo(s.x, other, other.epsilon), kind: "other" });
  plot.show(s.spent.some((v) => v !== null) ? s.x : [], lines,
    `${of === "simulated" ? "Of the simulated population" : "Of those who take part"}. What is to come is computed, not drawn on: each further round is accounted as the costliest that the job can draw.`);
  byId("foretold").textContent = forecast ? said(forecast) : "";
}

function said(f: Forecast): string {
  if (f.left === 0) return "All rounds are released: nothing more is spent.";
  const at = f.points.find((p) => p.rounds >= f.charged + f.affords)?.[f.bound === "simulated" ? "simulated" : "delivered"]?.epsilon;
  const end = at === undefined ? "" : `, and ends at ε ${significant(at)} of ${significant(f.epsilon)}`;
  if (f.affords >= f.left) return `The budget holds the ${count(f.left, "round")} left${end}.`;
  return `The budget holds ${count(f.affords, "more round")} of the ${f.left.toLocaleString("en")} left: ${count(f.left - f.affords, "round")} will be missing, as many as were paid for without a release.`;
}

/** What whoever is on call should know of the budget. */
export function budgetConcerns(f: Forecast | undefined, state: string): Concern[] {
  if (!f || f.left === 0 || f.affords >= f.left || state === "finished") return [];
  return [{ level: f.affords === 0 ? "alarm" : "warn", what: said(f), next: "It ends then with what there is; a larger budget is a new job from its checkpoint (adapter.start).", card: "privacy" }];
}
