// What the dashboard's plots are computed from, without a browser: intervals by scipy,
// and everything else by hand or by another way.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as esbuild from "esbuild";

const root = new URL("..", import.meta.url).pathname;

/** A module of the page's. */
async function module(path) {
  const built = await esbuild.build({ entryPoints: [path], bundle: true, format: "esm", write: false, absWorkingDir: root });
  return import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].contents).toString("base64")}`);
}

const { wilson, smooth, windowFor, learning, intervals, rankMap, turnout, spending } = await module("src/dashboard/figures.ts");
const { readRun, summary, source, alignedTo, mostBytes, mostRounds } = await module("src/dashboard/compare.ts");
const { concerns } = await module("src/dashboard/concerns.ts");
const { pace, remaining, made, ended } = await module("src/dashboard/pace.ts");

test("Wilson's intervals are scipy's", () => {
  for (const [hits, of, low, high] of JSON.parse(readFileSync(new URL("testdata/wilson.json", import.meta.url)))) {
    const [a, b] = wilson(hits / of, of);
    assert.ok(Math.abs(a - low) < 1e-12 && Math.abs(b - high) < 1e-12, `${hits} of ${of}: ${a} to ${b}, scipy has ${low} to ${high}`);
  }
});

test("smoothing is the mean of the measurements around, however many are missing", () => {
  const values = Array.from({ length: 300 }, (_, i) => i % 7 === 3 ? null : Math.sin(i / 9) + i / 50);
  for (const window of [1, 3, 25, 51]) {
    const made = smooth(values, window), known = values.flatMap((v, i) => v === null ? [] : [i]);
    values.forEach((v, i) => {
      if (v === null) return assert.equal(made[i], null);
      const k = known.indexOf(i), half = (window - 1) / 2, around = known.slice(Math.max(0, k - half), k + half + 1).map((j) => values[j]);
      assert.ok(Math.abs(made[i] - around.reduce((a, b) => a + b, 0) / around.length) < 1e-9, `at ${i} of window ${window}`);
    });
  }
  for (let n = 1; n < 3000; n++) assert.ok(windowFor(n) % 2 === 1 && windowFor(n) <= 51 && windowFor(n) <= n);
});

const round = (n, of) => ({ round: n, version: n, rank: 1, cohort: 10, dropped: 0, absent: 0, released: true, seconds: 1, ended: 1000 + 10 * n, ...of });
const at = (rank, accuracy) => ({ rank, accuracy, of: 100 });

test("the best rank is that of the last measurements, and nothing is made up where none was", () => {
  const records = [round(1, { accuracy: [at(1, 0.3)] }), round(2, { rank: 2, accuracy: [at(2, 0.5)] }), round(3, { released: false }), round(4, {}),
    round(5, { accuracy: [at(1, 0.4)] }), round(6, { rank: 2, accuracy: [at(2, 0.2)] })];
  const l = learning(records);
  assert.deepEqual(l.x, [1, 2, 4, 5, 6]);
  assert.deepEqual(l.best, [0.3, 0.5, null, 0.5, 0.4]);
  assert.deepEqual(l.bestRank, [1, 2, null, 2, 1]);
  assert.deepEqual(l.drawn, [0.3, 0.5, null, 0.4, 0.2]);
  const around = intervals(l.best, l.bestOf);
  assert.deepEqual([around.low[1], around.high[1]], wilson(0.5, 100));
  assert.equal(around.low[2], null);
  assert.equal(intervals([0.5], [0]).known, false, "an interval of nobody knows how many documents");
  const map = rankMap(records);
  assert.deepEqual(map.ranks, [1, 2]);
  assert.deepEqual(map.cells, [[0.3, 0.3, 0.3, 0.4, 0.4], [null, 0.5, 0.5, 0.5, 0.2]]);
});

test("who left is told apart, and adds up to who was dropped", () => {
  const t = turnout([round(1, { dropped: 9, stopped: 2, declined: 3, refused: 1, absent: 4, sessions_refused: 8 }), round(2, { dropped: 1 })]);
  assert.deepEqual([t.lost, t.stopped, t.declined, t.refused, t.absent, t.sessions], [[3, 1], [2, 0], [3, 0], [1, 0], [4, 0], [8, 0]]);
});

test("what is to come begins where the spent ends, at the rounds that it is foretold for", () => {
  const g = (epsilon) => ({ epsilon });
  const forecast = { epsilon: 5, charged: 3, left: 3, affords: 3, points: [1, 2, 4, 6].map((rounds) => ({ rounds, delivered: g(rounds / 2) })) };
  const s = spending([round(1, { delivered: g(0.5) }), round(2, { delivered: g(1) }), round(4, { delivered: g(1.5) })], "delivered", forecast);
  assert.deepEqual(s.x, [1, 2, 4, 5, 7]); // round 3 was abandoned; three charged are at round 4
  assert.deepEqual(s.spent, [0.5, 1, 1.5, null, null]);
  assert.deepEqual(s.foretold, [null, null, 1.5, 2, 3]);
  assert.deepEqual(spending([round(1, { delivered: g(1) })], "delivered", { ...forecast, charged: 6, left: 0, affords: 0 }).foretold, [null], "a job that is over goes on");
});

const head = "round,version,rank,cohort,dropped,absent,released,reason,seconds,ended,clip_norm,accuracy,accuracy_rank,loss,epsilon_delivered,epsilon_simulated,delta,bytes_up,bytes_down,accuracy_drawn";
const line = (n, more = {}) => {
  const of = { round: n, version: n, rank: 1, cohort: 10, dropped: 1, absent: 2, released: "true", reason: "", seconds: 2, ended: "", clip_norm: 1, accuracy: n / 10, accuracy_rank: 1, loss: "", epsilon_delivered: n, epsilon_simulated: "", delta: "1e-6", bytes_up: 800, bytes_down: 1600, accuracy_drawn: "", ...more };
  return head.split(",").map((c) => of[c]).join(",");
};

test("another run is read from its table, and refused by line and column", () => {
  const run = readRun("a", [head, line(1), line(2, { released: "false", reason: '"too few, ""again"""', accuracy: "" }), line(3, { seconds: 4 }), ""].join("\r\n"));
  assert.deepEqual([run.x, run.accuracy, run.epsilon, run.bytes], [[1, 3], [0.1, 0.3], [1, 3], [300, 300]]);
  assert.deepEqual(summary(run), { rounds: 2, accuracy: 0.3, best: 0.3, epsilon: 3, seconds: 4, bytes: 300 });
  assert.deepEqual(alignedTo([1, 2, 3, 9], run, run.accuracy), [0.1, null, 0.3, null]);
  const refused = (text, why) => assert.throws(() => readRun("a", text), why);
  refused("", /no column round/);
  refused("round,version\n1,2", /no column cohort, absent/);
  refused([head, line(1), "1,2"].join("\n"), /line 3 has 2 fields/);
  refused([head, line(1, { seconds: "NaN" })].join("\n"), /line 2: seconds is no number that can be: NaN/);
  refused([head, line(1, { bytes_up: -1 })].join("\n"), /bytes_up/);
  refused([head, line(2), line(1)].join("\n"), /line 3: rounds must go up/);
  refused([head, line(1, { released: "false" })].join("\n"), /none of its rounds/);
  refused(" ".repeat(mostBytes + 1), /more than/);
  refused([head, ...Array.from({ length: mostRounds + 1 }, () => "1")].join("\n"), /at most 20000/);
});

test("a link leads to a table of the same server, and its token to nobody else", () => {
  const here = "https://desk.example/a/dashboard";
  assert.deepEqual(source("https://desk.example/b/dashboard#secret", here), { url: "https://desk.example/b/v1/admin/rounds.csv", token: "secret" });
  assert.deepEqual(source("/b/", here), { url: "https://desk.example/b/v1/admin/rounds.csv" });
  assert.deepEqual(source("/kept/run1.csv", here), { url: "https://desk.example/kept/run1.csv" });
  assert.throws(() => source("https://evil.example/dashboard#secret", here), /another server/);
  assert.throws(() => source("javascript:alert(1)", here), /another server/);
  assert.throws(() => source("https://", here), /no address/);
});

const status = (of) => ({ job: "j", rounds: 9, version: 3, state: "collecting", round: 4, connected: 9, enrolled: 10, cohort: 10, private: true, ...of });
const concern = (of) => concerns({ now: 2_000_000, progress: status(of.progress), records: of.records ?? [], lines: of.lines ?? [], checks: of.checks ?? [] });
const line2 = (what, level, ...details) => ({ time: new Date(1_999_000).toISOString(), level, what, details });

test("a job that ends early, and rounds that released nothing, are told", () => {
  assert.equal(made(status({})), "3 of 9 made", "round 4 runs");
  assert.equal(made(status({ round: 5 })), "3 of 9 made; 1 released nothing");
  assert.equal(made(status({ state: "finished", version: 6, rounds: 6, round: 7 })), "6 of 6 made; 1 released nothing");
  assert.equal(made(status({ state: "waiting", version: 0, round: 0 })), "0 of 9 made");
  assert.equal(ended(status({})), undefined);
  assert.equal(ended(status({ state: "finished", version: 9 })), "The job is over");
  assert.equal(ended(status({ state: "finished" })), "The job ended early, after 3 of 9 rounds");
  assert.match(ended(status({ state: "stopped" })), /has stopped after 3 of 9 rounds. The job goes on when/);
  assert.equal(remaining(status({ state: "finished", reason: "the budget is spent" }), []).how, "the job ended early: the budget is spent");
  assert.equal(remaining(status({ state: "finished", version: 9 }), []).how, "the job is over");
  assert.equal(remaining(status({ state: "stopped" }), []).how, "the coordinator has stopped");
});

test("nothing is said where nothing is amiss, and each thing that is, is", () => {
  const calm = Array.from({ length: 60 }, (_, i) => round(i + 1, { ended: 1400 + 10 * i, dropped: i % 10 === 0 ? 1 : 0 }));
  assert.deepEqual(concern({ records: calm, lines: [line2("enrolled", "INFO")], checks: [{ name: "disk", ok: true, detail: "" }] }), []);
  const says = (of, level, what) => {
    const found = concern(of);
    assert.equal(found.length, 1, JSON.stringify(found));
    assert.equal(found[0].level, level);
    assert.match(found[0].what, what);
  };
  says({ progress: { state: "finished", version: 3, reason: "the budget is spent" } }, "alarm", /ended after 3 of 9 rounds: the budget/);
  assert.deepEqual(concern({ progress: { state: "finished", version: 9 } }), []);
  says({ progress: { state: "stopped", reason: "context canceled" } }, "warn", /coordinator has stopped after 3 of 9 rounds/);
  says({ progress: { state: "waiting", reason: "paused by Ada: a new phone" } }, "alarm", /No round is drawn: paused by Ada/);
  says({ progress: { state: "waiting", reason: "a round needs 8 of 10 devices ready" } }, "warn", /It waits: .*9 devices of 10/);
  says({ checks: [{ name: "disk", ok: false, detail: "3 MiB are free" }, { name: "job", ok: false, detail: "paused" }] }, "alarm", /disk fails: 3 MiB/);
  says({ lines: [line2("ALARM: a shard's sum is out of range", "ERROR"), line2("the round is not remembered", "ERROR")] }, "alarm", /not remembered.*1 more line of errors/);
  assert.deepEqual(concern({ lines: [{ ...line2("ALARM", "ERROR"), time: "1969-01-01T00:00:00Z" }] }), [], "an old alarm");
  says({ records: [round(1), round(2, { released: false, reason: "too few" })] }, "warn", /The last round released nothing: too few/);
  says({ records: [1, 2, 3].map((n) => round(n, { released: false })) }, "alarm", /The last 3 rounds released nothing/);
  says({ records: calm.map((r) => ({ ...r, ended: r.ended - 500 })) }, "warn", /No round has ended for 9 min; they usually end 10 sec apart/);
  says({ records: calm.map((r, i) => i < 55 ? r : { ...r, dropped: 4 }) }, "warn", /More devices leave: 40.0% in the last 5 rounds, 1.0% in the 50 before/);
  assert.deepEqual(concern({ records: calm.map((r) => ({ ...r, dropped: 4 })) }), [], "many leave as they always did");
  says({ lines: [line2("strike", "WARN", "device=0123abcd", "excluded=true"), line2("strike", "WARN", "device=99", "excluded=false")] }, "warn", /1 device was excluded/);
});

test("the time left is that of the rounds left at the pace of the last releases", () => {
  const records = Array.from({ length: 40 }, (_, i) => round(i + 1, { ended: 1000 + (i < 30 ? 5 * i : 150 + 10 * (i - 30)) }));
  assert.equal(pace(records.slice(0, 2)), undefined);
  assert.deepEqual(pace(records.slice(0, 21)), { usual: 5, fast: 5, slow: 5 });
  const { left, how } = remaining(status({ rounds: 100, version: 40 }), records);
  assert.match(how, /last 20 releases/);
  assert.ok(["5 min", "10 min"].includes(left), left); // half of the last twenty are 5 s apart, half 10
  assert.equal(pace(records.map((r, i) => ({ ...r, ended: 1000 + Math.floor(i / 4) }))).usual, 0.25); // shorter than the clock's second
});
