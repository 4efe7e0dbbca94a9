// The operator's dashboard: what the coordinator streams, as it comes.
import "./dashboard.css";
import type { About, Check, Forecast, Occurrence, Overview, RoundRecord, Status } from "./api.js";
import { Access } from "./dashboard/access.js";
import { readyToAsk } from "./dashboard/ask.js";
import { paintConcerns } from "./dashboard/attention.js";
import { caller, Denied } from "./dashboard/call.js";
import { foldCards, gist } from "./dashboard/cards.js";
import { CohortMap } from "./dashboard/cohort.js";
import { Comparison } from "./dashboard/compare.js";
import { concerns } from "./dashboard/concerns.js";
import { addEvents, forgetEvents, knownEvents, paintEvents } from "./dashboard/events.js";
import { soon } from "./dashboard/frames.js";
import { Fleet } from "./dashboard/fleet.js";
import { History } from "./dashboard/history.js";
import { offerInvitation } from "./dashboard/invite.js";
import { ended, made, remaining } from "./dashboard/pace.js";
import { asRun, Panels } from "./dashboard/panels.js";
import { paintParts } from "./dashboard/parts.js";
import { budgetConcerns, paintGuarantees } from "./dashboard/privacy.js";
import { offerSignIn, readyToSignOut } from "./dashboard/signin.js";
import { Steering } from "./dashboard/steer.js";
import { follow, type Link } from "./dashboard/stream.js";
import { brief, byId, element, message, say, show, visible } from "./dom.js";
import { bytes, count, duration } from "./format.js";
import { keepToken, takeToken } from "./token.js";

const checkEvery = 15_000; // ms
const introduceAgain = 3000; // ms after a failure
const foretellAfter = 1500; // ms after a round: they may follow one another fast

/** Lets the page draw and answer between two pieces of its beginning, which together are longer than a task may be. */
const breath = () => new Promise<void>((on) => { setTimeout(on); });

let token = takeToken();
await breath();
foldCards();
await breath();
readyToAsk();

const call = caller(() => token);
const cohort = new CohortMap();
const past = new History();
await breath();
const panels = new Panels();
await breath();
const fleet = new Fleet(call);
const access = new Access(call);
const steering = new Steering(call);
const comparison = new Comparison(() => repaint());
offerInvitation(call);

let about: About | undefined;
let forecast: Forecast | undefined;
let progress: Status | undefined;
let checks: Check[] = [];
let closesAt = 0;
let stop = new AbortController();

/** The rounds that are over, by number; the stream tells what is new or has changed. */
const records = new Map<number, RoundRecord>();
let inOrder: RoundRecord[] | undefined;

/** The records, the oldest first. */
const ordered = () => inOrder ??= [...records.values()].sort((a, b) => a.round - b.round);

function forget(): void {
  forgetEvents();
  records.clear();
  inOrder = undefined;
}

// ---- what is streamed

