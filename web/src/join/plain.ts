// What joining means, for somebody who knows nothing of it: what leaves, what it costs, how
// to stop and what stays behind. Epsilon and delta stand one step below, in format.given.
import type { About, Guarantee } from "../api.js";
import { bytes, weakFrom } from "../format.js";

/** What a visit fetches beside the base: this page and the program that trains. */
const programBytes = 1.13e6;

/** What is fetched once. */
export const download = (a: About) => `about ${bytes(a.base_bytes + programBytes)}`;

/** Three lines of at most sixty words together; the test counts them and how hard they read. */
export function plain(a: About): [leaves: string, costs: string, stop: string] {
  return [leaves(a), `Loads ${download(a)}, then more each round; training takes power and memory.`,
    "Stop anytime; what you sent stays in the model."];
}

function leaves(a: About): string {
  if (!a.private) return "Your data stays here, but what leaves can tell of it. Choose data that anybody may see.";
  return `Your data stays here. Masked updates leave, readable only as sums of ${a.shard_floor} or more devices. ${noise(a)}`;
}

/** What the noise is worth, as odds: the promise that holds against most, where it is worth being called one. */
function noise(a: About): string {
  const who = a.protects === "provider" ? "somebody in your file" : "you";
  const surer = (g: Guarantee) => `nobody gets over ${times(g.epsilon)} times surer that ${who} took part`;
  const promised = a.visible ?? a.delivered;
  if (worth(a.untrusted) && !a.simulated) return `Devices add noise: even if the operator adds none, ${surer(a.untrusted)}.`;
  if (worth(promised) && !a.simulated) return `If the operator keeps its word, ${surer(promised)}.`;
  return `Do not count on noise to hide that ${who} took part.`;
}

const worth = (g: Guarantee | undefined): g is Guarantee => g !== undefined && g.epsilon > 0 && g.epsilon <= weakFrom;

/** The factor of an epsilon, rounded up to what can be said: never less than is so. */
function times(epsilon: number): string {
  const factor = Math.exp(epsilon);
  if (factor < 10) return String(Math.ceil(factor * 10) / 10);
  const unit = 10 ** (Math.floor(Math.log10(factor)) - 1);
  return (Math.ceil(factor / unit) * unit).toLocaleString("en");
}
