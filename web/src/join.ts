// Join from this browser: choose data, look at it, see what is given, take part.
import "./page.css";
import { accountNames } from "../edge/src/account.js";
import { Edge, Participation, PolicyRefusal, type Limits, type Model, type PolicyError, type Source } from "../edge/src/index.js";
import type { About, PublicStatus } from "./api.js";
import { brief, byId, element, say, show, Sorry, tellPage, title } from "./dom.js";
import { begin as speak, choose, languages, listed, spoken, t, whenTold } from "./language/language.js";
import { unable } from "./join/able.js";
import { damaged, elsewhere, here } from "./join/address.js";
import { paintAsks } from "./join/asks.js";
import { bound, bytes, devices, duration, percent, rounds, significant } from "./join/amounts.js";
import { outdated } from "./join/current.js";
import { Awake, watchConditions, type Conditions, type Hindrance } from "./join/conditions.js";
import { data, describeData, offerData } from "./join/data.js";
import { given, peersText } from "./join/given.js";
import { closeMicrophone } from "./join/hearing.js";
import { Pace } from "./join/pace.js";
import { download, here as takes, plain, type Tried } from "./join/plain.js";
import { alone, deviceIdentity, saved, type SavedJoin } from "./join/saved.js";
import { keepModel, keptModels } from "./join/shelf.js";
import { counted, teaches } from "./join/tasks.js";
import { paintVerdict, verdict } from "./join/verdict.js";
import { codeText, givenText, offline, reasonText, stateText, useless } from "./join/words.js";

declare const WORKER_URL: string;
declare const EDGE_URL: string;
declare const EDGE_FULL_URL: string;

let token = location.hash.slice(1);
// A page that this machine serves, or forwards, is its coordinator's own: what it may do no policy in it could hold.
// Packages of other sites, Node and the starling program ask their owner (trustLocal, --trust-local).
const trustLocal = ["127.0.0.1", "localhost", "[::1]"].includes(location.hostname);
const awake = new Awake();
/** Which program was kept with this page, where this browser kept it and nobody else answered: join/keep.ts. */
const { kept: alive } = document.documentElement.dataset;
let about: About | undefined;
let progress: PublicStatus | undefined;
let part: Participation | undefined;
let conditions: Conditions | undefined;
let unfit = false; // another build than the coordinator's
let held: Hindrance | "" = ""; // paused by a condition, not by its owner

// ---- the job

const mostClasses = 60; // that are listed

async function described(): Promise<About> {
  const response = await fetch("v1/job");
  if (!response.ok) throw new Answer(response.status);
  return (await response.json()) as About;
}

/** An answer that is none. */
class Answer extends Error {
  constructor(readonly status: number) { super(`the coordinator answers ${status}`); }
}

/** Asks again what the coordinator is: after silence it may be a newer one. */
async function stillCurrent(): Promise<boolean> {
  try {
    unfit = outdated(await described());
  } catch { /* it is still away */ }
  if (unfit) ready();
  return !unfit;
}

/** Says what the job is; whether this page can take part in it. */
async function describe(before: Promise<SavedJoin | undefined>): Promise<boolean> {
  [about, kept] = await Promise.all([described(), before]);
  if (!token && kept && sameJob(kept, about)) token = kept.token; // a page that is opened from a phone's first screen has none
  title(listed([brief(about.job, 60), " · Starling"]));
  say("job", listed([brief(about.job, 120)]));
  say("summary", teaches(about));
  show("classes", about.labels.length > 0);
  const more = about.labels.length - mostClasses;
  byId("labels").replaceChildren(...about.labels.slice(0, mostClasses).map((l) => element("li", { dir: "auto" }, brief(l, 80))),
    ...(more > 0 ? [element("li", {}, t("more.classes", { n: more }))] : []));
  byId("plain").replaceChildren(...plain(about).map((l) => element("li", {}, l)));
  paintAsks(about, here());
  byId("given-lines").replaceChildren(...given(about).map((l) => element("li", {}, l)));
  show("secret-missing", about.needs_secret && !token);
  describeData(about);
  say("download-size", t("about.once", { amount: bytes(download(about)) }));
  paintJudged();
  unfit = outdated(about);
  const there = elsewhere(token);
  const why = unable(about);
  const cannot = there ? [t("elsewhere", { there, here: here() }), " ", element("a", { href: `${there}#${token}`, id: "elsewhere" }, t("elsewhere.open", { there })), ". ",
    t("elsewhere.operator", { here: here() })] : why ? [why] : damaged(token) ? [t("link.damaged")] : [];
  byId("unable").replaceChildren(element("span", {}, ...cannot));
  show("unable", cannot.length > 0);
  show("choosing", !cannot.length && !part && !goesOn(about)); // whatever stands above it is painted
  show("bar", !cannot.length && !part);
  ready();
  if (!unfit && !cannot.length) void judge();
  if (!unfit) await refresh();
  return !unfit && !cannot.length;
}

