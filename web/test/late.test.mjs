// Answers that come late, in another order than they were asked for, or once more: held
// back here until they do harm. None may undo what came since, or take the keyboard's place.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import * as esbuild from "esbuild";
import { choose, fleet, open, openTab, textOf, until } from "./fleet.mjs";
import { protocol, serve } from "./pages.mjs";

const desktop = { width: 1280, height: 900 };
const none = { up: 0, down: 0 };
const parts = { page: none, base: none, programs: none, model: none, slices: none, turns: none, updates: none, rest: none };
const guarantee = (epsilon) => ({ epsilon, epsilon_lower: 0, delta: 1e-6, adjacency: "add/remove", accountant: "tight", sampling: "poisson", rounds: 1, rdp_epsilon: epsilon, rdp_order: 2 });
const about = { job: "late", id: "00", task: "classify", labels: ["a", "b"], rounds: 200, private: true, protects: "device", delivered: guarantee(5), shard_floor: 3, sampling_rate: 1, base_bytes: 1,
  protocol, needs_secret: false };
const records = Array.from({ length: 120 }, (_, i) => ({ round: i + 1, version: i + 1, rank: 1, clip_norm: 1, cohort: 3, dropped: 0, absent: 0, answered: 3, released: true, seconds: 2,
  ended: 1_700_000_000 + 10 * i, accuracy: [{ rank: 1, accuracy: 0.5, loss: 1, of: 100 }], delivered: guarantee(1), bytes_up: 1, bytes_down: 1, parts }));
const overview = { state_left_ms: 0, cohort: "ttt", browsers: "nnb", progress: { job: "late", labels: [], rounds: 200, private: true, state: "collecting", round: 121, version: 120, rank: 1, clip_norm: 1,
  delivered: guarantee(3), elapsed_ns: 1e9, enrolled: 3, connected: 3, cohort: 3, dropped: 0, absent: 0, answered: 2, bytes_up: 1, bytes_down: 1, parts } };
const sent = (event, of) => `event: ${event}\ndata: ${JSON.stringify(of)}\n\n`;
const told = [...[0, 50, 100].map((from) => records.slice(from, from + 50))].map((some) => sent("rounds", some));

/** What a server holds back until it is let go. */
function held() {
  const waiting = [];
  let free = false;
  return {
    wait: () => free ? Promise.resolve() : new Promise((go) => waiting.push(go)),
    get asked() { return waiting.length; },
    letGo: () => { free = true; for (const go of waiting) go(); },
  };
}

/** An answer that says nothing of what was asked for. */
const broken = "not now";

/** A coordinator as far as the dashboard sees one; answers, by path, are what is asked for or promises of it. */
async function played(t, answers = {}, begin = (stream) => stream.write(sent("overview", overview) + told.join(""))) {
  const streams = new Set();
  const device = (i) => ({ identity: String(i).repeat(64), enrolled: "2026-01-01T00:00:00Z", seen: "2026-01-01T00:00:00Z" });
  const all = {
    "/v1/job": about, "forecast.json": null, "paused.json": { pause: null }, "ready.json": { checks: [] }, "acts.json": { acts: [], head: "" }, "invitations.json": [], "operators.json": [],
    "who.json": { name: "Ada", role: "operator" },
    "fleet.json": { enrolled: 3, excluded: 0, struck: 0, declining: 0, programs: [], platforms: [], seen: [], found: 3, devices: [1, 2, 3].map(device) }, ...answers,
  };
  const address = await serve(t, (request, response, path) => {
    const name = path.replace("/v1/admin/", "");
    if (name === "events") {
      streams.add(response);
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      begin(response);
      return true;
    }
    if (!(name in all)) return false;
    void Promise.resolve(typeof all[name] === "function" ? all[name](request) : all[name]).then((of) => response.writeHead(of === broken ? 503 : 200, { "Content-Type": "application/json" }).end(JSON.stringify(of)));
    return true;
  });
  return { address, streams, page: `${address}dashboard#${"a".repeat(64)}` };
}

