// Who asks and what for, as the job's file says it, and the picture of what stays here and what leaves.
import type { About } from "../api.js";
import { brief, byId, element, say, show } from "../dom.js";
import { date, t, type Told } from "../language/language.js";

/** The most that is shown of a line: the job file's own limits, which a coordinator that lies need not keep. */
const mostOf = 300;

/** Whether the domain's signature is for this very address. */
const signedHere = (address: string, here: string): boolean => {
  const at = address.replace(/\/+$/, "");
  return here === at || here.startsWith(`${at}/`) || here.startsWith(`${at}#`);
};

/** A day as 2027-01-31, told; undefined where it is none. */
function day(text: string): Told | undefined {
  const at = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T12:00`) : NaN;
  if (Number.isNaN(at)) return undefined;
  return at + 864e5 < Date.now() ? t("asks.over", { day: date(at) }) : date(at);
}

export function paintAsks(a: About, here: string): void {
  const { asks } = a, host = new URL(here).host;
  const confirmed = asks?.domain !== undefined && a.verified === true && signedHere(asks.address ?? "", here);
  byId("asks").dataset.confirmed = String(confirmed);
  say("asks-title", asks?.organisation ? t("asks.who", { organisation: brief(asks.organisation, mostOf) }) : t("asks.nobody", { host }));
  say("asks-purpose", brief(asks?.purpose ?? "", mostOf));
  show("asks-confirmed", asks !== undefined);
  say("asks-confirmed", confirmed ? t("asks.confirmed", { domain: asks.domain ?? "" })
    : asks?.domain && asks.signature ? t("asks.refuted", { domain: brief(asks.domain, 80), host }) : t("asks.unconfirmed"));
  const lines = byId("asks-lines");
  lines.replaceChildren();
  const line = (name: Told, ...what: (Node | Told | string)[]) => lines.append(element("dt", {}, name), element("dd", { dir: "auto" }, ...what));
  if (asks?.receives) line(t("asks.receives"), brief(asks.receives, mostOf));
  const until = day(asks?.until ?? "");
  if (until) line(t("asks.until"), until);
  if (asks?.contact) line(t("asks.contact"), brief(asks.contact, mostOf));
  if (asks?.terms && /^https:\/\//.test(asks.terms)) {
    line(t("asks.terms"), element("a", { href: asks.terms, target: "_blank", rel: "noopener noreferrer" }, brief(asks.terms.slice("https://".length), 80)));
  }
  show("asks-lines", lines.childElementCount > 0);
  say("flow-update", a.private ? t("flow.update") : t("flow.bare"));
  say("flow-sum", a.private ? t("flow.sum", { n: a.shard_floor }) : t("flow.all"));
}