function link(state: Link, why = "", again = 0): void {
  const over = progress && ended(progress);
  byId("dot").dataset.state = state === "lost" && over ? "over" : state;
  byId("live").classList.toggle("failed", state === "lost" && !over);
  show("denied", state === "denied");
  if (state === "denied" || state === "live") void offerSignIn(token, state === "denied");
  if (state === "denied") {
    show("content", false);
    say("denied-why", token ? why : "");
    say("live", "The token is needed");
    byId("token").focus();
    return;
  }
  if (state === "live") {
    say("live", over ?? "Live");
    show("content", true);
  } else if (state === "lost") {
    say("live", over ? `${over.replace(/\.$/, "")}; the coordinator has ended. What stands here is its last word.`
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
      return soon("rounds", rounds);
    case "events":
      return addEvents(data as Occurrence[]);
  }
}

function overview(o: Overview): void {
  const p = progress = o.progress;
  closesAt = o.state_left_ms ? Date.now() + o.state_left_ms : 0;
  say("job", p.job);
  say("round", p.round ? String(p.round) : "–");
  say("round-of", made(p));
  say("state", p.state);
  say("rank", p.cohort ? String(p.rank) : "–");
  say("devices", String(p.connected));
  say("devices-of", `of ${count(p.enrolled, "device")} connected${p.cohort ? `; ${p.cohort} drawn for this round, ${p.absent} not there, ${p.dropped} dropped` : ""}`);
  const bar = byId<HTMLProgressElement>("rounds");
  bar.max = Math.max(1, p.rounds);
  bar.value = p.version;
  say("reason", p.reason ?? "");
  byId("reason").classList.toggle("failed", p.state === "abandoned" || (p.state === "finished" && p.version < p.rounds));
  gist("traffic", `${bytes(p.bytes_up + p.bytes_down)} in all`);
  say("traffic", `${bytes(p.bytes_up)} received, ${bytes(p.bytes_down)} sent since the job began.`);
  cohort.show(o.cohort, o.browsers);
  fleet.stale(p.enrolled);
  steering.over(ended(p) !== undefined);
  steering.awaits(p.beginning);
  paintGuarantees(p, about);
  soon("now", now);
  soon("attention", attend);
}

/** What the state and the rounds say together, of which either may come later. */
function now(): void {
  if (!progress) return;
  const { left, how } = remaining(progress, ordered());
  say("remaining", left);
  say("remaining-of", how);
  paintParts(progress, ordered());
}

/** Rounds that are over, or measured, since. */
function rounds(): void {
  if (!progress || !ended(progress)) fleet.stale(); // strikes come with rounds
  past.show(ordered());
  soon("now", now);
  foretelling ??= setTimeout(() => { foretelling = undefined; void foretell(); }, foretellAfter);
  repaint();
}

function repaint(): void {
  panels.show(ordered(), about, forecast, comparison.run);
  soon("compare", () => { if (comparison.run) comparison.paint(asRun(ordered())); });
  soon("attention", attend);
}

// ---- what needs somebody

function attend(): void {
  if (!progress) return;
  const found = [...budgetConcerns(forecast, progress.state),
    ...concerns({ now: Date.now(), progress, records: ordered(), lines: knownEvents(), checks })];
  const alarms = paintConcerns(found);
  document.title = `${alarms ? `(${alarms}) ` : ""}${visible(brief(progress.job, 60))} · Starling`;
}

/** Asks what the coordinator needs to make rounds: where something is amiss it answers 503, and says what. */
async function check(): Promise<void> {
  if (!progress || ended(progress)) return;
  try {
    const response = await fetch("v1/admin/ready.json", { headers: { Authorization: `Bearer ${token}` }, cache: "no-store" });
    if (response.ok || response.status === 503) checks = ((await response.json()) as { checks: Check[] }).checks;
  } catch { /* the stream tells of a coordinator that is gone */ }
  soon("attention", attend);
}

let foretelling: number | undefined;
let foretold = -1; // rounds that were over when it was asked last

/** Asks what the rest will cost, once for each number of rounds. */
async function foretell(): Promise<void> {
  const n = records.size;
  if (!progress?.private || n === foretold) return;
  foretold = n;
  try {
    const said = ((await (await call("forecast.json")).json()) as Forecast | null) ?? undefined;
    if (foretold !== n) return; // a later one is asked for
    forecast = said;
  } catch {
    if (foretold === n) foretold = -1; // with the next round again
    return;
  }
  repaint();
}

// ---- files

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

// ---- begin

/** Says as whom one sees this, and leaves out what is not for the role: asked until it is known. */
async function introduce(over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    try {
      const { name, role, job } = (await (await call("who.json")).json()) as { name: string; role: string; job?: string };
      if (over.aborted) return; // it was of another token
      const acts = role !== "viewer";
      say("who", `for ${name}, ${role}`);
      show("access-section", acts);
      show("fleet-section", !job); // who was shown one job sees no devices of others
      fleet.hidden = Boolean(job);
      fleet.judges = steering.steers = acts;
      return void await Promise.all([access.load(), steering.load()]);
    } catch (error) {
      if (error instanceof Denied) return; // the stream tells of the token
      await new Promise((on) => { setTimeout(on, introduceAgain); });
    }
  }
}

async function begin(): Promise<void> {
  stop.abort();
  stop = new AbortController();
  forget();
  checks = [];
  forecast = undefined;
  foretold = -1;
  say("who", "");
  if (!token) return link("denied");
  fleet.judges = steering.steers = false;
  show("access-section", false);
  void introduce(stop.signal);
  void fetch("v1/job").then(async (r) => {
    if (r.ok) about = (await r.json()) as About;
    if (progress) paintGuarantees(progress, about);
    repaint();
  }).catch(() => undefined); // the guarantees' wholes are left out then
  await follow({ url: "v1/admin/events", token, on, link: (s, why, again) => {
    if (s === "lost") forget(); // they are told again from the start
    link(s, why, again);
  } }, stop.signal);
}

byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token = keepToken(byId<HTMLInputElement>("token").value.trim().replace(/^.*#/, ""));
  void begin();
});
readyToSignOut(() => token, () => {
  token = "";
  void begin();
});
byId("warnings").addEventListener("change", paintEvents);
byId("job-file").addEventListener("toggle", () => void configuration());
byId("downloads").addEventListener("click", (event) => {
  const file = (event.target as HTMLElement).dataset.file;
  if (file) void download(file);
});
await breath();
setInterval(() => void check(), checkEvery);
setInterval(() => say("left", closesAt > Date.now() ? `closes in ${duration((closesAt - Date.now()) / 1000)}` : ""), 500);
void begin();