const live = (tab) => until("the stream", async () => (await textOf(tab, "#live")) === "Live", () => textOf(tab, "body"));

test("a viewer whose role is told after the list of devices is offered no ban", { timeout: 120_000 }, async (t) => {
  const role = held();
  const { page } = await played(t, { "who.json": () => role.wait().then(() => ({ name: "Eve", role: "viewer" })) });
  const { tab } = await openTab(await open(t, "chrome"), page, desktop);
  await live(tab);
  await tab.$eval("#fleet-section", (e) => e.scrollIntoView());
  const disabled = () => tab.$$eval("#fleet-rows button", (all) => all.map((b) => b.disabled));
  await until("the devices", async () => (await disabled()).length === 3, () => textOf(tab, "#fleet-section"));
  assert.deepEqual(await disabled(), [true, true, true], "who is not known yet may ban");
  role.letGo();
  await until("the role", async () => (await textOf(tab, "#who")) === "for Eve, viewer");
  assert.deepEqual(await disabled(), [true, true, true]);
});

test("what rounds change leaves the keyboard and what is scrolled where they are", { timeout: 120_000 }, async (t) => {
  const { page, streams } = await played(t);
  const { tab } = await openTab(await open(t, "chrome"), page, desktop);
  await live(tab);
  const tell = (...some) => { for (const to of streams) to.write(some.map((of) => sent("rounds", [of])).join("")); };
  await until("the plots", () => tab.$("#time-plot .u-over"), () => textOf(tab, "body"));
  await tab.$eval("#time-plot .values", (e) => { e.open = true; });
  await until("the table", () => tab.$("#time-plot .values tbody tr"));
  await tab.$eval("#time-plot .values .table", (e) => { e.focus(); e.scrollTop = 30; });
  tell({ ...records[119], seconds: 7 });
  await until("the round in the table", async () => /7\.0 s/.test(await textOf(tab, "#time-plot .values tbody tr:last-child")));
  assert.deepEqual(await tab.$eval("#time-plot .values .table", (e) => [e.scrollTop, document.activeElement === e]), [30, true]);
  tell({ ...records[119], released: false, reason: "one" });
  await until("the concern", async () => /nothing: one /.test(await textOf(tab, "#attention")), () => textOf(tab, "#attention")); // of others the page had one before
  await tab.focus("#attention a");
  tell({ ...records[119], released: false, reason: "another" });
  await until("another", async () => /another/.test(await textOf(tab, "#attention")), () => textOf(tab, "#attention"));
  assert.equal(await tab.evaluate(() => document.activeElement?.getAttribute("href")), "#card-history");
});

test("whoever has turned to older rounds stays at them over a lost connection, whose rounds are told piece by piece", { timeout: 120_000 }, async (t) => {
  let visits = 0, last;
  const { page, streams } = await played(t, {}, (stream) => {
    stream.write(sent("overview", overview) + told[0]);
    last = stream;
    if (visits++ === 0) stream.write(told[1] + told[2]);
  });
  const { tab } = await openTab(await open(t, "chrome"), page, desktop);
  const shown = () => textOf(tab, "#history-shown");
  await until("the rounds", async () => (await shown()) === "Rounds 101 to 120 of 120", shown);
  await tab.$eval("#history-older", (e) => e.click());
  assert.equal(await shown(), "Rounds 81 to 100 of 120");
  for (const stream of streams) stream.destroy();
  await until("a part of it again", async () => (await shown()) === "Rounds 31 to 50 of 50", shown);
  last.write(told[1] + told[2]);
  await until("all of it", async () => /of 120$/.test(await shown()), shown);
  assert.equal(await shown(), "Rounds 81 to 100 of 120");
  last.write(sent("rounds", [{ ...records[119], round: 121, version: 121 }]));
  await until("one more", async () => /of 121$/.test(await shown()), shown);
  assert.equal(await shown(), "Rounds 81 to 100 of 121");
});

