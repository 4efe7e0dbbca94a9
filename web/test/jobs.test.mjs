// The page of a server of several jobs: asked for its token, submitted to, steered by the
// keyboard, which keeps its place, and told when the server has gone.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { accessible } from "./axe.mjs";
import { inDark, names } from "./browsers.mjs";
import { open, openTab, shot, start, textOf, until } from "./fleet.mjs";

const file = (name) => `
name: ${name}
labels: [catering, energy, freight, maintenance, office, software, telecom, travel]
rounds: 2
adapter: {rank_min: 1, rank_max: 2}
cohort: {population: 4, floor: 3}
shard: {size: 8, floor: 3, corrupt: 0, breach_bits: 0}
privacy: {simulated_population: 1000000, simulated_cohort: 10000}
`;

for (const name of names) {
  test(`${name} shows the jobs of a server, and steers them`, { timeout: 240_000 }, async (t) => {
    const dir = mkdtempSync(join(tmpdir(), "starling-jobs-")), state = join(dir, "state");
    for (const one of ["invoices", "receipts"]) writeFileSync(join(dir, `${one}.yaml`), file(one));
    assert.equal(await start(["job", "submit", "--dir", state, join(dir, "invoices.yaml")]).done, 0);
    const server = start(["serve", "--dir", state, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    t.after(async () => {
      server.child.kill("SIGKILL");
      await server.done;
      rmSync(dir, { recursive: true, force: true });
    });
    const address = await until("the page", () => /in a browser: (\S+)/.exec(server.err)?.[1], () => server.err);
    const browser = await open(t, name);
    const { tab, faults } = await openTab(browser, address.replace(/#.*/, ""), { width: 1280, height: 900 });
    await until("the question for the token", () => tab.$eval("#denied", (e) => !e.hidden));
    await accessible(tab, "token asked for");
    await shot(tab, `${name}-jobs-denied`);
    await tab.type("#token", address.replace(/.*#/, ""));
    await tab.keyboard.press("Enter");
    const row = (job) => tab.$$eval("#job-rows tr", (rows, of) => rows.map((r) => r.textContent).find((r) => r.startsWith(of)), job);
    await until("the job", async () => /^invoicesrunning/.test(await row("invoices")), () => textOf(tab, "main"));

    await tab.type("#submit-name", "receipts");
    await (await tab.$("#submit-file")).uploadFile(join(dir, "receipts.yaml"));
    await tab.focus("#submit-form button");
    await tab.keyboard.press("Enter");
    await until("the second job", async () => /^receiptsrunning/.test(await row("receipts")), () => textOf(tab, "main"));
    await until("the answer", async () => /^receipts is submitted/.test(await textOf(tab, "#submit-said")), () => textOf(tab, "#submit-said")); // the list is asked for by itself

    // A pause is asked about; the keyboard stays where it was, although the table is made anew.
    await tab.focus("[aria-label='Pause invoices']");
    await tab.keyboard.press("Enter");
    await until("the question", () => tab.$eval("#ask", (e) => e.open));
    await accessible(tab, "a question");
    await shot(tab, `${name}-jobs-ask`);
    await tab.keyboard.type("a new label");
    await tab.keyboard.press("Enter");
    await until("the pause", async () => /^invoicespaused/.test(await row("invoices")), () => textOf(tab, "main"));
    assert.ok(await tab.evaluate(() => document.getElementById("jobs").contains(document.activeElement)), "the focus went with the row");
    await accessible(tab, "two jobs");
    await inDark(tab, () => accessible(tab, "two jobs, dark"));
    await shot(tab, `${name}-jobs`, { fullPage: true });
    await tab.setViewport({ width: 390, height: 844 });
    assert.ok(await tab.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "it scrolls sideways");
    assert.deepEqual(faults.filter((f) => !/401/.test(f)), []);
    server.child.kill("SIGKILL");
    await until("the loss", async () => /^Disconnected: /.test(await textOf(tab, "#live")), () => textOf(tab, "#live"));
    await shot(tab, `${name}-jobs-lost`);
  });
}
