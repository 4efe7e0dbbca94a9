// The dashboard of a large fleet, against a coordinator that the test plays: a
// thousand devices that change five times a second, two thousand rounds, a list of
// ten thousand. How long tasks and frames take is printed; with TIMED set it is
// held to the goal.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible } from "./axe.mjs";
import { names } from "./browsers.mjs";
import { open, openTab, shot, textOf, until } from "./fleet.mjs";
import { protocol, serve } from "./pages.mjs";

const enrolled = 10_000, rounds = 2000;
const identity = (i) => i.toString(16).padStart(8, "0").repeat(8);

/** A coordinator as far as the dashboard sees one, with so many devices in its running round. */
async function played(t, devices = 1000) {
  const asked = [];
  const list = Array.from({ length: enrolled }, (_, i) => ({
    identity: identity(i), enrolled: "2026-01-01T00:00:00Z", seen: "2026-01-02T03:00:00Z",
    ...(i % 500 === 7 ? { strikes: 2 } : {}), ...(i % 1000 === 9 ? { strikes: 3, excluded: "silent in 3 rounds in a row" } : {}),
  }));
  const guarantee = (epsilon) => ({ epsilon, epsilon_lower: 0, delta: 1e-6, adjacency: "add/remove", accountant: "tight", sampling: "poisson", rounds: 1, rdp_epsilon: epsilon, rdp_order: 8 });
  const of = (up, down) => ({ up, down });
  const parts = (i) => ({ page: of(0, 0), base: of(1e3, 1e9), programs: of(1e3, 1e7), model: of(0, 0), slices: of(1e5, 4e6 + 1e3 * i),
    turns: of(2e6, 1e6), updates: of(8e6, 0), rest: of(1e5, 1e5) });
  const history = Array.from({ length: rounds }, (_, i) => ({
    round: i + 1, version: i + 1, rank: 1 + i % 8, clip_norm: 1, cohort: devices, dropped: i % 30, absent: i % 11, answered: 0, released: true, seconds: 20 + i % 7,
    declined: i % 5, stopped: i % 3, refused: i % 2, sessions_refused: i % 13, ended: 1_800_000_000 + 25 * i,
    accuracy: [1, 2, 4, 8].map((rank) => ({ rank, accuracy: 1 - Math.exp(-(i + 100 * rank) / 1500), loss: 0.1 + 2 * Math.exp(-(i + 100 * rank) / 1500), of: 128 })), delivered: guarantee(i / 1000), bytes_up: 9e6 + 1e3 * i, bytes_down: 5e6, parts: parts(i),
  }));
  let step = 0;
  const overview = () => {
    step++;
    const at = Array.from({ length: devices }, (_, i) => ".jtmrax"[Math.min(5, Math.floor((step * 7 + i * 13) % 60 / 10))]).join("");
    return { state_left_ms: 30_000, cohort: at, browsers: Array.from({ length: devices }, (_, i) => i % 3 ? "n" : "b").join(""), progress: {
      job: "a large fleet", labels: ["a", "b"], rounds: 2 * rounds, private: true, state: "collecting", round: rounds + 1, version: rounds, rank: 4, clip_norm: 1,
      delivered: guarantee(2), elapsed_ns: 1e12, enrolled, connected: 4000 + step, cohort: devices, dropped: 3, absent: 12, answered: step, bytes_up: 1e9, bytes_down: 1e9, parts: parts(step) } };
  };
  const line = () => ({ time: new Date().toISOString(), level: step % 9 ? "INFO" : "WARN", what: step % 9 ? "enrolled" : "strike", details: [`device=${step}`] });
  const open = new Set();
  const address = await serve(t, (request, answer, pathname) => {
    asked.push(`${request.method} ${pathname} ${request.headers.authorization ?? ""}`.trim());
    if (pathname === "/v1/admin/events") {
      answer.writeHead(200, { "Content-Type": "text/event-stream" });
      const say = (event, data) => answer.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
      say("overview", overview());
      for (let i = 0; i < rounds; i += 50) say("rounds", history.slice(i, i + 50)); // as a coordinator tells them
      say("events", Array.from({ length: 200 }, line));
      const every = setInterval(() => {
        say("overview", overview());
        say("events", [line(), line()]);
        if (step % 10 === 0) say("rounds", [{ ...history[rounds - 1], seconds: 20 + step % 3 }]); // an accuracy has come
      }, 200);
      open.add(every);
      request.on("close", () => clearInterval(every));
      return true;
    }
    const judged = /^\/v1\/admin\/devices\/([0-9a-f]{64})\/(ban|pardon)$/.exec(pathname);
    if (judged && request.method === "POST") {
      const d = list.find((one) => one.identity === judged[1]);
      if (judged[2] === "ban") d.excluded = "banned by the operator";
      else { delete d.excluded; delete d.strikes; }
      request.on("data", (b) => asked.push(String(b)));
      return answer.end("{}");
    }
    if (pathname === "/v1/admin/fleet.json") {
      const q = new URL(request.url, "http://x").searchParams, from = Number(q.get("from"));
      const found = list.filter((d) => d.identity.startsWith(q.get("begins") ?? "") && (!q.get("held") || d.excluded || d.strikes))
        .toSorted((a, b) => Number(b.excluded !== undefined) - Number(a.excluded !== undefined) || (b.strikes ?? 0) - (a.strikes ?? 0));
      return answer.end(JSON.stringify({ enrolled, excluded: 10, struck: 30, declining: 4, programs: [{ name: "starling/1.0", devices: 9000 }, { name: "starling", devices: 1000 }],
        platforms: [{ name: "linux/amd64", devices: 6000 }, { name: "darwin/arm64", devices: 3000 }, { name: "browser", devices: 1000 }],
        seen: [{ name: "within 2 hours", devices: 4000 }, { name: "within a day", devices: 5000 }, { name: "longer ago", devices: 1000 }], found: found.length, devices: found.slice(from, from + 50) }));
    }
    if (pathname === "/v1/admin/forecast.json") {
      return answer.end(JSON.stringify({ epsilon: 4, delta: 1e-6, bound: "delivered", charged: rounds, left: rounds, affords: rounds,
        points: Array.from({ length: 16 }, (_, i) => ({ rounds: Math.ceil(2 * rounds * ((i + 1) / 16) ** 2), delivered: guarantee(4 * (i + 1) / 16) })) }));
    }
    if (pathname === "/v1/admin/paused.json") return answer.end(JSON.stringify({ pause: null }));
    if (pathname === "/v1/admin/ready.json") return answer.end(JSON.stringify({ ready: true, checks: [{ name: "engine", ok: true, detail: "it answers" }] }));
    if (pathname === "/v1/admin/acts.json") return answer.end(JSON.stringify({ acts: [], head: "00" }));
    if (/^.v1.admin.(invitations|operators).json$/.test(pathname)) return answer.end("[]");
    if (pathname === "/v1/admin/who.json") return answer.end(JSON.stringify({ name: "Ada", role: "operator" }));
    if (pathname === "/v1/job") {
      return answer.end(JSON.stringify({ job: "a large fleet", labels: ["a", "b"], rounds: 2 * rounds, private: true, protects: "device", delivered: guarantee(4),
        shard_floor: 8, sampling_rate: 0.1, base_bytes: 1, needs_secret: true, protocol }));
    }
  });
  t.after(() => {
    for (const every of open) clearInterval(every);
  });
  return { asked, address: `${address}dashboard#${"a".repeat(64)}` };
}

