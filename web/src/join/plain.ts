// What joining costs and how to stop, for somebody who knows nothing of it. The verdict is above, epsilon and delta are one
// step below, in given.
import type { Quote } from "../../edge/src/index.js";
import type { About, Guarantee } from "../api.js";
import { weakFrom } from "../format.js";
import { number, t, Told } from "../language/language.js";
import { bytes, duration } from "./amounts.js";

/** What a visit fetches beside the base: this page and the program that trains, of which some jobs need all. */
const programBytes = 1.2e6, fullBytes = 1.72e6;

/** What is fetched once. */
export const download = (a: About): number => a.base_bytes + (a.full ? fullBytes : programBytes);

/** What it costs and how to stop: with the verdict sixty words at most; the test counts them and how hard they read. */
export const plain = (a: About): [costs: Told, stop: Told] => [costs(a), t("plain.stop")];

function costs(a: About): Told {
  const first = download(a), like = known(first);
  if (!a.round) return t("plain.costs", { download: t("about", { amount: bytes(first) }), like });
  const moved = a.round.up + a.round.down;
  return t("plain.costs.untried", { download: bytes(first), like, moved: bytes(moved), each: known(moved) });
}

const photo = 3e6, song = 4e6, hour = 1e9; // bytes, of a phone's and of a film's

/** An amount beside what everybody has. */
export function known(n: number): Told {
  if (n < photo / 2) return t("like.less");
  if (n < 20 * photo) return t("like.photos", { n: Math.round(n / photo) });
  return n < hour ? t("like.songs", { n: Math.round(n / song) }) : t("like.hours", { n: Math.round(n / hour) });
}

/** What a round took in this page, on made-up examples, how many examples there are, and seconds from round to round. */
export interface Tried { quote: Quote; examples: number; pace?: number }

const day = 86_400;

/** What taking part takes here: said below the data, so that nothing moves which somebody reads or aims at by then. */
export function here({ round, rounds, sampling_rate: share }: About, { quote, examples, pace }: Tried): Told {
  const own = round.epochs ? Math.min(round.steps, round.epochs * Math.ceil(examples / round.batch)) : round.steps;
  const all = Math.max(1, own * quote.step_seconds) * Math.max(1, Math.ceil(rounds * share)), days = (pace ?? 0) * rounds / day;
  const memory = { memory: bytes(quote.memory_bytes), like: known(quote.memory_bytes) };
  return days > 1 ? t("data.here.day", { time: duration(Math.max(1, all / days)), ...memory }) : t("data.here.all", { time: duration(all), ...memory });
}

/** What the noise is worth, as odds: the promise that holds against most, where it is worth being called one. */
export function odds(a: About): Told {
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
