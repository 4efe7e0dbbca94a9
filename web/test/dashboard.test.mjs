// The operator's dashboard in every state: without and with a wrong token,
// waiting, in a round, over, and after the coordinator has gone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible } from "./axe.mjs";
import { inDark, names } from "./browsers.mjs";
import { choose, fleet, open, openTab, shot, textOf, until } from "./fleet.mjs";

const desktop = { width: 1280, height: 900 };

for (const name of names) {
  test(`${name} shows a job to its operator`, { timeout: 300_000 }, async (t) => {
    const job = await fleet(t, { rounds: 36 }); // more than end while its running page is examined
    const browser = await open(t, name);
    const { tab, faults } = await openTab(browser, job.dashboard.replace(/#.*/, ""), desktop);
    await until("the question for the token", () => tab.$eval("#denied", (e) => !e.hidden));
    await accessible(tab, "token asked for");
    await tab.type("#token", "0".repeat(64));
    await tab.keyboard.press("Enter");
    await until("the refusal", async () => /does not know/.test(await textOf(tab, "#denied-why")));
    assert.ok(await tab.$eval("#content", (e) => e.hidden), "something is shown to a stranger");
    await shot(tab, `${name}-dashboard-denied`);

    await tab.goto("about:blank");
    await tab.goto(job.dashboard);
    await until("the waiting job", async () => (await textOf(tab, "#state")) === "waiting", () => job.story(tab, "body"));
    assert.equal(await tab.evaluate(() => location.hash), "", "the token stays in the address");
    await accessible(tab, "waiting");
    await shot(tab, `${name}-dashboard-waiting`, { fullPage: true });

    const other = await openTab(browser, job.page);
    await until("the promise", async () => /ε/.test(await textOf(other.tab, "#given")));
    await choose(other.tab, job.own);
    await accessible(other.tab, "join page with a preview");
    job.joinNatives();
    await other.tab.click("#join");
    await until("the join", async () => !(await other.tab.$eval("#joining", (e) => e.hidden)));
    await accessible(other.tab, "join page taking part");
    await tab.bringToFront();
    await until("a cohort", () => tab.$eval("#cohort", (e) => !e.hidden), () => job.story(tab, "body"));
    assert.match(await tab.$eval("#cohort", (e) => e.getAttribute("aria-label")), /^4 devices.*1 in browsers/);
    await shot(tab, `${name}-dashboard-running`, { fullPage: true });
    await until("a round in the table", () => tab.$("#history-rows tr"), () => job.story(tab, "body"));
    // The join link is shown when it is asked for, as an image that the page's policy lets through.
    assert.ok(await tab.$eval("#invite", (e) => e.hidden), "the join link lies open");
    // Rounds that end meanwhile move what is to be clicked: it is focused.
    await tab.focus("#invite-show");
    await tab.keyboard.press("Enter");
    await until("the QR code", () => tab.$eval("#invite-code", (e) => e.complete && e.naturalWidth > 0), () => textOf(tab, "#invite-said"));
    assert.equal(await tab.$eval("#invite-link", (e) => e.value), job.page);
    assert.ok(!(await tab.$eval("#invite-local", (e) => e.hidden)), "a loopback address is offered to others");
    await tab.$eval("#fleet-section", (e) => e.scrollIntoView());
    await until("the fleet", async () => (await tab.$$("#fleet-rows tr")).length === 4, () => job.story(tab, "#fleet-section"));
    await accessible(tab, "running");
    await shot(tab, `${name}-dashboard-invite`, { fullPage: true });
    await tab.focus("#invite-show");
    await tab.keyboard.press("Enter");
    await until("the job file to open", async () => {
      await tab.click("#job-file summary");
      return tab.$eval("#job-file", (e) => e.open);
    });
    await until("the job file", async () => /^name: browser test$/m.test(await textOf(tab, "#job-text")), () => textOf(tab, "#job-failed"));
    assert.match(await textOf(tab, "#job-text"), /shard:[^]*floor: 3/);
    await until("the end", async () => (await textOf(tab, "#state")) === "finished", () => job.story(tab, "body"), 90_000);
    assert.equal((await tab.$$("#history-rows tr")).length, 20); // a page of the newest
    await tab.click("#history-older");
    assert.equal(await tab.$eval("#history-rows tr:last-child td", (e) => e.textContent), "1");
    await tab.click("#history-newer");
    assert.match(await textOf(tab, "#events"), /enrolled/);
    assert.match(await textOf(tab, "#privacy"), /Simulated population ε .* of 2/);
    await until("the coordinator to end", async () => /has ended/.test(await textOf(tab, "#live")), () => job.story(tab, "#live"));
    assert.match(await textOf(tab, "#events"), /enrolled/, "the last word of the events is gone");
    await accessible(tab, "over");
    await shot(tab, `${name}-dashboard-over`, { fullPage: true });
    await tab.setViewport({ width: 390, height: 844 });
    await accessible(tab, "on a phone");
    await inDark(tab, () => accessible(tab, "on a phone, dark"));
    await shot(tab, `${name}-dashboard-phone`, { fullPage: true });
    assert.ok(await tab.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "it scrolls sideways");
    await job.result();
    assert.deepEqual(faults.filter((f) => !/401|ERR_CONNECTION|ERR_INCOMPLETE|NetworkError|Failed to load/.test(f)), []);
  });
}

test("a coordinator that goes is said to be gone, and found again", { timeout: 120_000 }, async (t) => {
  const job = await fleet(t, { rounds: 4 });
  const browser = await open(t, "chrome");
  const { tab } = await openTab(browser, job.dashboard, desktop);
  await until("the stream", async () => (await textOf(tab, "#live")) === "Live");
  job.server.child.kill("SIGKILL");
  await job.server.done;
  await until("the loss", async () => /Disconnected/.test(await textOf(tab, "#live")), () => job.story(tab, "#live"));
  assert.ok(!(await tab.$eval("#content", (e) => e.hidden)), "what was known is gone");
  await accessible(tab, "disconnected");
  await shot(tab, "chrome-dashboard-lost");
  job.restart(); // its token is kept
  await until("the stream again", async () => (await textOf(tab, "#live")) === "Live", () => job.story(tab, "#live"), 40_000);
});

test("a viewer sees the job, and is offered nothing that is for operators", { timeout: 120_000 }, async (t) => {
  const job = await fleet(t, { rounds: 2 });
  const [address, folder] = job.dashboard.split("/dashboard#");
  const named = await fetch(`${address}/v1/admin/operators`, { method: "POST", headers: { Authorization: `Bearer ${folder}` },
    body: JSON.stringify({ name: "Ada", role: "viewer", seconds: 3600 }) });
  assert.equal(named.status, 200, await named.clone().text());
  const { token } = await named.json();
  const browser = await open(t, "chrome");
  const { tab, faults } = await openTab(browser, `${address}/dashboard#${token}`, desktop);
  await until("the waiting job", async () => (await textOf(tab, "#state")) === "waiting", () => job.story(tab, "body"));
  await until("who looks", async () => (await textOf(tab, "#who")) === "for Ada, viewer", () => job.story(tab, "header"));
  assert.ok(await tab.$eval("#invite-section", (e) => e.hidden), "a viewer is offered the join link");
  await accessible(tab, "for a viewer");
  await shot(tab, "chrome-dashboard-viewer", { fullPage: true });
  job.joinNatives();
  await tab.$eval("#fleet-section", (e) => e.scrollIntoView());
  await until("the fleet", async () => (await tab.$$("#fleet-rows button")).length > 0, () => job.story(tab, "#fleet-section"));
  assert.ok(await tab.$$eval("#fleet-rows button", (all) => all.every((b) => b.disabled)), "a viewer is offered a ban");
  assert.deepEqual(faults, []);
});
