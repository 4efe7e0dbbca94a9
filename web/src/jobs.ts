// The jobs of a server of several: what each is at, what the fleet has spent, and what an
// operator has done with them. Each has a dashboard of its own behind its name.
import "./dashboard.css";
import type { JobLine, Total } from "./api.js";
import { ask, readyToAsk, type Question } from "./dashboard/ask.js";
import { caller, Denied, Unavailable, whyLost } from "./dashboard/call.js";
import { offerSignIn, readyToSignOut } from "./dashboard/signin.js";
import { byId, element, message, say, show } from "./dom.js";
import { power, significant } from "./format.js";
import type { Text } from "./language/language.js";
import { keepToken, takeToken } from "./token.js";

const every = 3000; // ms
const mostFile = 64 << 10; // bytes

interface Spending { epsilon?: number; delta?: number; totals: Total[] | null }

/** What is done with a job, by the last part of its address; which are offered follows from its state. */
const acts: Record<string, { label: string; ask?: Omit<Question, "title"> & { title: (name: string) => string } }> = {
  pause: { label: "Pause", ask: { title: (n) => `Pause ${n}?`, act: "Pause it", reason: "Reason (kept with your name)",
    text: "The running round goes to its end; then none is drawn until somebody lets it go on, over restarts, too." } },
  resume: { label: "Let it go on" },
  stop: { label: "Stop", ask: { title: (n) => `Stop ${n}?`, act: "Stop it", reason: "Reason (kept with your name)",
    text: "It makes no more rounds, for good. A round that runs is charged. What it has released stays." } },
  archive: { label: "Archive", ask: { title: (n) => `Archive ${n}?`, act: "Archive it",
    text: "Devices that ask for it are sent away. What it spent counts on." } },
};

function offered(j: JobLine): string[] {
  if (j.want === "archive" || j.state === "archived") return [];
  if (j.state === "failed") return ["resume", "stop", "archive"];
  if (j.state === "finished" || j.state === "stopped") return ["archive"];
  if (j.want === "stop") return [];
  return [j.want === "pause" ? "resume" : "pause", "stop"];
}

let token = takeToken();
readyToAsk();
const call = caller(() => token);
let steers = false;
/** What the rows show: they are made anew where it changes, so that the keyboard's place stays. */
let painted = "";

function row(j: JobLine): HTMLElement {
  const closed = j.state === "queued" || j.state === "archived" || (!j.rounds && j.state !== "running");
  const link = closed ? j.name : element("a", { href: `jobs/${encodeURIComponent(j.name)}/dashboard` }, j.name);
  const said = j.reason && j.reason !== j.state ? [element("span", { class: "soft small others" }, j.reason)] : [];
  return element("tr", {}, element("th", { scope: "row" }, link), element("td", {}, j.state, ...said),
    element("td", {}, j.rounds ? `${j.version ?? 0} of ${j.rounds}` : "–"), element("td", {}, String(j.priority)), element("td", {}, j.pool),
    element("td", {}, new Date(j.submitted).toLocaleString()),
    element("td", {}, element("span", { class: "buttons" }, ...(steers ? offered(j).map((act) => {
      const button = element("button", { type: "button", class: "quiet small", "data-act": act, "aria-label": `${acts[act]?.label} ${j.name}` }, acts[act]?.label ?? act);
      button.addEventListener("click", () => void perform(j.name, act));
      return button;
    }) : []))));
}

function paint(jobs: JobLine[], spent: Spending): void {
  const now = JSON.stringify([jobs, spent.totals, steers]);
  if (now === painted) return;
  painted = now;
  show("jobs", jobs.length > 0);
  show("jobs-empty", jobs.length === 0);
  const at = document.activeElement?.getAttribute("aria-label"), rows = byId("job-rows"), within = rows.contains(document.activeElement);
  rows.replaceChildren(...jobs.map(row));
  if (within) refocus(at);
  const totals = spent.totals ?? [];
  show("spent", totals.length > 0);
  show("spent-empty", totals.length === 0);
  byId("spent-rows").replaceChildren(...totals.map((t) => element("tr", {}, element("th", { scope: "row" }, t.pool),
    element("td", {}, t.guarantee ? significant(t.guarantee.epsilon) : t.why || "–"), element("td", {}, t.guarantee ? power(t.guarantee.delta) : "–"), element("td", {}, String(t.rounds)))));
  const flag = element("code", {}, "--fleet-epsilon");
  byId("spent-budget").replaceChildren(...(spent.epsilon ? [`No pool may pass an epsilon of ${spent.epsilon} at delta ${spent.delta ?? "–"} (`, flag, ")."]
    : ["The fleet has no budget of its own: each job has its own alone (", flag, " gives it one)."]));
}