test("devices are drawn once they are shown: what is hidden has no size", { timeout: 120_000 }, async (t) => {
  const { page } = await played(t);
  const { tab } = await openTab(await open(t, "chrome"), "about:blank", desktop);
  await tab.evaluateOnNewDocument(() => {
    // A slow machine: after each event the page lets others work, for so long that it draws.
    const now = performance.now.bind(performance), later = globalThis.setTimeout;
    let asked = 0;
    performance.now = () => now() + 10 * asked++;
    globalThis.setTimeout = (run, after) => later(run, after ?? 200);
    globalThis.drawn = [];
    addEventListener("DOMContentLoaded", () => new MutationObserver(() => globalThis.drawn.push(document.getElementById("cohort").parentElement.clientWidth))
      .observe(document.getElementById("cohort"), { attributeFilter: ["aria-label"] }));
  });
  await tab.goto(page);
  await live(tab);
  const drawn = await until("the devices", () => tab.evaluate(() => globalThis.drawn.length > 0 && globalThis.drawn), () => textOf(tab, "body"));
  assert.ok(drawn.every((width) => width > 0), `drawn into ${drawn} pixels`);
});

test("an older list of invitations does not come over a newer one", { timeout: 120_000 }, async (t) => {
  const first = held(), of = (id) => ({ id, note: `note ${id}`, uses: 1, used: 0, expires: "2099-01-01T00:00:00Z" });
  let made = [of(1)];
  const { page } = await played(t, {
    "invitations.json": () => { const now = made; return now.length === 1 ? first.wait().then(() => now) : now; },
    invitations: () => { made = [of(1), of(2)]; return { ...of(2), secret: "s", link: "http://127.0.0.1/#starling" }; },
  });
  const { tab } = await openTab(await open(t, "chrome"), page, desktop);
  await until("the role", async () => (await textOf(tab, "#who")) === "for Ada, operator");
  await tab.$eval("#card-access", (e) => { e.open = true; });
  await until("the question for a list", () => first.asked > 0);
  await tab.$eval("#invitation-form", (e) => e.requestSubmit());
  const rows = () => tab.$$eval("#invitation-rows th", (all) => all.map((h) => h.textContent));
  await until("the invitation", async () => (await rows()).length === 2, () => textOf(tab, "#access-section"));
  const late = tab.waitForResponse((r) => r.url().endsWith("/invitations.json"));
  first.letGo();
  await (await late).text();
  await tab.evaluate(() => new Promise((on) => { setTimeout(on, 300); })); // what follows the answer has followed
  assert.deepEqual(await rows(), ["2", "1"]);
});

test("an older list of jobs does not come over a newer one", { timeout: 120_000 }, async (t) => {
  const first = held(), job = { name: "invoices", folder: "f", pool: "p", priority: 0, want: "run", state: "running", submitted: "2026-01-01T00:00:00Z", version: 0, rounds: 2 };
  let asked = 0;
  const { address } = await played(t, { "spending.json": { totals: null },
    "jobs.json": () => asked++ === 1 ? first.wait().then(() => [job]) : [asked > 2 ? { ...job, want: "pause", state: "paused" } : job] });
  const { tab } = await openTab(await open(t, "chrome"), `${address}jobs.html#${"a".repeat(64)}`, desktop);
  const rows = () => textOf(tab, "#job-rows");
  await until("the newer list", async () => first.asked === 1 && /^invoicespaused/.test(await rows()), rows);
  await tab.evaluate(() => {
    globalThis.seen = [];
    new MutationObserver(() => globalThis.seen.push(document.getElementById("job-rows").textContent)).observe(document.getElementById("job-rows"), { childList: true });
  });
  const before = asked;
  first.letGo();
  await until("two lists more", () => asked >= before + 2);
  assert.deepEqual((await tab.evaluate(() => globalThis.seen)).filter((text) => /^invoicesrunning/.test(text)), []);
});