/** What a browser notes of a page: its tasks' wall and processor time, in ms, and its frames' distances. */
async function noted(tab, run) {
  await tab.tracing.start({ categories: ["toplevel"] });
  await run();
  const { traceEvents: all } = JSON.parse(new TextDecoder().decode(await tab.tracing.stop()));
  // Of several renderers' main threads (a browser keeps a spare one) the page's is the one that works.
  const tasks = all.filter((e) => e.name === "thread_name" && e.args.name === "CrRendererMain")
    .map((of) => all.filter((e) => e.pid === of.pid && e.tid === of.tid && e.ph === "X" && e.name.endsWith("RunTask")).map((e) => ({ wall: e.dur / 1000, processor: (e.tdur ?? 0) / 1000 })));
  const sum = (of) => of.reduce((n, task) => n + task.processor, 0);
  return tasks.sort((a, b) => sum(b) - sum(a))[0];
}

const longest = (tasks, of) => Math.max(0, ...tasks.map((task) => task[of]));

for (const devices of [1000, 10_000]) {
  test(`a cohort of ${devices.toLocaleString("en")} devices changes five times a second, after ${rounds.toLocaleString("en")} rounds`, { timeout: 180_000 }, async (t) => {
    const job = await played(t, devices);
    const browser = await open(t, "chrome");
    const tab = await browser.newPage();
    await tab.setViewport({ width: 1280, height: 900 });
    const faults = [];
    tab.on("pageerror", (error) => faults.push(String(error)));
    const shown = (how) => until("the cohort", async () => new RegExp(`^${devices} devices`).test(await tab.$eval("#cohort", (e) => e.getAttribute("aria-label") ?? "")) &&
      (await tab.$$(".plot .u-over")).length === 8 && /page|Rounds \d/.test(await textOf(tab, "#history-shown")), () => textOf(tab, "body"), 90_000).then(how);
    const start = await noted(tab, async () => { await tab.goto(job.address); await shown(() => undefined); });
    const thread = await tab.createCDPSession();
    await thread.send("Performance.enable", { timeDomain: "threadTicks" });
    const busy = async () => (await thread.send("Performance.getMetrics")).metrics.find((m) => m.name === "TaskDuration").value;
    let frames = [], share = 0;
    const goes = await noted(tab, async () => {
      const before = await busy();
      frames = await tab.evaluate(() => new Promise((resolve) => {
        const apart = [], begun = performance.now();
        let last = begun;
        const frame = (now) => {
          apart.push(now - last);
          last = now;
          if (now - begun < 8000) requestAnimationFrame(frame);
          else resolve(apart);
        };
        requestAnimationFrame(frame);
      }));
      share = (await busy() - before) / 8;
    });
    frames = frames.slice(1).sort((a, b) => a - b);
    const at = (q) => frames[Math.floor(q * (frames.length - 1))].toFixed(1);
    const rate = 1000 * frames.length / frames.reduce((a, b) => a + b, 0);
    const both = (tasks) => `${longest(tasks, "processor").toFixed(0)} (${longest(tasks, "wall").toFixed(0)})`;
    t.diagnostic(`row: | ${devices.toLocaleString("en")} | ${both(goes)} | ${both(start)} | ${(100 * share).toFixed(0)} | ${rate.toFixed(1)} | ${at(0.5)}, ${at(0.95)} |`);
    assert.ok(frames.length > 8, "the page stands still");
    // Processor time holds on a machine that others use, too, within its spread: a beginning's longest task has 33 to 52 ms.
    assert.ok(longest(goes, "processor") <= 50, `a task of ${longest(goes, "processor")} ms`);
    assert.ok(longest(start, "processor") <= (process.env.TIMED ? 50 : 100), `a task of ${longest(start, "processor")} ms at the start`);
    assert.deepEqual(faults, []);
    if (process.env.TIMED) assert.ok(rate >= 58, `${rate} frames a second`);
    if (devices > 1000) return;
    await accessible(tab, "two thousand rounds");
    await shot(tab, "chrome-dashboard-many", { fullPage: true });
    await tab.setViewport({ width: 640, height: 450, deviceScaleFactor: 2 }); // as 200 % of 1280 by 900
    assert.ok(await tab.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "it scrolls sideways at 200 %");
    await accessible(tab, "at 200 %");
    await shot(tab, "chrome-dashboard-many-200", { fullPage: true });
  });
}

