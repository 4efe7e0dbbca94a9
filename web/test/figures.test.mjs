// The dashboard's figures, of a coordinator that the test plays: one that was started
// again in the middle of a job of nine ranks, and that people leave for good.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible } from "./axe.mjs";
import { names } from "./browsers.mjs";
import { open, openTab, shot, textOf, until } from "./fleet.mjs";
import { protocol, serve } from "./pages.mjs";

const none = { up: 0, down: 0 };
const parts = (of) => ({ page: none, base: none, programs: none, model: none, slices: none, turns: none, updates: none, rest: none, ...of });
const ranks = [0, 1, 2, 3, 4, 5, 6, 7, 8];
const guarantee = (epsilon) => ({ epsilon, epsilon_lower: 0, delta: 1e-6, adjacency: "add/remove", accountant: "tight", sampling: "poisson", rounds: 1, rdp_epsilon: epsilon, rdp_order: 2 });

// Ten were drawn each time, four had gone for good, one left in the middle.
const records = [1, 2, 3, 4, 5, 6].map((round) => ({
  round, version: round, rank: 1 + round % 8, clip_norm: 1, cohort: 10, dropped: 1, absent: 4, answered: 5, released: true, seconds: 2 + round / 3,
  accuracy: ranks.map((rank) => ({ rank, accuracy: 0.5 + (rank === 6 ? 0.25 : rank / 40) + round / 100, loss: 2 - rank / 9 - round / 10 })),
  delivered: guarantee(round / 2), bytes_up: 6000, bytes_down: 12_000,
  parts: parts({ slices: { up: 0, down: 10_000 }, turns: { up: 1000, down: 2000 }, updates: { up: 5000, down: 0 } }),
}));
records[4].accuracy = ranks.slice(1, 5).map((rank) => ({ rank, accuracy: rank / 10 }));
records[5].accuracy = [{ rank: 0, accuracy: 0.5 }];

const about = { job: "figures", task: "classify", labels: [], rounds: 9, private: true, protects: "device", delivered: guarantee(5), shard_floor: 3, sampling_rate: 1, base_bytes: 1, protocol, needs_secret: false };
const progress = {
  job: "figures", labels: [], rounds: 9, private: true, state: "collecting", round: 7, version: 6, rank: 3, clip_norm: 1, delivered: guarantee(3),
  elapsed_ns: 1e9, enrolled: 10, connected: 6, cohort: 10, dropped: 0, absent: 4, answered: 2, bytes_up: 36_000, bytes_down: 172_000,
  parts: parts({ base: { up: 0, down: 100_000 }, slices: { up: 0, down: 60_000 }, turns: { up: 6000, down: 12_000 }, updates: { up: 30_000, down: 0 } }),
};

function coordinator(request, response, path) {
  const json = (of) => response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(of));
  if (path === "/v1/job") return json(about), true;
  if (path === "/v1/admin/devices.json") return json([]), true;
  if (path === "/v1/admin/who.json") return json({ name: "Ada", role: "operator" }), true;
  if (path !== "/v1/admin/events") return false;
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  response.write(`event: overview\ndata: ${JSON.stringify({ progress, state_left_ms: 0, cohort: "....ttttmm", browsers: "nnnnbbnnnn" })}\n\n` +
    `event: rounds\ndata: ${JSON.stringify(records)}\n\n`);
  return true;
}

for (const name of names) {
  test(`${name} shows figures of the whole job, named`, { timeout: 120_000 }, async (t) => {
    const address = await serve(t, coordinator);
    const browser = await open(t, name);
    const { tab, faults } = await openTab(browser, `${address}dashboard#token`, { width: 1280, height: 900 });
    await until("the rounds", async () => (await tab.$$("#history-rows tr")).length === records.length, () => textOf(tab, "body"));
    await until("the charts", async () => (await tab.$$("#accuracy-chart .u-marker svg")).length === ranks.length, () => textOf(tab, "body"));

    const row = async (n) => tab.$$eval("#history-rows tr", (rows, i) => [...rows[i].cells].map((c) => c.textContent), n);
    const [last, fifth, fourth] = [await row(0), await row(1), await row(2)];
    assert.equal(last[4], "50.0 % with the head alone");
    assert.equal(fifth[4], "40.0 % at rank 41: 10.0 %, 2: 20.0 %, 3: 30.0 %"); // on two lines
    assert.equal(fourth[4], "79.0 % at rank 68 others from 54.0 % with the head alone");
    assert.equal(fourth[2], "5 of 6", "who is not there is said to have been in the round");
    assert.match(await textOf(tab, "#devices-of"), /10 drawn for this round, 4 not there, 0 dropped/);

    const cells = await tab.$$eval("#parts-rows tr", (rows) => Object.fromEntries(rows.map((r) => [r.cells[0].textContent, [...r.cells].slice(2).map((c) => c.textContent)])));
    assert.deepEqual(cells.Base, ["0 B", "10.0 kB", "100 kB"]);
    assert.deepEqual(cells["Adapter slices"], ["0 B", "2.0 kB", "60.0 kB"]); // 60 kB among 6 rounds of 5
    assert.deepEqual(cells["Masked updates"], ["1.0 kB", "0 B", "30.0 kB"]);

    const looks = await tab.$$eval("#accuracy-chart .u-marker line", (lines) => lines.map((l) => `${l.getAttribute("stroke")} ${l.getAttribute("stroke-dasharray")}`));
    assert.equal(new Set(looks).size, ranks.length, `two ranks look alike: ${looks.join("; ")}`);

    await accessible(tab, "figures");
    await shot(tab, `${name}-dashboard-figures`, { fullPage: true });
    await tab.setViewport({ width: 390, height: 844 });
    await shot(tab, `${name}-dashboard-figures-phone`, { fullPage: true });
    assert.ok(await tab.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "it scrolls sideways");
    assert.deepEqual(faults, []);
  });
}
