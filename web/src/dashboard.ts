// The operator's dashboard: what the coordinator streams, as it comes.
import "./dashboard.css";
import type { About, Guarantee, Occurrence, Overview, RankAccuracy, RoundRecord, Status } from "./api.js";
import { concerns, paintConcerns, type Check } from "./dashboard/attention.js";
import { foldCards, gist } from "./dashboard/cards.js";
import { RoundChart } from "./dashboard/charts.js";
import { CohortMap } from "./dashboard/cohort.js";
import { addEvents, forgetEvents, knownEvents, paintEvents } from "./dashboard/events.js";
import { soon } from "./dashboard/frames.js";
import { Fleet } from "./dashboard/fleet.js";
import { History } from "./dashboard/history.js";
import { offerInvitation } from "./dashboard/invite.js";
import { remaining } from "./dashboard/pace.js";
import { paintParts, partLines } from "./dashboard/parts.js";
import { follow, type Link } from "./dashboard/stream.js";
import { brief, byId, element, message, say, show, visible } from "./dom.js";
import { bound, bytes, count, duration, meaning, percent, significant } from "./format.js";

const tokenKey = "starling-admin";
foldCards();
const cohort = new CohortMap();
const past = new History();
const accuracyChart = new RoundChart("accuracy-chart", "Accuracy by rank over rounds", percent);
const lossChart = new RoundChart("loss-chart", "Validation loss by rank over rounds", (v) => v.toFixed(2));
const privacyChart = new RoundChart("privacy-chart", "Epsilon spent over rounds", significant);
const trafficChart = new RoundChart("traffic-chart", "Bytes of a device in a round, by part", bytes);
const timeChart = new RoundChart("time-chart", "Seconds a round", (v) => v < 10 ? `${v.toFixed(1)} s` : duration(v));

let about: About | undefined;
let progress: Status | undefined;
let closesAt = 0;
let stop = new AbortController();

// ---- the token

/** Taken from the address once, then kept for this tab only. */
function takeToken(): string {
  const given = location.hash.slice(1);
  if (given) {
    history.replaceState(null, "", location.pathname);
    try { sessionStorage.setItem(tokenKey, given); } catch { /* the next reload asks again */ }
    return given;
  }
  try { return sessionStorage.getItem(tokenKey) ?? ""; } catch { return ""; }
}

let token = takeToken();

// ---- what is streamed

function link(state: Link, why = "", again = 0): void {
  const over = progress?.state === "finished";
  byId("dot").dataset.state = state === "lost" && over ? "over" : state;
  show("denied", state === "denied");
  if (state === "denied") {
    show("content", false);
    say("denied-why", token ? why : "");
    say("live", "The token is needed");
    byId("token").focus();
    return;
  }
  if (state === "live") {
    say("live", over ? "The job is over" : "Live");
    show("content", true);
  } else if (state === "lost") {
    say("live", over ? "The job is over; the coordinator has ended. What stands here is its last word."
      : `Disconnected: ${why}. What stands here is old; trying again${again > 3000 ? ` in ${duration(again / 1000)}` : ""}.`);
  }
}

function on(event: string, data: unknown): void {
  switch (event) {
    case "overview":
      return overview(data as Overview);
    case "rounds":
      for (const r of data as RoundRecord[]) records.set(r.round, r);
      inOrder = undefined;
      return soon("rounds", paintRounds);
    case "events":
      return addEvents(data as Occurrence[]);
  }
}

function overview(o: Overview): void {
  const p = progress = o.progress;
  closesAt = o.state_left_ms ? Date.now() + o.state_left_ms : 0;
  say("job", p.job);
  say("round", p.round ? String(p.round) : "–");
  say("round-of", `${p.version} of ${p.rounds} made`);
  say("state", p.state);
  say("rank", p.cohort ? String(p.rank) : "–");
  say("devices", String(p.connected));
  say("devices-of", `of ${count(p.enrolled, "device")} connected${p.cohort ? `; ${p.cohort} drawn for this round, ${p.absent} not there, ${p.dropped} dropped` : ""}`);
  const bar = byId<HTMLProgressElement>("rounds");
  bar.max = Math.max(1, p.rounds);
  bar.value = p.version;
  const { left, how } = remaining(p, ordered());
  say("remaining", left);
  say("remaining-of", how);
  soon("attention", attend);
  say("reason", p.reason ?? "");
  byId("reason").classList.toggle("failed", p.state === "abandoned" || (p.state === "finished" && p.version < p.rounds));
  gist("traffic", `${bytes(p.bytes_up + p.bytes_down)} in all`);
  say("traffic", `${bytes(p.bytes_up)} received, ${bytes(p.bytes_down)} sent since the job began.`);
  paintParts(p, ordered());
  cohort.show(o.cohort, o.browsers);
  fleet.stale(p.enrolled);
  privacy(p);
}

