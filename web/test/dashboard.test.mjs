// The operator's dashboard in every state: without and with a wrong token,
// waiting, in a round, over, and after the coordinator has gone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible } from "./axe.mjs";
import { inDark, names } from "./browsers.mjs";
import { choose, fleet, open, openTab, shot, textOf, until } from "./fleet.mjs";

const desktop = { width: 1280, height: 900 };

for (const name of names) {
  test(`${name} shows a job to its operator`, { timeout: 420_000 }, async (t) => {
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
    await tab.$eval("#card-access", (e) => { e.open = true; });
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
    await tab.$eval("#card-job", (e) => { e.open = true; });
    await until("the job file to open", async () => {
      await tab.click("#job-file summary");
      return tab.$eval("#job-file", (e) => e.open);
    });
    await until("the job file", async () => /^name: browser test$/m.test(await textOf(tab, "#job-text")), () => textOf(tab, "#job-failed"));
    assert.match(await textOf(tab, "#job-text"), /shard:[^]*floor: 3/);
    await until("the end", async () => (await textOf(tab, "#state")) === "finished", () => job.story(tab, "body"), 200_000);
    assert.equal((await tab.$$("#history-rows tr")).length, 20); // a page of the newest
    await tab.focus("#history-older");
    await tab.keyboard.press("Enter");
    assert.equal(await tab.$eval("#history-rows tr:last-child td", (e) => e.textContent), "1");
    await tab.focus("#history-newer");
    await tab.keyboard.press("Enter");
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
  assert.ok(await tab.$eval("#access-section", (e) => e.hidden), "a viewer is offered the join link");
  await accessible(tab, "for a viewer");
  await shot(tab, "chrome-dashboard-viewer", { fullPage: true });
  job.joinNatives();
  await tab.$eval("#fleet-section", (e) => e.scrollIntoView());
  await until("the fleet", async () => (await tab.$$("#fleet-rows button")).length > 0, () => job.story(tab, "#fleet-section"));
  assert.ok(await tab.$$eval("#fleet-rows button", (all) => all.every((b) => b.disabled)), "a viewer is offered a ban");
  assert.deepEqual(faults, []);
});

test("an operator pauses the job, invites, and shows the run to somebody, from the page", { timeout: 240_000 }, async (t) => {
  const job = await fleet(t, { rounds: 40, natives: 4, browsers: 0 });
  const [address, folder] = job.dashboard.split("/dashboard#");
  const asked = async (path, token = folder) => fetch(`${address}/v1/admin/${path}`, { headers: { Authorization: `Bearer ${token}` } });
  const made = await fetch(`${address}/v1/admin/operators`, { method: "POST", headers: { Authorization: `Bearer ${folder}` },
    body: JSON.stringify({ name: "Ada", role: "operator", seconds: 3600 }) });
  const { token } = await made.json();
  const browser = await open(t, "chrome");
  const { tab, faults } = await openTab(browser, `${address}/dashboard#${token}`, desktop);
  job.joinNatives();
  await until("two rounds", async () => (await tab.$$("#history-rows tr")).length >= 2, () => job.story(tab, "body"));

  // A pause is asked about, kept with its reason, and said to whoever looks.
  const confirm = async (reason) => {
    await until("the question", () => tab.$eval("#ask", (e) => e.open));
    if (reason) await tab.type("#ask-reason", reason);
    await tab.click("#ask-act");
  };
  await tab.focus("#steer");
  await tab.keyboard.press("Enter");
  await confirm("a new phone");
  await until("the pause", async () => (await textOf(tab, "#reason")) === "paused by Ada: a new phone", () => job.story(tab, "body"));
  await until("the alarm", async () => /Alarm.*No round is drawn: paused by Ada/.test(await textOf(tab, "#attention")), () => textOf(tab, "#attention"));

  // Nothing moves now: what the plots say is what the coordinator's own table has.
  // But for the accuracy of the last round, which is measured beside.
  const csv = await until("the last round's accuracy", async () => {
    const lines = (await (await asked("rounds.csv")).text()).trim().split("\n").map((l) => l.split(","));
    const [released, drawn] = ["released", "accuracy_drawn"].map((name) => lines[0].indexOf(name));
    return !["", undefined].includes(lines.findLast((l) => l[released] === "true")?.[drawn]) && lines;
  });
  const columnOf = (lines, name) => lines.map((l) => l[csv[0].indexOf(name)]);
  const column = (name) => columnOf(csv.slice(1), name);
  const released = (name) => columnOf(csv.slice(1).filter((l) => l[csv[0].indexOf("released")] === "true"), name);
  await until("all its rounds", async () => (await tab.$$("#history-rows tr")).length === Math.min(20, csv.length - 1));
  const table = async (plot) => {
    await tab.$eval(`#${plot} .values`, (e) => { e.open = true; });
    const read = () => tab.$$eval(`#${plot} .values tbody tr`, (rows) => rows.map((r) => [...r.cells].map((c) => c.textContent)));
    await until(`the last round in the table of ${plot}`, async () => (await read()).some((r) => r[0] === column("round").at(-1)));
    return read();
  };
  const rounded = (v) => Number(Number(v).toPrecision(3));
  const spent = column("epsilon_simulated");
  const forecast = await (await asked("forecast.json")).json();
  await until("the forecast", async () => /^The budget holds the \d+ rounds left, and ends at ε 2(\.\d+)? of 2\.$|^The budget holds the \d+ rounds left, and ends at ε 1\.\d+ of 2\.$/.test(await textOf(tab, "#foretold")), () => textOf(tab, "#foretold"));
  // A round that is foretold stands in its table, too, until it is told.
  const charged = (rows) => rows.filter((r) => r[1] !== "–");
  const privacy = await until("the last round's privacy", async () => {
    const rows = await table("privacy-plot");
    return charged(rows).length >= spent.length && rows;
  });
  assert.deepEqual(charged(privacy).map((r) => Number(r[1])), spent.map(rounded));
  assert.equal(forecast.charged, spent.length);
  assert.deepEqual([Number(privacy.at(-1)[0]), Number(privacy.at(-1)[2])], [Number(column("round").at(-1)) + forecast.left, rounded(forecast.points.at(-1).simulated.epsilon)]);
  assert.deepEqual((await table("time-plot")).map((r) => r[1]), released("seconds").map((s) => Number(s) < 10 ? `${Number(s).toFixed(1)} s` : `${Math.round(Number(s))} s`));
  const drawn = released("accuracy_drawn").map((a) => a === "" ? "–" : `${(100 * Number(a)).toFixed(1)}%`);
  await until("the last round's accuracy in its table", async () => (await table("accuracy-plot")).at(-1).at(-1) === drawn.at(-1));
  assert.deepEqual((await table("accuracy-plot")).map((r) => r.at(-1)), drawn);
  const each = (up, i) => Math.round((Number(up) + Number(released("bytes_down")[i])) / (released("cohort")[i] - released("absent")[i]));
  const bytes = (n) => n < 1000 ? `${n} byte${n === 1 ? "" : "s"}` : n < 1e6 ? `${(n / 1e3).toFixed(n < 1e5 ? 1 : 0)} kB` : `${(n / 1e6).toFixed(1)} MB`;
  assert.deepEqual((await table("traffic-plot")).map((r) => r[1]), released("bytes_up").map((up, i) => bytes(each(up, i))));
  await tab.$eval("#fleet-section", (e) => e.scrollIntoView());
  await until("the fleet by platform", async () => /linux\/\w+4 \(100.0%\)/.test(await textOf(tab, "#fleet-platforms")), () => textOf(tab, "#fleet-section"));

  // An invitation, and a link to look.
  await tab.$eval("#card-access", (e) => { e.open = true; });
  await tab.type("#invitation-note", "Grace's laptop");
  await tab.keyboard.press("Enter");
  await until("the invitation", async () => /Invitation 1 is made, for 1 device/.test(await textOf(tab, "#invitation-said")), () => textOf(tab, "#invitation-said"));
  const link = await tab.$eval("#invitation-link", (e) => e.value);
  assert.ok(link.startsWith(job.page.replace(/#.*/, "#starling")), link);
  assert.notEqual(link, job.page, "the job's own link is given out");
  await tab.type("#share-name", "the board");
  await tab.keyboard.press("Enter");
  await until("the link", async () => /shown this once/.test(await textOf(tab, "#share-said")), () => textOf(tab, "#share-said"));
  const shared = await tab.$eval("#share-link", (e) => e.value);
  await accessible(tab, "with an invitation and a link");
  await shot(tab, "chrome-dashboard-access", { fullPage: true });
  const viewer = await openTab(browser, shared, desktop);
  await until("the run to be shown", async () => (await textOf(viewer.tab, "#who")) === "for the board, viewer", () => job.story(viewer.tab, "header"));
  assert.ok(await viewer.tab.$eval("#access-section", (e) => e.hidden) && await viewer.tab.$eval("#steering", (e) => e.hidden), "a viewer is offered an act");
  await tab.bringToFront();
  await tab.$eval("#share-rows button", (e) => e.click());
  await confirm();
  await until("the revocation", async () => /revoked/.test(await textOf(tab, "#share-rows")), () => textOf(tab, "#share-said"));
  await viewer.tab.bringToFront();
  await until("the end of the view", async () => (await textOf(viewer.tab, "#live")) === "The token is needed", () => job.story(viewer.tab, "header"), 40_000);
  await tab.bringToFront();
  await tab.type("#share-name", "the board");
  await tab.keyboard.press("Enter");
  await until("a sentence of what is wrong", async () => /^Not done: .*given before.*take another/.test(await textOf(tab, "#share-said")), () => textOf(tab, "#share-said"));
  await until("the acts", async () => /pause job a new phone/.test(await textOf(tab, "#act-rows")) && /revoke operator the board/.test(await textOf(tab, "#act-rows")), () => textOf(tab, "#act-rows"));

  await tab.focus("#steer");
  await tab.keyboard.press("Enter");
  const before = released("round").length;
  await until("rounds again", async () => Number((await textOf(tab, "#round-of")).split(" ")[0]) > before, () => job.story(tab, "body"));
  assert.deepEqual(faults.filter((f) => !/400|Failed to load/.test(f)), []);
});

test("chrome: an operator has a job begin with the devices that have enrolled", { timeout: 200_000 }, async (t) => {
  const job = await fleet(t, { rounds: 2, natives: 4, browsers: 0 }); // three are enough for a round
  const browser = await open(t, "chrome");
  const { tab } = await openTab(browser, job.dashboard, desktop);
  job.joinNatives(0, 3);
  await until("the offer to begin", () => tab.$eval("#begin", (e) => !e.hidden && /^Begin with the 3 devices/.test(e.textContent)), () => job.story(tab, "body"));
  await tab.focus("#begin");
  await tab.keyboard.press("Enter");
  await until("the question", () => tab.$eval("#ask", (e) => e.open));
  assert.match(await textOf(tab, "#ask-text"), /3 devices have enrolled, 4 are awaited/);
  await tab.focus("#ask-act");
  await tab.keyboard.press("Enter");
  await until("rounds", async () => (await textOf(tab, "#round-of")) === "2 of 2 made", () => job.story(tab, "body"), 150_000);
  assert.ok(await tab.$eval("#begin", (e) => e.hidden), "a job that has begun is offered to begin");
});