let tried: Tried | undefined; // before joining
let trying = false;
let dear: PolicyError[] = []; // limits that the trial's program is beyond: of memory and work

/** Tries once, for a second, what a round takes here, as soon as there is data to join with. */
async function tryRound(): Promise<void> {
  const examples = data.preview?.examples;
  if (!about?.round || !examples || part) return say("here", "");
  if (tried) {
    tried = { ...tried, examples, pace: progress?.version ? progress.elapsed_ns / progress.version / 1e9 : undefined };
    return say("here", takes(about, tried));
  }
  if (dear.length) return say("here", ""); // it is asked below
  say("here", t("data.here.trying"));
  if (trying) return;
  trying = true;
  try {
    const quote = await (await loaded()).quote({ url: here(), token: token || undefined, trustLocal });
    tried = { quote, examples };
  } catch (error) {
    if (error instanceof PolicyRefusal) dear = error.limits;
    if (data.preview) say("here", t("data.here.untried")); // joining says what is wrong
  } finally {
    trying = false;
  }
  if (dear.length) {
    await later().catch(() => undefined);
    paintJudged();
    ready();
  }
  if (tried) void tryRound(); // with the data there are now
}

let limits: Limits | undefined | null; // as verdict takes them
let judged: Source | undefined; // that they are of
let turn = 0; // an answer that another question has followed has no say any more

/** Has this device judge the job, and the data as far as they are chosen, before anybody joins. */
async function judge(): Promise<void> {
  const mine = ++turn, { source, preview } = data;
  let found: Limits | null = null;
  try {
    found = await (await loaded()).limits({ url: here(), token: token || undefined, trustLocal, source, examples: preview?.examples });
  } catch { /* an older coordinator, or none: the device judges the job once more when it joins, and says what is wrong */ }
  if (found?.beyond.length) await later().catch(() => undefined);
  if (mine !== turn) return;
  limits = found;
  judged = source;
  paintJudged();
  ready();
}

/** All that the job is known to be beyond, by its announcement and by its program. */
function asked(): Limits | undefined | null {
  if (!limits || !dear.length) return limits;
  const { beyond } = limits;
  return { ...limits, beyond: [...beyond, ...dear.filter((d) => !beyond.some((l) => l.key === d.key))], granted: false };
}

function paintJudged(): void {
  if (!about) return;
  const known = asked(), beyond = known?.beyond ?? [], of = about;
  if (!known || !beyond.length) {
    show("consent", false);
    return paintVerdict(of, verdict(of, known, trustLocal, 0));
  }
  void later().then((m) => {
    m.paintConsent(known);
    paintVerdict(of, verdict(of, known, trustLocal, m.reasons(beyond).size));
    ready();
  }, () => undefined);
}

/** Whether the owner has said yes to all that the job is known to be beyond. */
function consented(): boolean {
  const known = asked();
  return !known?.beyond.length || known.granted === true || checked("consent-yes");
}

const pace = new Pace();
let silent = false; // the coordinator, at the last refresh

async function refresh(): Promise<void> {
  if (unfit) return;
  try {
    const response = await fetch("v1/status", { cache: "no-store" });
    if (!response.ok) throw new Answer(response.status);
    progress = (await response.json()) as PublicStatus;
    const p = progress;
    const over = p.state === "finished" || p.state === "measuring";
    if (part?.standing === "finished" && !over) return; // asked before the end, told after it
    byId<HTMLProgressElement>("rounds").max = Math.max(1, p.rounds);
    byId<HTMLProgressElement>("rounds").value = p.version;
    say("rounds-text", over && p.version >= p.rounds ? t("progress.all") : p.round || p.version ? t("progress.made", { n: p.rounds, made: p.version }) : t("progress.none"));
    pace.note(p.version, performance.now() / 1000);
    const left = over ? undefined : pace.left(p.rounds, performance.now() / 1000);
    say("time-left", left === undefined ? "" : t("progress.left", { time: duration(left) }));
    const spent = p.delivered ? about?.delivered && about.delivered.epsilon > useless ? t("progress.spent.useless") : t("progress.spent.of", { bound: bound(p.delivered), epsilon: about?.delivered ? significant(about.delivered.epsilon) : "…" }) : "–";
    say("spent", p.private ? spent : t("progress.not.private"));
    const best = p.validation?.reduce((a, b) => (b.accuracy > a.accuracy ? b : a));
    say("accuracy", best ? t("progress.accuracy.after", { share: percent(best.accuracy), n: p.validation_version ?? 0, rank: best.rank }) : t("progress.unmeasured"));
    if (silent && !(await stillCurrent())) return;
    silent = false;
    say("connection", "");
  } catch (error) {
    if (part?.standing === "finished") return;
    silent = true;
    // What a browser says of a request that came to nothing helps nobody.
    say("connection", error instanceof Answer ? t("silent.code", { code: String(error.status) }) : t("silent"));
    say("time-left", "");
  }
}