test("a coordinator that does not say who somebody is once is asked again: the token is not to blame", { timeout: 120_000 }, async (t) => {
  let asked = 0;
  const { address } = await played(t, { "spending.json": { totals: null }, "jobs.json": [], "who.json": () => asked++ ? { name: "Ada", role: "operator" } : broken });
  const { tab } = await openTab(await open(t, "chrome"), `${address}jobs.html#${"a".repeat(64)}`, desktop);
  await until("what is wrong", async () => /^Disconnected/.test(await textOf(tab, "#live")), () => textOf(tab, "body"));
  assert.equal(await tab.$eval("#denied", (e) => e.hidden), true);
  await until("the jobs", async () => (await textOf(tab, "#who")) === "for Ada, operator", () => textOf(tab, "body"));
});

test("who revokes by keyboard keeps a place there", { timeout: 120_000 }, async (t) => {
  let revoked = false;
  const { page } = await played(t, {
    "invitations.json": () => [{ id: 1, note: "", used: 0, uses: 1, expires: "2099-01-01T00:00:00Z", ...(revoked ? { revoked: "2026-01-01T00:00:00Z" } : {}) }],
    "invitations/1/revoke": () => { revoked = true; return {}; },
  });
  const { tab } = await openTab(await open(t, "chrome"), page, desktop);
  await until("the role", async () => (await textOf(tab, "#who")) === "for Ada, operator");
  await tab.$eval("#card-access", (e) => { e.open = true; });
  await until("the invitation", () => tab.$("#invitation-rows button"));
  await tab.focus("#invitation-rows button");
  await tab.keyboard.press("Enter");
  await until("the question", () => tab.$eval("#ask", (d) => d.open));
  await tab.$eval("#ask-act", (b) => b.click());
  await until("the end of it", async () => /^1.*revoked$/.test(await textOf(tab, "#invitation-rows")), () => textOf(tab, "#access-section"));
  await until("a place", () => tab.evaluate(() => document.activeElement?.id === "invitations"), () => tab.evaluate(() => document.activeElement?.outerHTML.slice(0, 200)));
});

test("a sample that comes after a file was chosen is not taken", { timeout: 120_000 }, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "starling-late-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const sample = held();
  const address = await serve(t, (_, response, path) => {
    if (path === "/v1/job") return response.end(JSON.stringify({ ...about, sample: "sample.csv" })), true;
    if (path === "/v1/status") return response.end(JSON.stringify({ private: true, state: "waiting", round: 0, version: 0, rounds: 2 })), true;
    if (path === "/v1/sample") return void sample.wait().then(() => response.end("label,text\na,x\nb,y\n")), true;
    return false;
  });
  const { tab } = await openTab(await open(t, "chrome"), address);
  await until("the promise", async () => /ε/.test(await textOf(tab, "#given")), () => textOf(tab, "body"));
  await tab.evaluate(() => {
    globalThis.File = class extends File {
      constructor(of, name) {
        super(of, name);
        globalThis.came = name;
      }
    };
  });
  await tab.click("#sample");
  await until("the question for it", () => sample.asked === 1);
  const file = join(dir, "own.csv");
  writeFileSync(file, "label,text\na,one\nb,two\na,three\n");
  await choose(tab, file);
  sample.letGo();
  await until("the sample", () => tab.evaluate(() => globalThis.came === "sample.csv"));
  assert.match(await textOf(tab, "#data-state"), /^3 examples in own\.csv/);
  await until("Join", async () => !(await tab.$eval("#join", (b) => b.disabled)), () => textOf(tab, "#data-state"));
});

