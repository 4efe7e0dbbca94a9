// The npm package against a worker that the test plays.
import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import * as esbuild from "esbuild";

const built = await esbuild.build({ entryPoints: ["edge/src/index.ts"], bundle: true, format: "esm", write: false, absWorkingDir: new URL("..", import.meta.url).pathname });
const { Edge, Participation, StarlingError, join, sourceOf } = await import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].contents).toString("base64")}`);

globalThis.location = new URL("https://fl.example.org/page");

/** Workers that were made, newest last; each keeps what it was told. */
const workers = [];
globalThis.Worker = class {
  constructor(address) {
    this.address = String(address);
    this.told = [];
    this.account = { given: [], kept: true };
    workers.push(this);
  }
  postMessage(message) {
    this.told.push(message);
    if (message.kind === "load") queueMicrotask(() => this.say({ kind: "loaded", version: "1" }));
    if (message.kind === "account") queueMicrotask(() => this.say({ kind: "answer", id: message.id, json: JSON.stringify(this.account) }));
  }
  terminate() { this.ended = true; }
  say(data) { if (!this.ended) this.onmessage({ data }); }
};

const settled = () => new Promise((resolve) => setTimeout(resolve, 5));
const where = { worker: "w.js", program: "e.wasm" };

async function joined(options = {}) {
  const changes = [];
  const part = new Participation({
    ...where, url: "/v1", source: sourceOf([{ text: "a", label: "b" }]), identity: new Uint8Array(32),
    onChange: (p) => changes.push(p.standing), ...options,
  });
  await settled();
  const worker = workers.at(-1);
  const event = (state, more = {}) => worker.say({ kind: "event", event: { state, up: 0, down: 0, ...more } });
  return { part, worker, event, changes };
}

test("examples become lines that a device reads", () => {
  const source = sourceOf([{ text: 'line\nbreak "quoted"', label: "x", provider: "p" }]);
  assert.equal(source.fileName, "examples.jsonl");
  assert.deepEqual(JSON.parse(new TextDecoder().decode(source.data)), { text: 'line\nbreak "quoted"', label: "x", provider: "p" });
});

test("a join is told where, and reports what happens", async () => {
  const { part, worker, event } = await joined({ token: "starling2_x", totals: { rounds: 3, up: 100, down: 200 } });
  assert.deepEqual(worker.told.map((m) => m.kind), ["load", "account", "join"]);
  assert.equal(worker.told[0].program, "https://fl.example.org/e.wasm");
  assert.equal(worker.told[2].options.url, "https://fl.example.org/v1");
  assert.equal(worker.told[2].options.token, "starling2_x");
  event("training", { round: 1, done: 1, total: 80, up: 10, down: 20 });
  assert.equal(part.standing, "running");
  assert.deepEqual(part.totals, { rounds: 3, up: 110, down: 220 });
  event("committed", { up: 11, down: 21 });
  assert.deepEqual(part.totals, { rounds: 4, up: 111, down: 221 });
  worker.say({ kind: "finished", identity: new Uint8Array(32) });
  await settled();
  assert.equal(part.standing, "finished");
  assert.ok(worker.ended);
});

test("a gzipped file is read as what is in it", async () => {
  const edge = await Edge.load(where);
  const worker = workers.at(-1);
  const seen = edge.preview({ fileName: "data.CSV.gz", data: gzipSync("label,text\na,b\n"), labelColumn: "label" });
  for (let i = 0; i < 500 && worker.told.length < 2; i++) await settled();
  const { id, source } = worker.told.at(-1);
  assert.equal(source.fileName, "data.CSV");
  assert.equal(new TextDecoder().decode(source.data), "label,text\na,b\n");
  assert.equal(source.labelColumn, "label");
  worker.say({ kind: "answer", id, json: "{}" });
  await seen;
  await assert.rejects(edge.preview({ fileName: "x.tsv.gz", data: new Uint8Array([1, 2, 3]) }), /x\.tsv\.gz is no gzip file/);
  edge.close();
});

test("what the policy refuses is told limit by limit, and accepting it joins again", async () => {
  const limit = { key: "uplinks", what: "updates are to be written as \"f32\"", why: "why", have: "f32", want: "nf4" };
  const { part, worker } = await joined();
  worker.say({ kind: "failed", reason: "outside the policy", limits: [limit] });
  await settled();
  assert.equal(part.standing, "refused");
  assert.deepEqual(part.limits, [limit]);
  part.accept();
  await settled();
  assert.notEqual(workers.at(-1), worker);
  assert.deepEqual(workers.at(-1).told[1].options.accept, { uplinks: "f32" });
  workers.at(-1).say({ kind: "given", given: [{ name: "j", promised: 2, contributed: 1, committed: 1, last: 5 }], kept: false });
  assert.equal(part.given[0].contributed, 1);
  assert.equal(part.kept, false);
  const model = { version: 2, rank: 1, archive: new Uint8Array(3) };
  workers.at(-1).say({ kind: "finished", identity: new Uint8Array(32), model });
  await settled();
  assert.equal(part.standing, "finished");
  assert.ok(!workers.at(-1).ended, "the model went with its worker");
  void part.predict("text", { untrained: true }).catch(() => undefined); // the end of its worker
  assert.deepEqual([workers.at(-1).told.at(-1).input, workers.at(-1).told.at(-1).untrained], ["text", true]);
  const labels = part.predict("text");
  const { id, untrained } = workers.at(-1).told.at(-1);
  assert.equal(untrained, false);
  workers.at(-1).say({ kind: "answer", id, json: '[{"label":"x","probability":0.75}]' });
  assert.equal((await labels)[0].label, "x");
  part.close();
  assert.ok(workers.at(-1).ended);
  await assert.rejects(part.predict("text"), /no model/);
});

test("what was given is told of a device that is paused from the start", async () => {
  const given = [{ id: "aa", name: "j", promised: 2, contributed: 1, committed: 1, last: 5 }];
  const before = workers.length;
  const part = new Participation({ ...where, url: "/v1", source: { fileName: "mine.TSV.gz", data: new Uint8Array(1) }, identity: new Uint8Array(32) });
  part.pause();
  assert.equal(part.given, undefined);
  workers[before].account = { given, kept: false };
  await settled();
  assert.equal(part.standing, "paused");
  assert.deepEqual(workers[before].told.map((m) => m.kind), ["load", "account"]);
  assert.equal(workers[before].told[1].fileName, "mine.TSV", "a packed file has another account than the same one unpacked");
  assert.deepEqual([part.given, part.kept], [given, false]);
  assert.ok(workers[before].ended, "it waits in a worker");
});

test("a pause waits for the running round, and only for that", async () => {
  const { part, worker, event } = await joined();
  event("training", { round: 2, up: 5, down: 6 });
  part.pause();
  assert.equal(part.standing, "pausing");
  event("revealing", { round: 2, up: 7, down: 8 });
  assert.ok(!worker.ended, "it left in mid-round");
  event("committed", { up: 9, down: 9 });
  assert.equal(part.standing, "paused");
  assert.ok(worker.ended);
  part.resume();
  await settled();
  assert.equal(part.standing, "running");
  assert.notEqual(workers.at(-1), worker);
  workers.at(-1).say({ kind: "event", event: { state: "committed", up: 1, down: 1 } });
  assert.deepEqual(part.totals, { rounds: 2, up: 10, down: 10 }, "bytes of both joins");
  // Fetching the base is no round: nobody waits for it.
  workers.at(-1).say({ kind: "event", event: { state: "fetching", done: 1, total: 9, up: 1, down: 2 } });
  part.pause();
  assert.equal(part.standing, "paused");
  part.stop();
  assert.equal(part.standing, "stopped");
});

test("a pause that is taken back keeps the round", async () => {
  const { part, worker, event } = await joined();
  event("keying", { round: 1 });
  part.pause();
  part.resume();
  event("committed");
  assert.equal(part.standing, "running");
  assert.ok(!worker.ended);
  part.stop();
});

test("a sample of recordings is WAV files", async () => {
  const edge = await Edge.load(where);
  const asked = edge.sample("recordings", 7), { id, n, of } = workers.at(-1).told.at(-1);
  assert.deepEqual([n, of], [7, "recordings"]);
  workers.at(-1).say({ kind: "answer", id, json: JSON.stringify([{ label: "asa", user: "sample 7-0", wav: Buffer.from("RIFF").toString("base64") }]) });
  const { fileName, recordings: [word] } = await asked;
  assert.deepEqual([fileName, word.label, word.user, await word.recording.text()], ["sample-7", "asa", "sample 7-0", "RIFF"]);
  edge.close();
});

test("a failure says why", async () => {
  const { part, worker } = await joined();
  worker.say({ kind: "failed", reason: "wrong enrolment secret", code: "secret" });
  await settled();
  assert.equal(part.standing, "failed");
  assert.equal(part.error.code, "secret");
  await assert.rejects(part.finished, { name: "StarlingError", code: "secret" });
  assert.equal(part.reason, "wrong enrolment secret");
  const broken = Edge.load(where);
  workers.at(-1).onerror({ message: "no such file" });
  await assert.rejects(broken, /no such file/);
});

test("questions are answered apart, and end with the edge", async () => {
  const edge = await Edge.load(where);
  const worker = workers.at(-1);
  const [first, second, third] = [1, 2, 3].map((n) => edge.preview({ fileName: `${n}.tsv` }));
  await settled();
  const [, a, b] = worker.told;
  worker.say({ kind: "answer", id: b.id, json: '{"examples":2}' });
  worker.say({ kind: "refused", id: a.id, reason: "line 7" });
  assert.equal((await second).examples, 2);
  await assert.rejects(first, /line 7/);
  edge.close();
  await assert.rejects(third, /closed/);
  await assert.rejects(edge.join({ url: "/" }), /closed/);
});

// Each method inside each callback: none may run without end, and what ended stays ended.
for (const callback of ["onChange", "change", "standing", "progress", "given"]) {
  for (const method of ["stop", "pause", "resume", "accept", "close", "predict"]) {
    test(`${method} inside ${callback}`, async () => {
      let calls = 0;
      const call = (p) => {
        assert.ok(++calls < 100, `${callback} was called ${calls} times`);
        const answer = p[method]("a text");
        if (method === "predict") answer.catch((error) => assert.equal(error.code, "no-model"));
      };
      const { part, worker, event } = await joined(callback === "onChange" ? { onChange: call } : {});
      if (callback !== "onChange") part.addEventListener(callback, () => call(part));
      event("training", { round: 1 });
      worker.say({ kind: "given", given: [], kept: true });
      event("committed", { round: 1, limits: [{ key: "batch", have: "4", want: "16" }] });
      part.stop();
      await settled();
      assert.ok(["stopped", "finished", "failed"].includes(part.standing), part.standing);
      const { standing } = part;
      for (const again of ["stop", "pause", "resume", "accept", "close"]) part[again]();
      assert.equal(part.standing, standing);
      assert.equal((await part.finished.catch((error) => error)).code, "closed");
    });
  }
}

test("a page's fault in onChange is reported and ends nothing", async () => {
  const reported = new Promise((resolve) => { globalThis.reportError = resolve; });
  let faults = 0;
  const { part } = await joined({ onChange: () => { if (!faults++) throw new Error("the page's own"); } });
  assert.equal((await reported).message, "the page's own");
  assert.equal(part.standing, "running");
  part.stop();
});

test("what callers leave out is refused by name, as a StarlingError", async () => {
  const refused = async (ask, code, words) => {
    const error = await ask().then(() => assert.fail("took it"), (error) => error);
    assert.ok(error instanceof StarlingError, String(error));
    assert.equal(error.code, code);
    assert.match(error.message, words);
  };
  await refused(() => join({ url: "/v1", ...where }), "options", /data is missing/);
  await refused(() => join(), "options", /data is missing/);
  await refused(() => join({ url: undefined, data: [], ...where }), "options", /url is missing/);
  const edge = await Edge.load(where);
  for (const source of [undefined, {}, { fileName: "a", data: "text" }]) {
    await refused(() => edge.preview(source), "options", /source/);
    await refused(() => edge.join({ url: "/v1", source }), "options", /source/);
  }
  const { part } = await joined();
  await refused(() => part.predict("x"), "no-model", /no model/);
  part.stop();
  await refused(() => part.finished, "closed", /stopped/);
});
