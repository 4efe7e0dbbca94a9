// Join from this browser: choose data, look at it, see what is given, take part.
import "./page.css";
import { browserTrust, Edge, Participation, type Preview, type Source } from "../edge/src/index.js";
import type { About, PublicStatus } from "./api.js";
import { byId, element, message, say, show } from "./dom.js";
import { bound, bytes, count, given, percent, significant } from "./format.js";
import { sampleLabels } from "./sample.js";
import { unable } from "./join/able.js";
import { columnsOf, guess } from "./join/file.js";
import { outdated } from "./join/current.js";
import { Awake, watchConditions, type Conditions } from "./join/conditions.js";
import { paintLimits } from "./join/limits.js";
import { alone, deviceIdentity, saved, type SavedJoin } from "./join/saved.js";
import { offerModel, offerShelf } from "./join/trained.js";
import { givenText, stateText } from "./join/words.js";

declare const WORKER_URL: string;
declare const EDGE_URL: string;
declare const EDGE_FULL_URL: string;

const token = location.hash.slice(1);
const awake = new Awake();
let about: About | undefined;
let progress: PublicStatus | undefined;
let file: File | undefined;
let source: Source | undefined;
let preview: Preview | undefined;
let part: Participation | undefined;
let conditions: Conditions | undefined;
let unfit = false; // another build than the coordinator's
let hindered = false; // paused by a condition, not by its owner

// ---- the job

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
  document.title = `${about.job} · Starling`;
  say("job", about.job);
  const teaches: Record<string, string> = { tag: "label words with", answer: "answer questions about documents", span: "find answers in documents", image: "sort pictures into" };
  const classes = about.labels.length ? ` ${count(about.labels.length, "class", "classes")}` : "";
  say("summary", `Helps to teach a model to ${teaches[about.task] ?? "sort texts into"}${classes} in ${count(about.rounds, "round")}.`);
  byId("labels").replaceChildren(...about.labels.map((l) => element("li", {}, l)));
  const g = given(about);
  byId("given").dataset.level = g.level;
  say("given-title", g.title);
  byId("given-lines").replaceChildren(...g.lines.map((l) => element("li", {}, l)));
  show("secret-missing", about.needs_secret && !token);
  show("sample", about.sample !== undefined || fits(about));
  say("download-size", `about ${bytes(about.base_bytes + 1.35e6)}`);
  byId<HTMLDetailsElement>("given-details").open = innerHeight > 900;
  unfit = outdated(about);
  const cannot = unable(about);
  say("unable", cannot);
  show("unable", cannot !== "");
  if (cannot) {
    show("choosing", false);
    show("bar", false);
  }
  ready();
  if (!unfit) await refresh();
  return !unfit && !cannot;
}

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
    byId<HTMLProgressElement>("rounds").value = over ? p.rounds : Math.max(0, p.round - 1);
    say("rounds-text", over ? "all rounds are made" : p.round ? `round ${p.round} of ${p.rounds}` : "not begun");
    const spent = p.delivered ? `${bound(p.delivered)} of ${about?.delivered ? significant(about.delivered.epsilon) : "…"}` : "–";
    say("spent", p.private ? spent : "not private");
    const best = p.validation?.reduce((a, b) => (b.accuracy > a.accuracy ? b : a));
    say("accuracy", best ? `${percent(best.accuracy)} (round ${p.validation_round}, rank ${best.rank})` : "not measured yet");
    if (silent && !(await stillCurrent())) return;
    silent = false;
    say("connection", "");
  } catch (error) {
    if (part?.standing === "finished") return;
    silent = true;
    say("connection", `No word from the coordinator: ${message(error)}. Trying again.`);
  }
}

// ---- the data

let client: Promise<Edge> | undefined;

function programURL(): string {
  const program = about?.hybrid ? EDGE_FULL_URL : EDGE_URL;
  if (!program) throw new Error("this coordinator was built without the browser's edge: run make web, then make build");
  return program;
}

function loaded(): Promise<Edge> {
  client ??= Edge.load({ worker: WORKER_URL, program: programURL() });
  client.catch(() => { client = undefined; }); // the next try fetches again
  return client;
}

async function picked(chosen: File): Promise<void> {
  forgetData();
  say("data-state", `Reading ${chosen.name}…`);
  try {
    const columns = await columnsOf(chosen, chosen.name);
    const data = new Uint8Array(await chosen.arrayBuffer());
    choose("label-column", columns, ["label", "class", "category", "target", "y"]);
    choose("text-column", columns, ["text", "sentence", "content", "body", "description"]);
    show("columns", columns.length > 2);
    await look({ fileName: chosen.name, data, ...chosenColumns() });
  } catch (error) {
    refuse(error);
  }
}

function choose(id: string, columns: string[], names: string[]): void {
  const select = byId<HTMLSelectElement>(id);
  select.replaceChildren(...columns.map((c) => element("option", { value: c }, c)));
  select.value = guess(columns, names);
}

function chosenColumns(): Pick<Source, "textColumn" | "labelColumn"> {
  return {
    textColumn: byId<HTMLSelectElement>("text-column").value || undefined,
    labelColumn: byId<HTMLSelectElement>("label-column").value || undefined,
  };
}