// ---- the data

let client: Promise<Edge> | undefined;

function programURL(): string {
  const program = about?.full || alive === "full" ? EDGE_FULL_URL : EDGE_URL;
  if (!program) throw new Sorry(t("edge.missing"));
  return program;
}

async function loaded(): Promise<Edge> {
  if (client && (await client).over) client = undefined; // a file was too much for it
  client ??= Edge.load({ worker: WORKER_URL, program: programURL() });
  client.catch(() => { client = undefined; }); // the next try fetches again
  return client;
}

function ready(): void {
  void tryRound();
  const known = data.source === judged && limits !== undefined;
  const can = data.source !== undefined && about !== undefined && !unfit && !(about.needs_secret && !token) && part === undefined && known && consented();
  byId<HTMLButtonElement>("join").disabled = !can;
  say("join-hint", !about ? t("asking") : unfit ? t("old.hint") : about.needs_secret && !token ? t("token.hint") : !data.source ? t("data.first") : !known ? t("verdict.asking")
    : consented() ? part ? "" : t("open.hint") : t("consent.hint"));
}

/** The data have changed. */
function changed(): void {
  if (data.source !== judged) void judge();
  ready();
}

// ---- taking part

function sentence() {
  const { preview } = data;
  const what = { examples: counted(about, preview?.examples ?? 0), host: location.host, devices: devices(about?.shard_floor ?? 2) };
  return about?.protects === "provider" && preview?.groups ? t("device.sentence.providers", { ...what, providers: t("n.providers", { n: preview.groups }) })
    : t("device.sentence", what);
}

