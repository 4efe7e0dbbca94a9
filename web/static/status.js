// The coordinator's /v1/status as lines of text.
export function bytes(n) {
    if (n < 1000)
        return `${n} B`;
    if (n < 1e6)
        return `${(n / 1e3).toFixed(1)} kB`;
    return `${(n / 1e6).toFixed(2)} MB`;
}
function guarantee(g) {
    const unit = g.adjacency.includes("provider") ? "provider" : "device";
    return `ε ${g.epsilon.toPrecision(3)} at δ ${g.delta.toExponential(1)} for a ${unit} (${g.accountant})`;
}
export function statusLines(s) {
    const lines = [
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
    if (!s.private)
        lines.push(["Privacy", "none: reproducible run"]);
    if (s.simulated)
        lines.push(["Simulated", guarantee(s.simulated)]);
    if (s.delivered)
        lines.push(["Delivered", guarantee(s.delivered)]);
    if (s.visible)
        lines.push(["If participation is seen", guarantee(s.visible)]);
    lines.push(["Received", bytes(s.bytes_up)], ["Sent", bytes(s.bytes_down)]);
    return lines;
}
