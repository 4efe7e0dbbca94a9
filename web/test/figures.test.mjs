// The dashboard's figures, of a coordinator that the test plays: one that was started
// again in the middle of a job of nine ranks, and that people leave for good.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { accessible } from "./axe.mjs";
import { names } from "./browsers.mjs";
import { open, openTab, shot, textOf, until } from "./fleet.mjs";
import { protocol, serve } from "./pages.mjs";

const none = { up: 0, down: 0 };
const parts = (of) => ({ page: none, base: none, programs: none, model: none, slices: none, turns: none, updates: none, rest: none, ...of });
const ranks = [0, 1, 2, 3, 4, 5, 6, 7, 8];
/** 128 documents, as a coordinator measures on while rounds run. */
const of = 128;
const guarantee = (epsilon) => ({ epsilon, epsilon_lower: 0, delta: 1e-6, adjacency: "add/remove", accountant: "tight", sampling: "poisson", rounds: 1, rdp_epsilon: epsilon, rdp_order: 2 });

// Ten were drawn each time, four had gone for good, one left in the middle.
const records = [1, 2, 3, 4, 5, 6].map((round) => ({
  round, version: round, rank: 1 + round % 8, clip_norm: 1, cohort: 10, dropped: 1, absent: 4, answered: 5, released: true, seconds: 2 + round / 3,
  accuracy: ranks.map((rank) => ({ rank, accuracy: 0.5 + (rank === 6 ? 0.25 : rank / 40) + round / 100, loss: 2 - rank / 9 - round / 10, of })),
  delivered: guarantee(round / 2), bytes_up: 6000, bytes_down: 12_000,
  parts: parts({ slices: { up: 0, down: 10_000 }, turns: { up: 1000, down: 2000 }, updates: { up: 5000, down: 0 } }),
}));
records[4].accuracy = ranks.slice(1, 5).map((rank) => ({ rank, accuracy: rank / 10, of }));
records[5].accuracy = [{ rank: 0, accuracy: 0.5, of }];
Object.assign(records[5], { dropped: 4, absent: 1, declined: 1, stopped: 1, refused: 1, sessions_refused: 3 });

const about = { job: "figures", task: "classify", labels: [], rounds: 9, private: true, protects: "device", delivered: guarantee(5), shard_floor: 3, sampling_rate: 1, base_bytes: 1, protocol, needs_secret: false };
const progress = {
  job: "figures", labels: [], rounds: 9, private: true, state: "collecting", round: 7, version: 6, rank: 3, clip_norm: 1, delivered: guarantee(3),
  elapsed_ns: 1e9, enrolled: 10, connected: 6, cohort: 10, dropped: 0, absent: 4, answered: 2, bytes_up: 36_000, bytes_down: 172_000,
  parts: parts({ base: { up: 0, down: 100_000 }, slices: { up: 0, down: 60_000 }, turns: { up: 6000, down: 12_000 }, updates: { up: 30_000, down: 0 } }),
};

const streams = new Set();
let standing = { cohort: "....ttttmm", browsers: "nnnnbbnnnn" };
const overview = () => `event: overview\ndata: ${JSON.stringify({ progress, state_left_ms: 0, ...standing })}\n\n`;

function coordinator(request, response, path) {
  const json = (of) => response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(of));
  if (path === "/v1/job") return json(about), true;
  if (path === "/v1/admin/fleet.json") {
    return json({ enrolled: 10, excluded: 1, struck: 2, declining: 1, programs: [{ name: "starling/1.0", devices: 9 }, { name: "<b>x</b>", devices: 1 }],
      platforms: [{ name: "linux/amd64", devices: 10 }], seen: [{ name: "within 2 hours", devices: 10 }], found: 0, devices: [] }), true;
  }
  if (path === "/v1/admin/forecast.json") {
    return json({ epsilon: 5, delta: 1e-6, bound: "delivered", charged: 7, left: 3, affords: 2, points: [1, 4, 7, 8, 9].map((rounds) => ({ rounds, delivered: guarantee(rounds / 2) })) }), true;
  }
  if (path === "/v1/admin/paused.json") return json({ pause: null }), true;
  if (path === "/v1/admin/ready.json") return json({ ready: true, checks: [] }), true;
  if (path === "/v1/admin/acts.json") return json({ acts: [], head: "" }), true;
  if (/(invitations|operators).json$/.test(path)) return json([]), true;
  if (path === "/v1/admin/who.json") return json({ name: "Ada", role: "operator" }), true;
  if (path !== "/v1/admin/events") return false;
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  streams.add(response);
  response.write(`${overview()}event: rounds\ndata: ${JSON.stringify(records)}\n\n`);
  return true;
}