// ---- what needs somebody

let checks: Check[] = [];

function attend(): void {
  if (!progress) return;
  const alarms = paintConcerns(concerns({ now: Date.now(), progress, records: ordered(), lines: knownEvents(), checks }));
  document.title = `${alarms ? `(${alarms}) ` : ""}${visible(brief(progress.job, 60))} · Starling`;
}

/** Asks what the coordinator needs to make rounds: where something is amiss it answers 503, and says what. */
async function check(): Promise<void> {
  if (!progress || progress.state === "finished") return;
  try {
    const response = await fetch("v1/admin/ready.json", { headers: { Authorization: `Bearer ${token}` } });
    if (response.ok || response.status === 503) checks = ((await response.json()) as { checks: Check[] }).checks;
  } catch { /* the stream tells of a coordinator that is gone */ }
  soon("attention", attend);
}

let privacyShown = "";

function privacy(p: Status): void {
  const now = JSON.stringify([p.private, p.simulated, p.delivered, p.visible, p.untrusted, about]);
  if (now === privacyShown) return;
  privacyShown = now;
  const lines: Node[] = [];
  const put = (name: string, spent?: Guarantee, whole?: Guarantee) => {
    if (!spent) return;
    const share = whole && whole.epsilon > 0 ? spent.epsilon / whole.epsilon : 0;
    const meter = element("progress", { max: "1", "aria-label": `${name}: share spent` });
    meter.value = Math.min(1, share);
    lines.push(element("p", {}, element("b", {}, name), ` ${bound(spent)}`, whole ? ` of ${significant(whole.epsilon)}` : ""), meter,
      element("p", { class: "soft small" }, spent.epsilon > 0 ? `So far ${meaning(spent)}.` : "Nothing has been spent yet."));
  };
  if (!p.private) lines.push(element("p", { class: "failed" }, "None: a reproducible run, or one without noise. It protects nobody."));
  put("Simulated population", p.simulated, about?.simulated);
  put(about?.protects === "provider" ? "Each provider" : "Each device", p.delivered, about?.delivered);
  put("If who takes part is seen", p.visible, about?.visible);
  put("Without trust in this coordinator", p.untrusted, about?.untrusted);
  if (p.private && p.delivered && !p.untrusted) {
    lines.push(element("p", { class: "soft small" }, "Without trust in this coordinator: no bound. It says that it adds the noise."));
  }
  byId("privacy").replaceChildren(...lines);
  const [spent, whole] = p.simulated ? [p.simulated, about?.simulated] : [p.delivered, about?.delivered];
  gist("privacy", !p.private ? "none" : spent ? `ε ${significant(spent.epsilon)}${whole ? ` of ${significant(whole.epsilon)}` : ""}` : "");
}

/** The rounds that are over, by number; the stream tells what is new or has changed. */
const records = new Map<number, RoundRecord>();
let inOrder: RoundRecord[] | undefined;

/** The records, the oldest first. */
const ordered = () => inOrder ??= [...records.values()].sort((a, b) => a.round - b.round);