function takePart(before?: SavedJoin): void {
  const { source } = data, job = about;
  if (!source || !job || part) return;
  closeMicrophone();
  const keep = (p: Participation) => saved.keep({
    job: job.job, id: job.id, token, source, totals: p.totals, accepted: p.accepted, paused: p.standing === "paused" && !held,
  });
  let told = "";
  show("joining", true);
  void alone(() => {
    show("joining", true);
    show("choosing", false);
    show("bar", false);
    for (const id of ["step", "pause", "stop", "settings"]) show(id, false); // nothing runs here
    say("state", t("device.busy"));
  }, () => new Promise<void>((ended) => {
    part = new Participation({
      worker: WORKER_URL, program: programURL(), url: here(), token: token || undefined, trustLocal,
      source, identity: deviceIdentity(), totals: before?.totals, accepted: before?.accepted ?? (checked("consent-yes") ? Object.fromEntries(asked()?.beyond.map((l) => [l.key, l.have]) ?? []) : undefined),
      onChange: (p) => {
        part = p;
        const now = `${p.standing} ${p.totals.rounds}`, turned = now !== told;
        told = now;
        if (turned && (p.standing === "finished" || p.standing === "stopped")) {
          // Said once it is so: a page that is closed at these words would come back taking part.
          void saved.forget().then(() => {
            if (part === p) paint(p);
            void offerGave();
            ended();
          });
          return;
        }
        paint(p);
        if (turned && p.standing === "failed") {
          // What failed because the page is too old goes on once it is loaded again.
          void stillCurrent().then((yes) => yes && (part ?? p) === p && saved.forget()); // not what was joined since
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
  say("state", stateText(p, held));
  const why = reasonText(p);
  const code = codeText(p);
  if (p.standing === "failed" && coded !== p) {
    coded = p;
    void later().then(() => { if (part === p) paint(p); }, () => undefined); // not over what was joined since
  }
  say("reason", listed([...(code ? [code, " "] : []), ...(why ? [t("program.says", { words: brief(why, 600) })] : [])]));
  const away = offline(p);
  byId("state").classList.toggle("failed", away || p.standing === "failed" || p.standing === "refused");
  byId("dot").dataset.standing = away ? "offline" : p.standing;
  say("contributed", p.totals.zeros ? t("contributed.zeros", { rounds: rounds(p.totals.rounds), n: p.totals.zeros }) : rounds(p.totals.rounds));
  say("peers", peersText(p.peers));
  const given = givenText(p, about);
  say("given-rounds", given.rounds);
  say("epsilon", given.epsilon);
  if (p.limits.length || limited) {
    limited = true;
    void later().then((m) => m.paintLimits(p));
  }
  if (p.totals.rounds > 0 && stayed !== p) {
    stayed = p;
    void stay().catch(() => undefined); // while the coordinator is there
  }
  offerModel(p);
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
    const all = byId<HTMLProgressElement>("rounds");
    all.value = all.max;
    say("rounds-text", t("progress.all"));
    say("time-left", "");
    say("connection", "");
    if (about?.task === "pretrain") say("sentence", t("device.no.use"));
  }
  const pause = byId<HTMLButtonElement>("pause");
  pause.hidden = !working && p.standing !== "paused";
  say("pause", p.standing === "paused" || p.standing === "pausing" ? t("device.resume") : t("device.pause"));
  byId("stop").hidden = !working && p.standing !== "paused";
  byId("again").hidden = p.standing !== "failed" && p.standing !== "stopped" && p.standing !== "refused";
  awake.hold(working && byId<HTMLInputElement>("awake").checked);
}

// ---- what comes of it: a part of the script that is fetched where there is something to show

let limited = false; // something was asked for beyond this device's limits
let coded: Participation | undefined; // whose failure was told by its code
let stayed: Participation | undefined; // for which this page was kept

const later = () => import("./join/later.js");
let offered: Model | undefined;

/** Keeps the model that the job has ended with, and offers to try it. */
function offerModel(p: Participation): void {
  if (!p.model || offered === p.model) return;
  const { model } = p, of = { job: about?.job ?? `${t("trained.this")}`, id: about?.id, task: about?.task, sound: about?.sound, at: Date.now(), model };
  offered = model;
  const kept = keepModel(of);
  void later().then((m) => m.offerModel(of, (input, how) => p.predict(input, how), kept),
    async () => say("connection", await kept ? t("trained.later") : t("trained.unkept")));
}

async function offerShelf(): Promise<void> {
  if ((await keptModels()).length) (await later()).offerShelf(loaded);
}

/** Shows what this browser's files have given, where they have given something. */
async function offerGave(): Promise<void> {
  const names = await accountNames();
  if (names.length) (await later()).offerGave(loaded);
}

/** Has this browser keep the page: there is something to come back to. */
async function stay(): Promise<void> {
  const m = await later();
  await m.keepPage(programURL(), about?.full === true, loaded);
}

/** Pauses and resumes as charging and network allow. */
function steer(): void {
  if (!part || !conditions) return;
  const why = conditions.hindrance();
  if (why && (part.standing === "running" || part.standing === "starting")) {
    held = why;
    part.pause(why);
  } else if (!why && held) {
    held = "";
    part.resume();
  }
  paint(part);
}

function pauseOrResume(): void {
  if (!part) return;
  held = "";
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
  byId("join").focus();
}

/** Whether what this browser kept is of the coordinator's job: another may have its name. */
const sameJob = (kept: SavedJoin, of: About) => kept.id ? kept.id === of.id : kept.job === of.job;

let kept: SavedJoin | undefined; // of an earlier page

/** Whether a join that ran when this page was closed or reloaded goes on. */
const goesOn = (of: About) => kept !== undefined && sameJob(kept, of) && kept.token === token;

async function restore(): Promise<void> {
  const join = kept;
  if (!join) return;
  if (!about || !goesOn(about)) {
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
byId("stop").addEventListener("click", () => {
  part?.stop();
  byId("joining").focus(); // the button goes
});
byId("again").addEventListener("click", again);
byId("limits-accept").addEventListener("click", () => {
  part?.accept();
  byId("joining").focus();
});
byId("consent-yes").addEventListener("change", ready);
for (const id of ["charging", "unmetered", "awake"]) byId(id).addEventListener("change", steer);
void watchConditions((id, to) => show(`${id}-row`, to), checked, steer).then((c) => {
  conditions = c;
  steer();
});
async function begin(): Promise<void> {
  const before = saved.load();
  for (;;) {
    try {
      const fits = await describe(before);
      if (!unfit && ((await keptModels()).length || (await accountNames()).length && await (await later()).isKept())) void stay().catch(() => undefined); // as it is now
      return fits ? await restore() : undefined;
    } catch (error) {
      say("connection", error instanceof Answer ? t("silent.code", { code: String(error.status) }) : t("silent.job"));
      await new Promise((later) => setTimeout(later, 3000));
    }
  }
}

/** Offers the languages there are. */
function offerLanguages(): void {
  const select = byId<HTMLSelectElement>("language");
  select.replaceChildren(...languages().map(({ tag, name }) => element("option", { value: tag, lang: tag }, name)));
  select.addEventListener("change", () => void choose(select.value).catch(() => { select.value = spoken(); }));
  whenTold(() => { select.value = spoken(); });
}

tellPage();
offerLanguages();
offerData({ about: () => about, client: loaded, changed });
const shown = Promise.all([offerShelf(), offerGave()]).catch(() => undefined);
if (alive) {
  void speak().then(() => shown).then(later).then((m) => m.outlive(loaded));
} else {
  void speak().then(begin);
  setInterval(() => void refresh(), 2000);
}