for (const name of names) {
  test(`${name} shows figures of the whole job, named`, { timeout: 120_000 }, async (t) => {
    const address = await serve(t, coordinator);
    const browser = await open(t, name);
    const { tab, faults } = await openTab(browser, `${address}dashboard#token`, { width: 1280, height: 900 });
    await until("the rounds", async () => (await tab.$$("#history-rows tr")).length === records.length, () => textOf(tab, "body"));
    await until("the plots", async () => (await tab.$$(".plot .u-over")).length === 8, () => textOf(tab, "body"));
    await until("the forecast", async () => /2 more rounds of the 3 left/.test(await textOf(tab, "#foretold")), () => textOf(tab, "#privacy-title"));

    const row = async (n) => tab.$$eval("#history-rows tr", (rows, i) => [...rows[i].cells].map((c) => c.textContent), n);
    const [last, fifth, fourth] = [await row(0), await row(1), await row(2)];
    assert.equal(last[4], "50.0% with the head alone");
    assert.equal(fifth[4], "40.0% at rank 41: 10.0%, 2: 20.0%, 3: 30.0%"); // on two lines
    assert.equal(fourth[4], "79.0% at rank 68 others from 54.0% with the head alone");
    assert.equal(fourth[2], "5 of 6", "who is not there is said to have been in the round");
    assert.match(await textOf(tab, "#devices-of"), /10 drawn for this round, 4 not there, 0 dropped/);

    await until("the parts of rounds", async () => (await tab.$$eval("#parts-rows td", (cells) => cells.map((c) => c.textContent))).includes("2.0 kB"), () => textOf(tab, "body"));
    const cells = await tab.$$eval("#parts-rows tr", (rows) => Object.fromEntries(rows.map((r) => [r.cells[0].textContent, [...r.cells].slice(2).map((c) => c.textContent)])));
    assert.deepEqual(cells.Base, ["0 bytes", "10.0 kB", "100 kB"]);
    assert.deepEqual(cells["Adapter slices"], ["0 bytes", "2.0 kB", "60.0 kB"]); // 60 kB among 6 rounds of 5
    assert.deepEqual(cells["Masked updates"], ["1.0 kB", "0 bytes", "30.0 kB"]);

    // Each plot says the same as a table.
    const table = async (plot) => {
      await tab.$eval(`#${plot} .values`, (e) => { e.open = true; });
      await until(`the table of ${plot}`, () => tab.$(`#${plot} .values tbody tr`));
      return tab.$$eval(`#${plot} .values tr`, (rows) => rows.map((r) => [...r.cells].map((c) => c.textContent)));
    };
    const accuracy = await table("accuracy-plot");
    assert.deepEqual(accuracy[0], ["Round", "Best rank", "Best rank, from", "to", "Drawn rank"]);
    assert.deepEqual(accuracy[4], ["4", "79.0%", "71.2%", "85.2%", "66.5%"]); // of 128, by scipy: 0.71151 to 0.85159
    assert.deepEqual(accuracy[6], ["6", "79.0%", "71.2%", "85.2%", "–"]); // rank 6 as it was measured in round 4; rank 7 was drawn
    const map = await table("rank-map");
    assert.deepEqual(map[0], ["Round", "Drawn", "Head", ...ranks.slice(1).map((r) => `Rank ${r}`)]);
    assert.deepEqual(map[6], ["6", "7", "50.0%", "10.0%", "20.0%", "30.0%", "40.0%", "66.5%", "79.0%", "71.5%", "74.0%"]);
    assert.deepEqual((await table("turnout-plot")).slice(-2), [["5", "4.0", "1.0", "0.0", "0.0", "0.0"], ["6", "1.0", "1.0", "1.0", "1.0", "1.0"]].map((r) => r.map((c) => c.replace(".0", ""))));
    assert.deepEqual((await table("sessions-plot")).at(-1), ["6", "3"]);
    assert.deepEqual((await table("privacy-plot")).slice(-3), [["6", "3", "3", "5"], ["7", "–", "4", "5"], ["8", "–", "4.5", "5"]]);
    assert.deepEqual((await table("traffic-plot")).slice(-2), [["5", "3.0 kB", "1.7 kB", "500 bytes", "833 bytes"], ["6", "2.0 kB", "1.1 kB", "333 bytes", "556 bytes"]]);
    assert.deepEqual((await table("time-plot")).at(-1), ["6", "4.0 s"]);
    assert.match(await textOf(tab, "#attention"), /2 more rounds of the 3 left: 1 round will be missing/);
    await tab.$eval("#fleet-section", (e) => e.scrollIntoView());
    await until("the groups", async () => /<b>x<\/b>1 \(10.0%\)/.test(await textOf(tab, "#fleet-programs")), () => textOf(tab, "#fleet-section"));

    // Squares that change are drawn over: what is there then is what a page that begins with it draws.
    const before = standing;
    standing = { cohort: "j.xarttmm.", browsers: "nbnbbnnnnn" };
    for (const to of streams) to.write(overview());
    const label = () => tab.$eval("#cohort", (e) => e.getAttribute("aria-label"));
    const pixels = () => tab.$eval("#cohort", (e) => e.toDataURL());
    await until("the change", async () => /1 dropped.*3 in browsers/.test(await label()));
    const over = await pixels();
    const fresh = await openTab(browser, `${address}dashboard#token`, { width: 1280, height: 900 });
    await until("the same on another page", async () => /1 dropped/.test(await fresh.tab.$eval("#cohort", (e) => e.getAttribute("aria-label") ?? "")), () => textOf(fresh.tab, "body"));
    assert.equal(over, await fresh.tab.$eval("#cohort", (e) => e.toDataURL()), "what was drawn over differs from what is drawn anew");
    await fresh.tab.close();
    standing = before;
    for (const to of streams) to.write(overview());
    await tab.bringToFront();

    // The keyboard reads a plot and zooms all of them.
    await tab.focus("#accuracy-plot .canvas");
    await tab.keyboard.press("End");
    await until("the last round read out", async () => /^Round 6: Best rank 79.0%, Drawn rank not measured$/.test(await textOf(tab, "#readout")), () => textOf(tab, "#readout"));
    await tab.keyboard.press("ArrowLeft");
    await until("the round before", async () => /^Round 5: Best rank 79.0%/.test(await textOf(tab, "#readout")), () => textOf(tab, "#readout"));
    await tab.keyboard.press("+");
    await until("fewer rounds", async () => /^Rounds \d to \d$/.test(await textOf(tab, "#zoom-said")));
    await until("a shorter table of another plot", async () => (await tab.$$("#time-plot .values tbody tr")).length < 6);
    await tab.keyboard.press("0");
    await until("all rounds", async () => (await textOf(tab, "#zoom-said")) === "All rounds" && (await tab.$$("#time-plot .values tbody tr")).length === 6);
    await tab.$$eval(".values", (all) => all.forEach((e) => { e.open = false; }));

    // Another run, from a file.
    await tab.$eval("#card-compare", (e) => { e.open = true; });
    const dir = mkdtempSync(join(tmpdir(), "starling-compare-"));
    t.after(() => rmSync(dir, { recursive: true }));
    const file = join(dir, "other.csv");
    const head = "round,cohort,absent,released,accuracy,seconds,bytes_up,bytes_down,epsilon_delivered";
    writeFileSync(file, `${head}\n1,10,0,true,0.25,7,500,500,1\n2,10,0,true,0.5,9,500,1500,2\n`);
    const input = await tab.$("#compare-file");
    await input.uploadFile(file);
    await until("the other run", async () => /laid over/.test(await textOf(tab, "#compare-said")), () => textOf(tab, "#compare-said"));
    await until("its figures", () => tab.$("#compare-rows tr"));
    const compared = await tab.$$eval("#compare-rows tr", (rows) => rows.map((r) => [...r.cells].slice(1).map((c) => c.textContent)));
    assert.deepEqual(compared, [["6", "2"], ["50.0%", "50.0%"], ["79.0%", "50.0%"], ["3", "2"], ["3.3 s", "9.0 s"], ["3.0 kB", "200 bytes"]]);
    await until("its line", async () => /The other run/.test(await textOf(tab, "#accuracy-plot .key")), () => textOf(tab, "#accuracy-plot"));
    writeFileSync(file, "a,b\n1,2\n");
    await input.uploadFile(file);
    await until("the refusal", async () => /Not read: it is no table of rounds/.test(await textOf(tab, "#compare-said")), () => textOf(tab, "#compare-said"));

    await accessible(tab, "figures");
    await shot(tab, `${name}-dashboard-figures`, { fullPage: true });
    // Folded, told more, and unfolded in a narrow window: it is drawn as wide as that is.
    const card = (open) => tab.$eval("#accuracy-plot", (e, to) => { e.closest("details").open = to; }, open);
    await card(false);
    for (const to of streams) to.write(`event: rounds\ndata: ${JSON.stringify([{ ...records[5], seconds: 9 }])}\n\n`);
    await until("the round", async () => /9\.0 s/.test(await textOf(tab, "#history-rows")));
    await tab.setViewport({ width: 390, height: 844 });
    await card(true);
    await until("plots of their places' width", () => tab.$$eval(".plot .canvas", (all) => all.every((c) => c.clientWidth === (c.querySelector(".uplot")?.clientWidth ?? c.clientWidth))));
    await shot(tab, `${name}-dashboard-figures-narrow`, { fullPage: true }); // as it was, in a narrow window
    assert.ok(await tab.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "it scrolls sideways unfolded");
    await tab.reload(); // and as somebody with a phone finds it
    await until("the stream", async () => (await textOf(tab, "#live")) === "Live", () => textOf(tab, "body"));
    await until("what needs somebody", async () => /round/.test(await textOf(tab, "#attention")), () => textOf(tab, "#attention"));
    const height = await tab.evaluate(() => document.documentElement.scrollHeight);
    assert.ok(height <= 2000, `the page is ${height} pixels high`);
    await accessible(tab, "figures on a phone");
    await shot(tab, `${name}-dashboard-figures-phone`, { fullPage: true });
    assert.ok(await tab.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "it scrolls sideways");
    assert.deepEqual(faults, []);
  });
}