function paintRounds(): void {
  const all = ordered();
  if (progress?.state !== "finished") fleet.stale(); // strikes come with rounds
  const made = all.filter((r) => r.released);
  if (progress) paintParts(progress, all);
  past.show(all);
  soon("attention", attend);
  const x = made.map((r) => r.version);
  const ranks = [...new Set(made.flatMap((r) => r.accuracy?.map((a) => a.rank) ?? []))].sort((a, b) => a - b);
  show("accuracy-empty", ranks.length === 0);
  const byRank = (of: (measured: RankAccuracy) => number | undefined) => ranks.map((rank) => ({
    label: rank ? `Rank ${rank}` : "Head alone",
    values: made.map((r) => r.accuracy?.find((a) => a.rank === rank)).map((measured) => measured ? of(measured) ?? null : null),
  }));
  soon("accuracy", () => accuracyChart.show(x, byRank((a) => a.accuracy)));
  const losses = made.some((r) => r.accuracy?.some((a) => a.loss));
  show("loss", losses);
  soon("loss", () => lossChart.show(losses ? x : [], byRank((a) => a.loss)));
  const which: "simulated" | "delivered" = made.some((r) => r.simulated) ? "simulated" : "delivered";
  const budget = about?.[which]?.epsilon;
  soon("privacy", () => privacyChart.show(made.some((r) => r[which]) ? x : [], [
    { label: `ε, ${which}`, values: made.map((r) => r[which]?.epsilon ?? null) },
    ...(budget ? [{ label: "ε after all rounds", values: x.map(() => budget), dash: true }] : []),
  ]));
  soon("traffic", () => trafficChart.show(x, partLines(made)));
  soon("time", () => timeChart.show(x, [{ label: "Seconds", values: made.map((r) => r.seconds) }]));
}

// ---- downloads

/** Asks the operator's endpoints, with the token as a header. */
async function call(path: string, options: RequestInit = {}): Promise<Response> {
  const response = await fetch(`v1/admin/${path}`, { ...options, headers: { Authorization: `Bearer ${token}` } });
  if (!response.ok) throw new Error((await response.text()).trim() || `the coordinator answers ${response.status}`);
  return response;
}

const fleet = new Fleet(call);
offerInvitation(call);

async function download(file: string): Promise<void> {
  say("download-state", "");
  try {
    const response = await call(file);
    const address = URL.createObjectURL(await response.blob());
    element("a", { href: address, download: file.split("/").at(-1) ?? file }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
    say("download-state", `${file.split("/").at(-1)} is downloaded.`);
  } catch (error) {
    say("download-state", `Not downloaded: ${message(error)}`);
  }
}

/** The job file, asked for once it is looked at. */
async function configuration(): Promise<void> {
  if (!byId<HTMLDetailsElement>("job-file").open || byId("job-text").textContent) return;
  say("job-failed", "");
  try {
    say("job-text", await (await call("job.yaml")).text());
  } catch (error) {
    say("job-failed", `It cannot be had: ${message(error)}`);
  }
}

/** Says as whom one sees this, and leaves out what is not for the role. */
async function introduce(): Promise<void> {
  const { name, role } = (await (await call("who.json")).json()) as { name: string; role: string };
  say("who", `for ${name}, ${role}`);
  show("invite-section", role !== "viewer");
  fleet.judges = role !== "viewer";
}

async function begin(): Promise<void> {
  stop.abort();
  stop = new AbortController();
  forgetEvents();
  records.clear();
  inOrder = undefined;
  say("who", "");
  if (!token) return link("denied");
  checks = [];
  introduce().catch(() => undefined); // who is refused hears so of each act, and the stream tells of the token
  void fetch("v1/job").then(async (r) => {
    if (r.ok) about = (await r.json()) as About;
    if (progress) privacy(progress);
  }).catch(() => undefined); // the guarantees' wholes are left out then
  await follow({ url: "v1/admin/events", token, on, link: (s, why, again) => {
    if (s === "lost") { // they are told again from the start
      forgetEvents();
      records.clear();
      inOrder = undefined;
  inOrder = undefined;
    }
    link(s, why, again);
  } }, stop.signal);
}

byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token = byId<HTMLInputElement>("token").value.trim().replace(/^.*#/, "");
  try { sessionStorage.setItem(tokenKey, token); } catch { /* the next reload asks again */ }
  void begin();
});
byId("warnings").addEventListener("change", paintEvents);
byId("job-file").addEventListener("toggle", () => void configuration());
byId("downloads").addEventListener("click", (event) => {
  const file = (event.target as HTMLElement).dataset.file;
  if (file) void download(file);
});
setInterval(() => void check(), 15_000);
setInterval(() => say("left", closesAt > Date.now() ? `closes in ${duration((closesAt - Date.now()) / 1000)}` : ""), 500);
void begin();
