// Amounts and guarantees within the catalogue's sentences.
import type { Guarantee } from "../api.js";
import * as format from "../format.js";
import { number, t, Told } from "../language/language.js";

export const bytes = (n: number) => new Told(() => format.bytes(n));
export const percent = (share: number) => new Told(() => format.percent(share));
export const duration = (seconds: number) => new Told(() => format.duration(seconds, "long"));
export const seconds = (s: number) => new Told(() => number(s, { style: "unit", unit: "second" }));
export const significant = (x: number) => new Told(() => format.significant(x));
export const power = (x: number) => new Told(() => format.power(x));

export const rounds = (n: number) => t("n.rounds", { n });
export const devices = (n: number) => t("n.devices", { n });

/** An epsilon is never shown without its delta. */
export const bound = (g: Pick<Guarantee, "epsilon" | "delta">) => t("bound", { epsilon: significant(g.epsilon), delta: power(g.delta) });

/** From here on an epsilon limits nothing that anybody could conclude. */
const useless = 1e6;

/** What an epsilon lets somebody conclude, in words. */
export function meaning(g: Guarantee): Told {
  if (g.epsilon <= 0) return t("meaning.nothing");
  const factor = Math.exp(g.epsilon);
  return factor > useless ? t("meaning.useless") : t("meaning.times", { times: significant(factor) });
}