async function look(chosen: Source): Promise<void> {
  source = undefined;
  ready();
  const seen = await (await loaded()).preview(chosen);
  const unknown = about ? seen.labels.filter((l) => !about?.labels.includes(l.name)) : [];
  source = chosen;
  preview = seen;
  byId("rows").replaceChildren(...seen.rows.map((r) => element("tr", {}, element("td", {}, r.label), element("td", {}, r.text))));
  say("data-state", `${count(seen.examples, "example")} in ${chosen.fileName}: ` +
    seen.labels.slice(0, 8).map((l) => `${l.name} ${l.count}`).join(", ") + (seen.labels.length > 8 ? ", …" : ""));
  show("preview", true);
  if (unknown.length) {
    source = undefined;
    throw new Error(`${unknown.slice(0, 3).map((l) => `“${l.name}”`).join(", ")} ${unknown.length === 1 ? "is" : "are"} not among this job's ` +
      "classes: choose another label column, or another file");
  }
  byId("data-state").classList.remove("failed");
  ready();
}

function forgetData(): void {
  source = preview = undefined;
  show("preview", false);
  show("columns", false);
  byId("data-state").classList.remove("failed");
  ready();
}

function refuse(error: unknown): void {
  say("data-state", message(error));
  byId("data-state").classList.add("failed");
  ready();
}

/** Whether the built-in sample has no class that the job has not. */
const fits = (a: About) => sampleLabels.every((l) => a.labels.includes(l));

/** The operator's file to try, or else one of the built-in ones. */
async function sampled(): Promise<void> {
  forgetData();
  say("data-state", "Making a sample…");
  try {
    if (about?.sample) {
      const response = await fetch("v1/sample");
      if (!response.ok) throw new Error(`the coordinator answers ${response.status}`);
      file = new File([await response.arrayBuffer()], about.sample);
      return await picked(file);
    }
    await look(await (await loaded()).sample());
  } catch (error) {
    refuse(error);
  }
}

/** A file in this job's own classes, to fill in. */
function template(): void {
  const lines = (about?.labels ?? []).map((l) => `${l}\ta text that belongs to ${l}\n`).join("");
  const address = URL.createObjectURL(new Blob([lines], { type: "text/tab-separated-values" }));
  element("a", { href: address, download: "example.tsv" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

function ready(): void {
  const can = source !== undefined && about !== undefined && !unfit && !(about.needs_secret && !token) && part === undefined;
  byId<HTMLButtonElement>("join").disabled = !can;
  say("join-hint", !about ? "Asking the coordinator…" : unfit ? "This page is too old." : about.needs_secret && !token ? "This link lacks its join token."
    : source ? "" : "Choose a file or the sample first.");
}

// ---- taking part

function sentence(): string {
  const unit = about?.protects === "provider" && preview?.groups ? ` of ${count(preview.groups, "provider")}` : "";
  return `${count(preview?.examples ?? 0, "example")}${unit} stay in this page. Each round one masked update goes to ` +
    `${location.host}; only the sum over at least ${about?.shard_floor ?? "several"} devices can be read there.`;
}

function takePart(before?: SavedJoin): void {
  const data = source, job = about;
  if (!data || !job || part) return;
  const keep = (p: Participation) => saved.keep({
    job: job.job, token, source: data, totals: p.totals, accepted: p.accepted, paused: p.standing === "paused" && !hindered,
  });
  let told = "";
  void alone(() => {
    show("joining", true);
    show("choosing", false);
    show("bar", false);
    say("state", "Another tab of this browser takes part. This one begins when that one ends.");
  }, () => new Promise<void>((ended) => {
    const url = new URL("v1/join", location.href);
    url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    part = new Participation({
      worker: WORKER_URL, program: programURL(), url: url.href.replace(/#.*/, ""), token: token || undefined,
      source: data, identity: deviceIdentity(), totals: before?.totals, accepted: before?.accepted,
      onChange: (p) => {
        part = p;
        paint(p);
        const now = `${p.standing} ${p.totals.rounds}`;
        if (now !== told) {
          told = now;
          if (["finished", "failed", "stopped"].includes(p.standing)) {
            // What failed because the page is too old goes on once it is loaded again.
            if (p.standing !== "failed") void saved.forget();
            else void stillCurrent().then((yes) => yes && saved.forget());
            ended();
          } else {
            void keep(p);
          }
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
  byId("state").classList.toggle("failed", p.standing === "failed" || p.standing === "refused");
  byId("dot").dataset.standing = p.standing;
  say("contributed", count(p.totals.rounds, "round"));
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

/** A join that ran when this page was closed or reloaded goes on. */
async function restore(): Promise<void> {
  const join = await saved.load();
  if (!join) return;
  if (!about || join.job !== about.job || join.token !== token) {
    await saved.forget(); // of another job
    return;
  }
  source = join.source;
  takePart(join);
  void loaded().then((c) => c.preview(join.source)).then((seen) => { preview = seen; say("sentence", sentence()); }).catch(() => undefined);
}

const checked = (id: string) => byId<HTMLInputElement>(id).checked;

const input = byId<HTMLInputElement>("file");
input.addEventListener("click", () => { input.value = ""; }); // the same file again, edited, is a change
input.addEventListener("change", () => {
  file = input.files?.[0];
  if (file) void picked(file);
});
for (const id of ["label-column", "text-column"]) {
  byId(id).addEventListener("change", () => {
    const { name } = file ?? {};
    if (file && name) void file.arrayBuffer().then((b) => look({ fileName: name, data: new Uint8Array(b), ...chosenColumns() })).catch(refuse);
  });
}
byId("sample").addEventListener("click", () => void sampled());
byId("template").addEventListener("click", template);
byId("join").addEventListener("click", () => {
  say("sentence", sentence());
  takePart();
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

offerShelf(loaded);
void begin();
setInterval(() => void refresh(), 2000);
