// What a visitor transfers and waits for: bytes counted at the socket by a relay
// between browser and coordinator, with everything HTTP adds.
import assert from "node:assert/strict";
import { readdirSync, statSync } from "node:fs";
import { get } from "node:http";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { fleet, open, openTab, textOf, until } from "./fleet.mjs";
import { relay } from "./relay.mjs";

// Bytes without the base's weights. The goal is 1.15e6. Groups, bounds of the start and tokenizers' expressions brought 1.313e6; the
// last of these went to the full build, messages' CBOR became ours: 1.21e6. Rounds differ by 13e3, by the rank, and a second one may
// have begun. The verdict, data without a file and what devices learnt since (12e3 of the program) brought 1.211e6 to 1.24e6. That the page
// is kept after the first round, limits asked before Join and banded noise brought 8e3: 1.236e6 and 1.248e6 were seen.
const mostToJoin = 1.26e6;
const mostFull = 1.69e6;  // bytes of the program for decoders, recordings, T5 and other tokenizers; the goal is 1.45e6
const mostAgain = 20e3;    // bytes of a page that comes back: 304s and figures
const longest = 100;       // ms of one task of the page's thread

test("the program with everything is bounded", () => {
  const assets = new URL("../dist/assets/", import.meta.url);
  const [full, ...others] = readdirSync(assets).filter((f) => /^edge-full-[0-9a-f]{12}\.bin\.br$/.test(f));
  assert.ok(full && !others.length, `${full} and ${others}`);
  const { size } = statSync(new URL(full, assets));
  assert.ok(size <= mostFull, `${size} bytes, at most ${mostFull}`);
});

test("a visit transfers little, and a second one next to nothing", { timeout: 240_000 }, async (t) => {
  const job = await fleet(t, { floor: 4 }); // no round is made without the browser
  const counted = await relay(t, Number(new URL(job.page).port));
  const browser = await open(t, "chrome");
  const { tab } = await openTab(browser, counted.url);
  await until("the promise", async () => /ε/.test(await textOf(tab, "#given")));
  const page = counted.down;
  await tab.evaluate(() => {
    globalThis.tasks = [];
    new PerformanceObserver((list) => globalThis.tasks.push(...list.getEntries().map((e) => e.duration))).observe({ type: "longtask", buffered: true });
  });
  const interactive = await tab.evaluate(() => performance.getEntriesByType("navigation")[0].domInteractive);
  await tab.click("#sample");
  await until("the sample", async () => !(await tab.$eval("#join", (b) => b.disabled)), () => job.story(tab, "#data-state"));
  await until("the trial of a round, which fetches its programs", async () => /of computing in all/.test(await textOf(tab, "#here")), () => textOf(tab, "#here"));
  const client = counted.down - page;

  const { tab: again } = await openTab(browser, counted.url);
  const before = counted.down;
  await again.reload();
  await until("the promise", async () => /ε/.test(await textOf(again, "#given")));
  await again.click("#sample");
  await until("the sample", async () => !(await again.$eval("#join", (b) => b.disabled)));
  const second = counted.down - before;
  await again.close();

  const { base_bytes: stored } = await (await fetch(`${counted.url}v1/job`)).json();
  await tab.bringToFront();
  job.joinNatives();
  const start = counted.down;
  await tab.click("#join");
  await until("the first round", async () => /^[12] /.test(await textOf(tab, "#contributed")), () => job.story(tab, "body"), 60_000);
  const sum = counted.down - start;
  const base = (await Promise.all([...counted.blobs].map((path) => blob(job.page, path)))).find((b) => b.stored === stored)?.sent;
  assert.ok(base, "the base has come through the relay");
  const round = sum - base;
  const tasks = await tab.evaluate(() => globalThis.tasks);
  t.diagnostic(`page ${page} B, client ${client} B, to the first round ${round} B besides the base's ${base}, second visit ${second} B`);
  t.diagnostic(`interactive after ${Math.round(interactive)} ms, tasks over 50 ms on the page's thread: ${tasks.map(Math.round).join(", ") || "none"}`);
  assert.ok(page + client + round <= mostToJoin, `${page + client + round} bytes to join, at most ${mostToJoin}`);
  assert.ok(second <= mostAgain, `${second} bytes for a second visit, at most ${mostAgain}`);
  if (process.env.TIMED) assert.ok(Math.max(0, ...tasks) <= longest, `a task of ${Math.max(...tasks)} ms`);
});

/** The size of a blob, and of what a browser is sent for it. */
async function blob(page, path) {
  const answer = await new Promise((resolve, reject) => get(new URL(path, page), { headers: { "accept-encoding": "gzip" } }, resolve).on("error", reject));
  const bytes = Buffer.concat(await answer.toArray());
  return { sent: bytes.length, stored: (answer.headers["content-encoding"] === "gzip" ? gunzipSync(bytes) : bytes).length };
}
