// What joining means, for somebody who knows nothing of it: what leaves, what it costs, how
// to stop and what stays behind. Epsilon and delta stand one step below, in given.
import type { Quote } from "../../edge/src/index.js";
import type { About, Guarantee } from "../api.js";
import { weakFrom } from "../format.js";
import { number, t, Told } from "../language/language.js";
import { bytes, duration } from "./amounts.js";

/** What a visit fetches beside the base: this page and the program that trains, of which some jobs need all. */
const programBytes = 1.2e6, fullBytes = 1.72e6;

/** What is fetched once. */
export const download = (a: About): Told => bytes(a.base_bytes + (a.full ? fullBytes : programBytes));

/** Three lines of at most sixty words together; the test counts them and how hard they read. */
export function plain(a: About): [leaves: Told, costs: Told, stop: Told] {
  return [a.private ? t("plain.leaves", { n: a.shard_floor, noise: noise(a) }) : t("plain.open"), costs(a), t("plain.stop")];
}

/** What a round took in this page, on made-up examples, and how many examples there are. */
export interface Tried { quote: Quote; examples: number }

function costs(a: About): Told {
  if (!a.round) return t("plain.costs", { download: t("about", { amount: download(a) }) });
  return t("plain.costs.untried", { download: download(a), moved: bytes(a.round.up + a.round.down) });
}

/** What a round takes here: said below the data, so that nothing moves which somebody reads or aims at by then. */
export function here({ round }: About, { quote, examples }: Tried): Told {
  const own = round.epochs ? Math.min(round.steps, round.epochs * Math.ceil(examples / round.batch)) : round.steps;
  return t("data.here", { time: duration(Math.max(1, own * quote.step_seconds)), memory: bytes(quote.memory_bytes) });
}

/** What the noise is worth, as odds: the promise that holds against most, where it is worth being called one. */
function noise(a: About): Told {
  const who = a.protects === "provider" ? "provider" : "you", promised = a.visible ?? a.delivered;
  if (worth(a.untrusted) && !a.simulated) return t(`plain.own.${who}`, { times: times(a.untrusted.epsilon) });
  if (worth(promised) && !a.simulated) return t(`plain.promised.${who}`, { times: times(promised.epsilon) });
  return t(`plain.weak.${who}`);
}

const worth = (g: Guarantee | undefined): g is Guarantee => g !== undefined && g.epsilon > 0 && g.epsilon <= weakFrom;

/** The factor of an epsilon, rounded up to what can be said: never less than is so. */
function times(epsilon: number): Told {
  const factor = Math.exp(epsilon);
  const unit = 10 ** (Math.floor(Math.log10(factor)) - 1);
  const up = factor < 10 ? Math.ceil(factor * 10) / 10 : Math.ceil(factor / unit) * unit;
  return new Told(() => number(up));
}
