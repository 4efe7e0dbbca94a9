// The coordinator's answers as text.
import type { About, Guarantee, Progress } from "./api.js";

export function bytes(n: number): string {
  if (n < 1000) return `${n} B`;
  if (n < 1e6) return `${(n / 1e3).toFixed(1)} kB`;
  return `${(n / 1e6).toFixed(2)} MB`;
}

function guarantee(g: Guarantee): string {
  const unit = g.adjacency.includes("provider") ? "provider" : "device";
  return `ε ${g.epsilon.toPrecision(3)} at δ ${g.delta.toExponential(1)} for a ${unit} (${g.accountant})`;
}

export function statusLines(s: Progress): [string, string][] {
  const lines: [string, string][] = [
    ["Round", `${s.round} of ${s.rounds}`],
    ["State", s.reason ? `${s.state}: ${s.reason}` : s.state],
    ["Rank", s.rank ? String(s.rank) : "–"],
    ["Devices", `${s.connected} connected, ${s.enrolled} enrolled`],
    ["Cohort", `${s.cohort}, ${s.dropped} dropped`],
    ["Clip norm", s.clip_norm.toPrecision(3)],
  ];
  if (s.validation?.length) {
    const best = s.validation.reduce((a, b) => (b.accuracy > a.accuracy ? b : a));
    lines.push(["Validation", `${(100 * best.accuracy).toFixed(1)} % at rank ${best.rank}`]);
  }
  if (!s.private) lines.push(["Privacy", "none: reproducible run"]);
  if (s.simulated) lines.push(["Simulated", guarantee(s.simulated)]);
  if (s.delivered) lines.push(["Delivered", guarantee(s.delivered)]);
  if (s.visible) lines.push(["If participation is seen", guarantee(s.visible)]);
  lines.push(["Received", bytes(s.bytes_up)], ["Sent", bytes(s.bytes_down)]);
  return lines;
}

/** What the job will give to somebody who joins, in plain sentences. */
export function promise(a: About): string[] {
  if (!a.private) return ["This run is a reproducible demonstration: every secret is known. It protects nobody."];
  const unit = a.protects === "provider" ? "each provider in your file" : "this device";
  const lines = [`Only the sum over at least ${a.shard_floor} devices can be read, never your update alone.`];
  if (a.simulated) {
    lines.push(`This job simulates the noise of ${(a.simulated_population ?? 0).toLocaleString("en")} devices: they would have ` +
      `${bound(a.simulated)} after all ${a.rounds} rounds. You do not: the noise that hides ${unit} is smaller` +
      (a.delivered ? ` (${bound(a.delivered)}).` : "."));
  } else if (a.delivered) {
    lines.push(`After all ${a.rounds} rounds the model protects ${unit} with ${bound(a.delivered)}.`);
  }
  if (a.visible) lines.push(`Against somebody who sees when you take part: ${bound(a.visible)}.`);
  return lines;
}

function bound(g: Guarantee): string {
  return `ε ≤ ${g.epsilon.toPrecision(3)} at δ ${g.delta.toExponential(1)}`;
}