/** Gives the keyboard its place back where a row was made anew; what was done is not offered again. */
function refocus(label?: string | null): void {
  ([...byId("job-rows").querySelectorAll("button")].find((b) => b.getAttribute("aria-label") === label) ?? byId("jobs")).focus();
}

async function perform(name: string, act: string): Promise<void> {
  const question = acts[act]?.ask;
  const reason = question ? await ask({ ...question, title: question.title(name) }) : "";
  if (!byId("job-rows").contains(document.activeElement)) refocus(`${acts[act]?.label} ${name}`); // the dialog gives it to a row that is gone
  if (reason === undefined) return;
  try {
    await call(`jobs/${encodeURIComponent(name)}/${act}`, reason);
    say("act-said", `${name}: ${act} is asked for.`);
  } catch (error) {
    say("act-said", `Not done: ${message(error)}.`);
  }
  await look();
}

async function submit(): Promise<void> {
  const value = (id: string) => byId<HTMLInputElement>(id).value.trim(), file = byId<HTMLInputElement>("submit-file").files?.[0];
  if (!file) return;
  try {
    if (file.size > mostFile) throw new Error(`a job file has ${mostFile} bytes at most`);
    const name = value("submit-name");
    await call("jobs", { name, pool: value("submit-pool"), priority: Number(value("submit-priority")), file: await file.text() });
    byId<HTMLFormElement>("submit-form").reset();
    say("submit-said", `${name} is submitted: it begins when there is room.`);
  } catch (error) {
    say("submit-said", `Not submitted: ${message(error)}.`);
  }
  await look();
}

function live(state: string, text: string): void {
  byId("dot").dataset.state = state;
  byId("live").classList.toggle("failed", state === "lost");
  say("live", text);
}

let asked = 0, answered = 0; // an answer that comes after that to a later question has no say any more

async function look(): Promise<void> {
  const mine = ++asked;
  try {
    const [jobs, spent] = await Promise.all(["jobs.json", "spending.json"].map(async (p) => (await call(p)).json() as Promise<unknown>));
    if (mine < answered) return;
    answered = mine;
    paint(jobs as JobLine[], spent as Spending);
    live("live", "Live");
  } catch (error) {
    if (error instanceof Denied) return begin(); // revoked, or a session that is over
    if (mine < answered) return;
    live("lost", `Disconnected: ${whyLost(error)}. What stands here is old; trying again.`);
  }
}

let begun = 0; // what another token has followed has no say any more

async function begin(): Promise<void> {
  const mine = ++begun;
  let who: { name: string; role: string } | undefined;
  let why: Text = "";
  if (token) {
    try {
      who = (await (await call("who.json")).json()) as { name: string; role: string };
    } catch (error) {
      why = message(error);
      if (mine === begun && (error instanceof TypeError || error instanceof Unavailable)) { // it says nothing of the token
        live("lost", `Disconnected: ${whyLost(error)}. Trying again.`);
        return void setTimeout(() => { if (mine === begun) void begin(); }, every);
      }
    }
    if (mine !== begun) return;
  }
  show("denied", !who);
  show("content", who !== undefined);
  void offerSignIn(token, !who);
  if (!who) {
    say("denied-why", why);
    live("", "The token is needed");
    return byId("token").focus();
  }
  say("who", `for ${who.name}, ${who.role}`);
  steers = who.role !== "viewer";
  show("submit-section", who.role === "admin");
  await look();
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
byId("submit-form").addEventListener("submit", (event) => {
  event.preventDefault();
  void submit();
});
setInterval(() => { if (!byId("content").hidden) void look(); }, every);
void begin();
