// Join from this browser: choose data, look at it, see what is given, take part.
import "./page.css";
import { browserTrust, Edge, Participation } from "../edge/src/index.js";
import type { About, PublicStatus } from "./api.js";
import { brief, byId, element, message, say, show, visible } from "./dom.js";
import { bound, bytes, count, duration, given, peersText, percent, significant } from "./format.js";
import { unable } from "./join/able.js";
import { elsewhere, here } from "./join/address.js";
import { outdated } from "./join/current.js";
import { Awake, watchConditions, type Conditions } from "./join/conditions.js";
import { data, describeData, offerData } from "./join/data.js";
import { closeMicrophone } from "./join/hearing.js";
import { paintLimits } from "./join/limits.js";
import { Pace } from "./join/pace.js";
import { download, plain } from "./join/plain.js";
import { alone, deviceIdentity, saved, type SavedJoin } from "./join/saved.js";
import { offerModel, offerShelf } from "./join/trained.js";
import { wordsOf } from "./join/tasks.js";
import { givenText, offline, stateText } from "./join/words.js";

declare const WORKER_URL: string;
declare const EDGE_URL: string;
declare const EDGE_FULL_URL: string;

const token = location.hash.slice(1);
const awake = new Awake();
let about: About | undefined;
let progress: PublicStatus | undefined;
let part: Participation | undefined;
let conditions: Conditions | undefined;
let unfit = false; // another build than the coordinator's
let hindered = false; // paused by a condition, not by its owner

// ---- the job

const mostClasses = 60; // that are listed

async function asked(): Promise<About> {
  const response = await fetch("v1/job");
  if (!response.ok) throw new Error(`the coordinator answers ${response.status}`);
  return (await response.json()) as About;
}

/** Asks again what the coordinator is: after silence it may be a newer one. */
async function stillCurrent(): Promise<boolean> {
  try {
    unfit = outdated(await asked());
  } catch { /* it is still away */ }
  if (unfit) ready();
  return !unfit;
}

/** Says what the job is; whether this page can take part in it. */
async function describe(): Promise<boolean> {
  about = await asked();
  document.title = `${visible(brief(about.job, 60))} · Starling`;
  say("job", brief(about.job, 120));
  const classes = about.labels.length ? ` ${count(about.labels.length, "class", "classes")}` : "";
  say("summary", `Helps to teach a model to ${wordsOf(about)?.teaches ?? "do something new in"}${classes} in ${count(about.rounds, "round")}.`);
  show("classes", about.labels.length > 0);
  const more = about.labels.length - mostClasses;
  byId("labels").replaceChildren(...about.labels.slice(0, mostClasses).map((l) => element("li", {}, brief(l, 80))),
    ...(more > 0 ? [element("li", {}, `and ${count(more, "more", "more")}`)] : []));
  const g = given(about);
  byId("given").dataset.level = g.level;
  say("given-title", g.title);
  byId("plain").replaceChildren(...plain(about).map((l) => element("li", {}, l)));
  byId("given-lines").replaceChildren(...g.lines.map((l) => element("li", {}, l)));
  show("secret-missing", about.needs_secret && !token);
  describeData(about);
  say("download-size", download(about));
  byId<HTMLDetailsElement>("given-details").open = innerHeight > 900;
  unfit = outdated(about);
  const there = elsewhere(token);
  const cannot = there ? [`This link is for ${there}, and this page was opened at ${here()}: it cannot speak to another address than its own. Open `,
    element("a", { href: `${there}#${token}`, id: "elsewhere" }, there), ", with your token. If that leads nowhere from here, whoever runs the coordinator " +
    `starts it with --url ${here()} and gives out the link that it prints then.`] : [unable(about)].filter(Boolean);
  byId("unable").replaceChildren(...cannot);
  show("unable", cannot.length > 0);
  if (cannot.length) {
    show("choosing", false);
    show("bar", false);
  }
  ready();
  if (!unfit) await refresh();
  return !unfit && !cannot.length;
}

const pace = new Pace();
let silent = false; // the coordinator, at the last refresh