test("what the coordinator answered before the end does not come over the end", { timeout: 240_000 }, async (t) => {
  const job = await fleet(t, { floor: 4 }); // no round is made without the browser
  const { tab } = await openTab(await open(t, "chrome"), "about:blank");
  await tab.evaluateOnNewDocument(() => {
    const ask = globalThis.fetch, waiting = [];
    globalThis.late = () => Promise.all(waiting.splice(0).map((go) => go()));
    globalThis.fetch = async (at, ...more) => {
      const answer = await ask(at, ...more);
      if (!String(at).endsWith("v1/status") || globalThis.told === undefined) return answer;
      await new Promise((go) => { waiting.push(() => { go(); return new Promise((on) => { setTimeout(on, 50); }); }); });
      globalThis.told++;
      return answer;
    };
  });
  await tab.goto(job.page);
  await until("the promise", async () => /ε/.test(await textOf(tab, "#given")), () => job.story(tab, "body"));
  await tab.evaluate(() => { globalThis.told = 0; });
  await choose(tab, job.own);
  job.joinNatives();
  await tab.click("#join");
  await until("the end", async () => /^Finished/.test(await textOf(tab, "#state")), () => job.story(tab, "body"), 120_000);
  const all = await textOf(tab, "#rounds-text");
  await tab.evaluate(() => globalThis.late());
  assert.ok(await tab.evaluate(() => globalThis.told > 0), "nothing came late: the test would see nothing");
  assert.equal(await textOf(tab, "#rounds-text"), all);
  assert.equal(await textOf(tab, "#time-left"), "");
});

test("a join that follows a failure outlives what the failure asked", { timeout: 240_000 }, async (t) => {
  const job = await fleet(t);
  const { tab } = await openTab(await open(t, "chrome"), job.page);
  await until("the promise", async () => /ε/.test(await textOf(tab, "#given")), () => job.story(tab, "body"));
  await choose(tab, job.own);
  await tab.evaluate(() => {
    const start = globalThis.Worker, ask = globalThis.fetch;
    globalThis.Worker = class extends start {
      constructor() {
        globalThis.Worker = start;
        super("nothing-here.js");
      }
    };
    globalThis.fetch = async (at, ...more) => {
      const answer = await ask(at, ...more);
      if (String(at).endsWith("v1/job")) await new Promise((go) => { globalThis.go = go; });
      return answer;
    };
  });
  await tab.click("#join");
  await until("the failure", async () => /^This did not work/.test(await textOf(tab, "#state")), () => job.story(tab));
  await until("what it asks", () => tab.evaluate(() => globalThis.go !== undefined));
  await tab.$eval("#again", (b) => b.click());
  await tab.click("#join");
  await until("the fleet", async () => /wait/i.test(await textOf(tab, "#state")), () => job.story(tab, "body"));
  const kept = () => tab.evaluate(() => new Promise((resolve, reject) => {
    const opening = indexedDB.open("starling", 1);
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const asked = opening.result.transaction("joins", "readwrite").objectStore("joins").count();
      asked.onsuccess = () => { opening.result.close(); resolve(asked.result); };
    };
  }));
  await until("it to be kept", async () => (await kept()) === 1);
  await tab.evaluate(() => new Promise((on) => { globalThis.go(); setTimeout(on, 300); }));
  assert.equal(await kept(), 1, "a reload would lose it");
});

test("a screen that was let go before it was kept on is let go", async () => {
  const built = await esbuild.build({ entryPoints: ["src/join/conditions.ts"], bundle: true, format: "esm", write: false, absWorkingDir: new URL("..", import.meta.url).pathname });
  let given, on = 0;
  const wakeLock = { request: () => new Promise((give) => { given = () => { on++; give({ release: async () => { on--; } }); }; }) };
  Object.defineProperty(globalThis, "navigator", { value: { wakeLock }, configurable: true });
  globalThis.document = Object.assign(new EventTarget(), { visibilityState: "visible" });
  const { Awake } = await import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].contents).toString("base64")}`);
  const settled = () => new Promise((go) => { setTimeout(go); });
  const awake = new Awake();
  awake.hold(true);
  awake.hold(false);
  given();
  await settled();
  assert.equal(on, 0);
  awake.hold(true);
  given();
  await settled();
  assert.equal(on, 1);
  awake.hold(false);
  await settled();
  assert.equal(on, 0);
});
