// Numbers and guarantees as text.
import type { About, Guarantee } from "./api.js";

export function bytes(n: number): string {
  if (n < 1000) return `${n} B`;
  if (n < 1e6) return `${(n / 1e3).toFixed(n < 1e5 ? 1 : 0)} kB`;
  if (n < 1e9) return `${(n / 1e6).toFixed(1)} MB`;
  return `${(n / 1e9).toFixed(2)} GB`;
}

export function count(n: number, one: string, many = `${one}s`): string {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}

export function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

export function duration(seconds: number): string {
  if (seconds < 60) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  return `${Math.floor(seconds / 3600)} h ${Math.round(seconds % 3600 / 60)} min`;
}

/** An epsilon is never shown without its delta. */
export function bound(g: Guarantee): string {
  return `ε ${significant(g.epsilon)} (δ ${power(g.delta)})`;
}

export function significant(x: number): string {
  if (x >= 1e5) return power(x);
  return x >= 1000 ? Math.round(x).toLocaleString("en") : String(Number(x.toPrecision(3)));
}

export function power(x: number): string {
  const [digits, exponent] = x.toExponential(0).split("e");
  const raised = Number(exponent).toString().replace(/[-0-9]/g, (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)] ?? c);
  return `${digits === "1" ? "" : `${digits}·`}10${raised}`;
}

/** What an epsilon lets somebody conclude, in words. */
export function meaning(g: Guarantee): string {
  if (g.epsilon <= 0) return "nothing";
  const factor = Math.exp(g.epsilon);
  if (factor > 1e6) return "no useful limit to what can be concluded";
  return `whoever studies the model can be at most ${significant(factor)} times surer that one of them took part`;
}

/** What the job will give to somebody who joins: a title and sentences. */
export interface Given {
  level: "strong" | "weak" | "none";
  title: string;
  lines: string[];
}

/** Above this, a guarantee is not worth being called protection. */
export const weakFrom = 10;

export function given(a: About): Given {
  const who = a.protects === "provider" ? "each provider in your file" : "you";
  if (!a.private) {
    return { level: "none", title: "Not private: a demonstration", lines: [
      "Every secret of this run is seeded so that it can be repeated. Join with data that anybody may see.",
    ] };
  }
  const sum = `Your update is masked: only the sum of at least ${a.shard_floor} devices can be read, and noise is added to it.`;
  if (a.simulated) {
    const lines = [sum];
    if (a.delivered) lines.push(`What the noise gives you after all ${a.rounds} rounds: ${bound(a.delivered)}, ${meaning(a.delivered)}.`);
    lines.push(`The noise is made for ${count(a.simulated_population ?? 0, "device")}, which would have ${bound(a.simulated)}; ` +
      "this fleet is smaller.");
    return { level: "weak", title: "Simulated privacy: the masking protects you, the noise does not", lines };
  }
  const g = a.visible ?? a.delivered;
  const lines = [sum];
  if (a.delivered) lines.push(`After all ${a.rounds} rounds: ${bound(a.delivered)} for ${who}: ${meaning(a.delivered)}.`);
  if (a.visible) lines.push(`Against those who see when you take part: ${bound(a.visible)}.`);
  lines.push(a.untrusted ? `Whatever the coordinator does, by the noise that devices add: ${bound(a.untrusted)} at most.`
    : "All of this rests on the coordinator's word that it adds the noise.");
  if (!g || g.epsilon > weakFrom) {
    return { level: "weak", title: `Weak protection of ${who}`, lines };
  }
  return { level: "strong", title: `Protects ${who}${a.untrusted && a.untrusted.epsilon <= weakFrom ? ", also if the operator adds no noise" : ", by the operator's word"}`, lines };
}

/** What the log of enrolled keys proves of a shard: whom a device is hidden among. */
export function peersText(p: { devices: number; together: number; keys: number; later?: number; groups?: number } | undefined): string {
  if (!p) return "–";
  const text = `${count(p.devices, "device")} of ${p.keys.toLocaleString("en")} enrolled, ${p.together.toLocaleString("en")} of them within one minute of each other`;
  const later = p.later ? `; ${p.later.toLocaleString("en")} are newer than their coordinator says` : "";
  const how = p.groups ? `; dealt into one of ${count(p.groups, "group")} by their own keys` : "; chosen by the coordinator";
  return text + later + how;
}