async function refresh(): Promise<void> {
  if (unfit) return;
  try {
    const response = await fetch("v1/status", { cache: "no-store" });
    if (!response.ok) throw new Error(`it answers ${response.status}`);
    progress = (await response.json()) as PublicStatus;
    const p = progress;
    const over = p.state === "finished" || p.state === "measuring";
    byId<HTMLProgressElement>("rounds").max = Math.max(1, p.rounds);
    byId<HTMLProgressElement>("rounds").value = p.version;
    say("rounds-text", over && p.version >= p.rounds ? "all rounds are made" : p.round || p.version ? `${p.version} of ${count(p.rounds, "round")} made` : "not begun");
    pace.note(p.version, performance.now() / 1000);
    const left = over ? undefined : pace.left(p.rounds, performance.now() / 1000);
    say("time-left", left === undefined ? "" : `, about ${duration(left)} left`);
    const spent = p.delivered ? `${bound(p.delivered)} of ${about?.delivered ? significant(about.delivered.epsilon) : "…"}` : "–";
    say("spent", p.private ? spent : "not private");
    const best = p.validation?.reduce((a, b) => (b.accuracy > a.accuracy ? b : a));
    say("accuracy", best ? `${percent(best.accuracy)} (after ${count(p.validation_version ?? 0, "round")}, rank ${best.rank})` : "not measured yet");
    if (silent && !(await stillCurrent())) return;
    silent = false;
    say("connection", "");
  } catch (error) {
    if (part?.standing === "finished") return;
    silent = true;
    // What a browser says of a request that came to nothing helps nobody.
    const why = error instanceof TypeError ? "" : `: ${message(error)}`;
    say("connection", `No word from the coordinator${why}. Trying again.`);
    say("time-left", "");
  }
}

// ---- the data

let client: Promise<Edge> | undefined;

function programURL(): string {
  const program = about?.full ? EDGE_FULL_URL : EDGE_URL;
  if (!program) throw new Error("this coordinator was built without the browser's edge: run make web, then make build");
  return program;
}

async function loaded(): Promise<Edge> {
  if (client && (await client).over) client = undefined; // a file was too much for it
  client ??= Edge.load({ worker: WORKER_URL, program: programURL() });
  client.catch(() => { client = undefined; }); // the next try fetches again
  return client;
}

function ready(): void {
  const can = data.source !== undefined && about !== undefined && !unfit && !(about.needs_secret && !token) && part === undefined;
  byId<HTMLButtonElement>("join").disabled = !can;
  say("join-hint", !about ? "Asking the coordinator…" : unfit ? "This page is too old." : about.needs_secret && !token ? "This link lacks its join token."
    : data.source ? "" : "Choose your data or the sample first.");
}

// ---- taking part

function sentence(): string {
  const { preview } = data, words = about && wordsOf(about);
  const unit = about?.protects === "provider" && preview?.groups ? ` of ${count(preview.groups, "provider")}` : "";
  return `${count(preview?.examples ?? 0, words?.one ?? "example", words?.many)}${unit} stay in this page. Each round one masked update goes to ` +
    `${location.host}; only the sum over at least ${about?.shard_floor ?? "several"} devices can be read there.`;
}

function takePart(before?: SavedJoin): void {
  const { source } = data, job = about;
  if (!source || !job || part) return;
  closeMicrophone();
  const keep = (p: Participation) => saved.keep({
    job: job.job, id: job.id, token, source, totals: p.totals, accepted: p.accepted, paused: p.standing === "paused" && !hindered,
  });
  let told = "";
  show("joining", true);
  void alone(() => {
    show("joining", true);
    show("choosing", false);
    show("bar", false);
    for (const id of ["step", "pause", "stop", "settings"]) show(id, false); // nothing runs here
    say("state", "Another tab of this browser takes part. This one begins when that one ends.");
  }, () => new Promise<void>((ended) => {
    part = new Participation({
      worker: WORKER_URL, program: programURL(), url: here(), token: token || undefined,
      source, identity: deviceIdentity(), totals: before?.totals, accepted: before?.accepted,
      onChange: (p) => {
        part = p;
        const now = `${p.standing} ${p.totals.rounds}`, turned = now !== told;
        told = now;
        if (turned && (p.standing === "finished" || p.standing === "stopped")) {
          // Said once it is so: a page that is closed at these words would come back taking part.
          void saved.forget().then(() => {
            if (part === p) paint(p);
            ended();
          });
          return;
        }
        paint(p);
        if (turned && p.standing === "failed") {
          // What failed because the page is too old goes on once it is loaded again.
          void stillCurrent().then((yes) => yes && saved.forget());
          ended();
        } else if (turned) {
          void keep(p);
        }
      },
    });
    void keep(part);
    paint(part);
    if (before?.paused) part.pause();
    steer();
  }));
}

