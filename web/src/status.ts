// The coordinator's /v1/status as lines of text.

export interface Guarantee {
  epsilon: number;
  delta: number;
  accountant: string;
  adjacency: string;
}

export interface Status {
  job: string;
  round: number;
  rounds: number;
  state: string;
  rank: number;
  enrolled: number;
  connected: number;
  cohort: number;
  dropped: number;
  validation?: { rank: number; accuracy: number }[];
  simulated?: Guarantee | null;
  delivered?: Guarantee | null;
  visible?: Guarantee | null;
  clip_norm: number;
  private: boolean;
  bytes_up: number;
  bytes_down: number;
  reason?: string;
}

export function bytes(n: number): string {
  if (n < 1000) return `${n} B`;
  if (n < 1e6) return `${(n / 1e3).toFixed(1)} kB`;
  return `${(n / 1e6).toFixed(2)} MB`;
}

function guarantee(g: Guarantee): string {
  const unit = g.adjacency.includes("provider") ? "provider" : "device";
  return `ε ${g.epsilon.toPrecision(3)} at δ ${g.delta.toExponential(1)} for a ${unit} (${g.accountant})`;
}

export function statusLines(s: Status): [string, string][] {
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