for (const name of names) {
  test(`${name}: a device is found, banned and pardoned by keyboard alone`, { timeout: 120_000 }, async (t) => {
    const job = await played(t);
    const browser = await open(t, name);
    const { tab } = await openTab(browser, job.address, { width: 390, height: 844 });
    await until("the stream", async () => (await textOf(tab, "#live")) === "Live", () => textOf(tab, "body"));
    // On a phone all is folded that is not for now: little more than two screens.
    const height = () => tab.evaluate(() => document.documentElement.scrollHeight);
    await until("a short page", async () => await height() <= 2200, height);
    const focused = () => tab.evaluate(() => document.activeElement?.id || document.activeElement?.parentElement?.id || "");
    const tabTo = async (id) => {
      for (let i = 0; i < 80; i++) {
        if ((await focused()) === id) return;
        await tab.keyboard.press("Tab");
      }
      throw new Error(`Tab does not come to #${id}; it is at #${await focused()}`);
    };
    await tabTo("card-fleet"); // its summary
    await tab.evaluate(() => scrollTo(0, 0)); // as what grows above it pushes it out of sight
    await tab.keyboard.press("Enter");
    await until("the fleet", async () => (await tab.$$("#fleet-rows tr")).length === 50, () => textOf(tab, "#fleet-section"));
    assert.match(await textOf(tab, "#fleet-rows"), /^0{6,}9.*excluded: silent/, "the excluded do not stand first");
    await tabTo("fleet-filter");
    await tab.keyboard.type(identity(4321).slice(0, 8));
    await until("one row", async () => (await tab.$$("#fleet-rows tr")).length === 1);
    const button = `act-${identity(4321)}`;
    await tabTo(button);
    const outlined = await tab.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    assert.notEqual(outlined, "none", "the focus is not to be seen");
    await tab.keyboard.press("Enter");
    assert.equal(job.asked.filter((a) => a.startsWith("POST")).length, 0, "one press bans");
    await until("the question", () => tab.$eval("#ask", (e) => e.open));
    await accessible(tab, "a question");
    await shot(tab, `${name}-dashboard-ask-phone`);
    await tab.keyboard.press("Escape");
    await until("no question", () => tab.$eval("#ask", (e) => !e.open));
    // Its row was made anew meanwhile: the page gives the focus to the new one once the browser has told that the question closed.
    await until("the focus back", async () => (await focused()) === button, focused);
    await tab.keyboard.press("Enter");
    await until("the question again", () => tab.$eval("#ask", (e) => e.open));
    await tab.evaluate((id) => { // and once more, before the browser has told that it closed
      document.querySelector("#ask").close();
      document.getElementById(id).click();
    }, button);
    await tab.focus("#ask-reason");
    await tab.keyboard.type("a broken clock");
    await tab.keyboard.press("Enter");
    await until("the ban", async () => /excluded: banned/.test(await textOf(tab, "#fleet-rows")), () => textOf(tab, "#fleet-said"));
    assert.deepEqual(job.asked.filter((a) => a.startsWith("POST")), [`POST /v1/admin/devices/${identity(4321)}/ban Bearer ${"a".repeat(64)}`]);
    assert.ok(job.asked.includes('{"reason":"a broken clock"}'), "the reason is lost");
    await accessible(tab, "a banned device");
    // On a phone the table with its button fits.
    assert.ok(await tab.$eval("#fleet", (e) => e.scrollWidth <= e.clientWidth), "the fleet scrolls sideways");
    await tab.$eval("#fleet", (e) => e.scrollIntoView());
    await shot(tab, `${name}-dashboard-fleet-phone`);
    await tabTo(button);
    await tab.keyboard.press("Enter");
    await until("the pardon", async () => !/excluded/.test(await textOf(tab, "#fleet-rows")), () => textOf(tab, "#fleet-said"));
  });
}

test("who asks for less motion gets none", { timeout: 60_000 }, async (t) => {
  const job = await played(t);
  const browser = await open(t, "chrome");
  for (const page of [job.address, job.address.replace(/dashboard.*/, "index.html")]) {
    const { tab } = await openTab(browser, page);
    const moving = () => tab.evaluate(() => {
      const dot = document.querySelector(".dot");
      dot.closest("section")?.removeAttribute("hidden");
      dot.dataset.standing = "running";
      return document.getAnimations().length;
    });
    await tab.emulateMediaFeatures([{ name: "prefers-reduced-motion", value: "no-preference" }]);
    assert.equal(await moving(), 1, "nothing moves: the test would see nothing");
    await tab.emulateMediaFeatures([{ name: "prefers-reduced-motion", value: "reduce" }]);
    await until("the standstill", async () => (await moving()) === 0);
    await tab.close();
  }
});
