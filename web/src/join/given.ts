// What the job gives to somebody who joins, with ε and δ: one step below the verdict.
import type { About } from "../api.js";
import { listed, t, Told } from "../language/language.js";
import { bound, devices, meaning, rounds } from "./amounts.js";
import { odds } from "./plain.js";

export function given(a: About): Told[] {
  if (!a.private) return [t("given.none")];
  const who = a.protects === "provider" ? "provider" : "you";
  const lines = [odds(a), t("given.sum", { n: a.shard_floor })], all = rounds(a.rounds);
  if (a.simulated) {
    if (a.delivered) lines.push(t("given.simulated.noise", { rounds: all, bound: bound(a.delivered), meaning: meaning(a.delivered) }));
    lines.push(t("given.simulated.size", { devices: devices(a.simulated_population ?? 0), bound: bound(a.simulated) }));
    return lines;
  }
  if (a.delivered) lines.push(t(`given.all.${who}`, { rounds: all, bound: bound(a.delivered), meaning: meaning(a.delivered) }));
  if (a.delivered?.observer === "coalition") {
    lines.push(t("given.coalition"));
  }
  if (a.visible) lines.push(t("given.visible", { bound: bound(a.visible) }));
  lines.push(a.untrusted ? t("given.untrusted", { bound: bound(a.untrusted) }) : t("given.word"));
  return lines;
}

/** What the log of enrolled keys proves of a shard: whom a device is hidden among. */
export function peersText(p: { devices: number; together: number; keys: number; later?: number; groups?: number } | undefined): Told {
  if (!p) return new Told(() => "–");
  return listed([t("peers", { n: p.devices, keys: p.keys, together: p.together }),
    ...(p.later ? [t("peers.later", { n: p.later })] : []),
    p.groups ? t("peers.groups", { n: p.groups }) : t("peers.chosen")]);
}