function paint(p: Participation): void {
  const working = p.standing === "running" || p.standing === "pausing" || p.standing === "starting";
  show("choosing", false);
  show("bar", false);
  show("joining", true);
  say("state", stateText(p, hindered));
  const away = offline(p);
  byId("state").classList.toggle("failed", away || p.standing === "failed" || p.standing === "refused");
  byId("dot").dataset.standing = away ? "offline" : p.standing;
  say("contributed", count(p.totals.rounds, "round"));
  say("peers", peersText(p.peers));
  const given = givenText(p, about);
  say("given-rounds", given.rounds);
  say("epsilon", given.epsilon);
  paintLimits(p);
  offerModel(p, about);
  say("sent", bytes(p.totals.up));
  say("received", bytes(p.totals.down));
  const bar = byId<HTMLProgressElement>("step");
  const e = p.event;
  const known = working && e !== undefined && (e.total ?? 0) > 0 && ["fetching", "training", "uploading"].includes(e.state);
  show("step", working);
  if (known) {
    bar.max = e.total ?? 1;
    bar.value = e.done ?? 0;
  } else {
    bar.removeAttribute("value");
  }
  show("settings", working || p.standing === "paused");
  if (p.standing === "finished") {
    // The coordinator may be gone before it could say so itself.
    const rounds = byId<HTMLProgressElement>("rounds");
    rounds.value = rounds.max;
    say("rounds-text", "all rounds are made");
    say("connection", "");
    if (about !== undefined && ["answer", "pretrain", "causal"].includes(about.task)) say("sentence", "A page has no use for its model by itself: whoever runs the coordinator has it.");
  }
  const pause = byId<HTMLButtonElement>("pause");
  pause.hidden = !working && p.standing !== "paused";
  pause.textContent = p.standing === "paused" || p.standing === "pausing" ? "Go on" : "Pause after this round";
  byId("stop").hidden = !working && p.standing !== "paused";
  byId("again").hidden = p.standing !== "failed" && p.standing !== "stopped" && p.standing !== "refused";
  awake.hold(working && byId<HTMLInputElement>("awake").checked);
}

/** Pauses and resumes as charging and network allow. */
function steer(): void {
  if (!part || !conditions) return;
  const why = conditions.hindrance();
  if (why && (part.standing === "running" || part.standing === "starting")) {
    hindered = true;
    part.pause(why);
  } else if (!why && hindered) {
    hindered = false;
    part.resume();
  }
  paint(part);
}

function pauseOrResume(): void {
  if (!part) return;
  hindered = false;
  if (part.standing === "running" || part.standing === "starting") part.pause();
  else part.resume();
}

function again(): void {
  part?.stop(); // what was refused
  part = undefined;
  show("joining", false);
  show("choosing", true);
  show("bar", true);
  ready();
}

/** Whether what this browser kept is of the coordinator's job: another may have its name. */
const sameJob = (kept: SavedJoin, of: About) => kept.id ? kept.id === of.id : kept.job === of.job;

/** A join that ran when this page was closed or reloaded goes on. */
async function restore(): Promise<void> {
  const join = await saved.load();
  if (!join) return;
  if (!about || !sameJob(join, about) || join.token !== token) {
    await saved.forget(); // of another job
    return;
  }
  data.source = join.source;
  takePart(join);
  void loaded().then((c) => c.preview(join.source)).then((seen) => { data.preview = seen; say("sentence", sentence()); }).catch(() => undefined);
}

const checked = (id: string) => byId<HTMLInputElement>(id).checked;

byId("join").addEventListener("click", () => {
  say("sentence", sentence());
  takePart();
  byId("joining").focus(); // the button is gone
});
byId("pause").addEventListener("click", pauseOrResume);
byId("stop").addEventListener("click", () => part?.stop());
byId("again").addEventListener("click", again);
byId("limits-accept").addEventListener("click", () => part?.accept());
say("trust", browserTrust);
for (const id of ["charging", "unmetered", "awake"]) byId(id).addEventListener("change", steer);
void watchConditions((id, to) => show(`${id}-row`, to), checked, steer).then((c) => {
  conditions = c;
  steer();
});
async function begin(): Promise<void> {
  for (;;) {
    try {
      return (await describe()) ? await restore() : undefined;
    } catch (error) {
      say("connection", `The coordinator does not say what the job is: ${message(error)}. Trying again.`);
      await new Promise((later) => setTimeout(later, 3000));
    }
  }
}

offerData({ about: () => about, client: loaded, changed: ready });
offerShelf(loaded);
void begin();
setInterval(() => void refresh(), 2000);
