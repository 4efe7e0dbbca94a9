// A browser joins a real job beside native edges: picking a file, taking part,
// reloading in mid-round, pausing, two tabs.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { accessible } from "./axe.mjs";
import { inDark, names } from "./browsers.mjs";
import { choose, fleet, open, openTab, shot, textOf, until } from "./fleet.mjs";
import { relay } from "./relay.mjs";

/** Whether the device is there and no round has it. */
const waits = async (tab) => /^(Waiting for the next round|Round \d+ is made|The round )/.test(await textOf(tab, "#state"));

for (const name of names) {
  test(`${name} and native edges fine-tune one model`, { timeout: 300_000 }, async (t) => {
    const job = await fleet(t, { floor: 4, extra: "providers: {max: 6, sampling_rate: 0.5}\nclipping: {adaptive: true}\n" });
    const browser = await open(t, name);
    const { tab, faults, requests } = await openTab(browser, job.page);
    // What is given stands above Join before anything has been spent, and stays.
    await until("the promise", async () => /ε/.test(await textOf(tab, "#given")), () => job.story(tab, "body"));
    await until("the verdict", async () => await textOf(tab, "#verdict-title") === "Your own coordinator, on this machine", () => job.story(tab, "body"));
    const promise = () => textOf(tab, "#given");
    const given = await promise();
    assert.match(given, /at least 3 devices/);
    assert.doesNotMatch(given, /ε 0[^.]/);
    assert.match(await textOf(tab, "#labels"), /<img src=x onerror=alert\(1\)>/, "what a coordinator says is text, not markup");
    // On a phone Join is in sight without scrolling.
    const seen = await tab.$eval("#join", (b) => { const r = b.getBoundingClientRect(); return r.bottom <= innerHeight && r.top >= 0; });
    assert.ok(seen, "Join is out of sight");
    assert.ok(await tab.$eval("#join", (b) => b.disabled), "Join without data");
    await inDark(tab, () => accessible(tab, "empty, dark"));
    await shot(tab, `${name}-join-empty`);
    await choose(tab, job.own);
    assert.match(await textOf(tab, "#data-state"), /examples in train-3\.jsonl/);
    assert.equal((await tab.$$("#rows tr")).length, 5);
    await shot(tab, `${name}-join-preview`, { fullPage: true });
    job.joinNatives();
    await tab.click("#join");
    assert.equal(await tab.evaluate(() => document.activeElement?.id), "joining", "the focus was on a button that is gone");
    await until("a round", async () => /round 1|Training|Waiting/.test(await textOf(tab, "#state")), () => job.story(tab));
    await shot(tab, `${name}-join-running`);
    await until("the browser to finish", async () => {
      const state = await textOf(tab, "#state");
      if (/did not work/.test(state)) throw new Error(state);
      return /^Finished/.test(state);
    }, () => job.story(tab, "body"));
    assert.match(await textOf(tab, "#state"), /took part in 2 rounds/);
    assert.equal(await promise(), given, "what is given has changed");
    // The model came along: it is tried here, after the coordinator has gone.
    await job.server.done;
    await until("the model", () => tab.$eval("#trained", (e) => !e.hidden), () => job.story(tab, "body"));
    await tab.type("#try-text", "flight to Lisbon, economy, one passenger");
    await tab.click("#try-button");
    await until("a label", async () => /^Most likely \S+/.test(await textOf(tab, "#try-state")), () => job.story(tab, "#try-state"));
    const shares = await tab.$$eval("#try-result meter", (all) => all.map((m) => m.value));
    assert.equal(shares.length, 5);
    assert.ok(shares.every((v, i) => v >= 0 && v <= 1 && (i === 0 || v <= shares[i - 1])), `not the likeliest first: ${shares}`);
    assert.match(await textOf(tab, "#archive"), /Download the adapter \([\d.]+ kB\)/);
    assert.match(await textOf(tab, "#given-rounds"), /^2 of 2 rounds promised$/);
    assert.match(await textOf(tab, "#epsilon"), /^ε \S+ \(δ/);
    assert.equal(await textOf(tab, "#spent"), "the noise sets no useful limit", "an epsilon of millions is no sentence");
    assert.equal(await textOf(tab, "#time-left"), "", "a job that is over has time left");
    await accessible(tab, "finished");
    await inDark(tab, () => accessible(tab, "finished, dark"));
    await shot(tab, `${name}-join-finished`, { fullPage: true });
    const result = await job.result();
    assert.equal(result.rounds, 2);
    assert.equal(result.dropped, 0, "a device was dropped");
    assert.notEqual(result.clip_norm, 2, "the clip norm has not moved");
    assert.deepEqual(faults.filter((f) => !/ERR_CONNECTION|NetworkError|Failed to load/.test(f)), []);
    const origin = new URL(job.page).origin;
    assert.deepEqual(requests.filter((r) => new URL(r).origin !== origin && !/^(blob|data|moz-extension):/.test(r)), [], "requests elsewhere");
  });
}

test("files that do not fit are refused with the reason", { timeout: 120_000 }, async (t) => {
  const job = await fleet(t);
  const browser = await open(t, "chrome");
  const { tab } = await openTab(browser, job.page);
  await until("the question for data", () => tab.$eval("#choosing", (e) => !e.hidden), () => job.story(tab, "body"));
  const file = join(job.dir, "odd.csv");
  const input = await tab.$("#file");
  const refused = async (content, reason) => {
    writeFileSync(file, content);
    await tab.$eval("#file", (e) => { e.value = ""; }); // as a click does
    await input.uploadFile(file);
    await until(`the refusal ${reason}`, async () => reason.test(await textOf(tab, "#data-state")), () => job.story(tab, "#data-state"));
    assert.ok(await tab.$eval("#join", (b) => b.disabled));
  };
  await refused("", /no examples|empty|header/i);
  await refused("label,text\n<b onclick=alert(1)>,hello\n", /<b onclick=alert\(1\)>” is not among/);
  await refused("a,b\n1,2,3\n", /odd\.csv/);
  await shot(tab, "chrome-join-refused");
  // A table of more columns: the right ones are chosen by hand.
  writeFileSync(file, 'number;kind;"what; it says"\n1;energy;"kilowatt hours"\n2;travel;"a flight; economy"\n');
  await tab.$eval("#file", (e) => { e.value = ""; });
  await input.uploadFile(file);
  await until("the columns", () => tab.$eval("#columns", (e) => !e.hidden));
  await tab.select("#label-column", "kind");
  await tab.select("#text-column", "what; it says");
  await until("the preview", async () => !(await tab.$eval("#join", (b) => b.disabled)), () => job.story(tab, "#data-state"));
  assert.match(await textOf(tab, "#rows"), /travela flight; economy/);
  await shot(tab, "chrome-join-columns", { fullPage: true });
  // The sample fits this job.
  await tab.click("#sample");
  await until("the sample", async () => /60 examples in sample/.test(await textOf(tab, "#data-state")), () => job.story(tab, "#data-state"));
});

for (const name of names) {
  test(`${name} survives a reload in mid-round, a second tab and a pause`, { timeout: 420_000 }, async (t) => {
    const job = await fleet(t, { rounds: 48, natives: 3 });
    const browser = await open(t, name);
    const { tab } = await openTab(browser, job.page);
    await until("the promise", async () => /ε/.test(await textOf(tab, "#given")));
    await choose(tab, job.own);
    job.joinNatives();
    await tab.click("#join");
    const trains = async (page) => /Training|Sending|Waiting for the other|Agreeing/.test(await textOf(page, "#state"));
    await until("a round", () => trains(tab), () => job.story(tab));
    await job.pause(true); // the others would end the job before the second tab is closed
    await tab.reload();
    await until("the join to go on", async () => /Training|Waiting|Agreeing|Round|Sending/.test(await textOf(tab, "#state")), () => job.story(tab, "body"));
    assert.ok(await tab.$eval("#choosing", (e) => e.hidden), "it asks for data again");
    // A second tab waits for the first instead of cutting it off.
    const second = await openTab(browser, job.page);
    await until("the second tab", async () => /Another tab/.test(await textOf(second.tab, "#state")), () => textOf(second.tab, "body"));
    for (const id of ["#pause", "#stop"]) assert.ok(await second.tab.$eval(id, (b) => b.hidden), `${id} is offered where nothing runs`);
    await shot(second.tab, `${name}-join-second`);
    await second.tab.close();
    await tab.bringToFront();
    await until("the fleet", () => waits(tab), () => job.story(tab));
    await job.pause(false);
    await until("a round of its own", async () => !/^0 /.test(await textOf(tab, "#contributed")), () => job.story(tab, "body"));
    const tops = await tab.evaluate(async () => {
      const seen = new Set();
      for (let i = 0; i < 60; i++) {
        seen.add(document.getElementById("pause").getBoundingClientRect().top);
        await new Promise((resolve) => setTimeout(resolve, 25));
      }
      return [...seen];
    });
    assert.equal(tops.length, 1, `the button moves while rounds run: ${tops}`);
    await tab.click("#pause");
    await until("the pause", async () => /^Paused/.test(await textOf(tab, "#state")), () => job.story(tab));
    await shot(tab, `${name}-join-paused`);
    await tab.click("#pause");
    await until("it to finish", async () => /^Finished/.test(await textOf(tab, "#state")), () => job.story(tab), 240_000);
    const result = await job.result();
    assert.equal(result.rounds, 48);
  });
}

for (const name of names) {
  test(`${name} loses its network in mid-round and goes on when it is back`, { timeout: 420_000 }, async (t) => {
    const job = await fleet(t, { rounds: 32, natives: 4 });
    const line = await relay(t, Number(new URL(job.page).port));
    const browser = await open(t, name);
    const { tab } = await openTab(browser, line.url);
    await until("the promise", async () => /ε/.test(await textOf(tab, "#given")));
    await choose(tab, job.own);
    job.joinNatives();
    await tab.click("#join");
    await until("training", async () => /Training|Agreeing|Sending/.test(await textOf(tab, "#state")), () => job.story(tab));
    await job.pause(true); // the others would end the job while it is away
    line.cut();
    // It is red, and in words for people: looked at in one moment, since the next is another try.
    const [offline, red, dot] = await until("the loss to be told", () => tab.evaluate(() => {
      const [state, connection, point] = ["state", "connection", "dot"].map((id) => document.getElementById(id));
      if (!/^No connection; trying again in \d+ seconds?\.$/.test(state.textContent)) return null;
      return [getComputedStyle(state).color, getComputedStyle(connection).color, getComputedStyle(point).backgroundColor];
    }), () => job.story(tab));
    assert.deepEqual([offline, dot], [red, red], "offline looks like all is well");
    await until("the page to say so", async () => /No word from the coordinator/.test(await textOf(tab, "#connection")), () => job.story(tab, "#connection"));
    await accessible(tab, "offline");
    await shot(tab, `${name}-join-offline`);
    line.mend();
    await until("the fleet", () => waits(tab), () => job.story(tab), 120_000); // the next try may be half a minute off
    await job.pause(false);
    await until("rounds of its own", async () => !/^0 /.test(await textOf(tab, "#contributed")), () => job.story(tab, "body"), 90_000);
    await until("the end", async () => /^Finished/.test(await textOf(tab, "#state")), () => job.story(tab), 240_000);
    assert.equal(await textOf(tab, "#connection"), "");
    assert.equal((await job.result()).rounds, 32);
  });
}

test("a tab that is closed in mid-round costs its round one device, and comes back", { timeout: 300_000 }, async (t) => {
  const job = await fleet(t, { rounds: 24, natives: 4 });
  const browser = await open(t, "chrome");
  const first = await openTab(browser, job.page);
  await until("the promise", async () => /ε/.test(await textOf(first.tab, "#given")));
  await choose(first.tab, job.own);
  job.joinNatives();
  await first.tab.click("#join");
  await until("training", async () => /Training|Agreeing/.test(await textOf(first.tab, "#state")), () => job.story(first.tab));
  await job.pause(true); // the others would end the job while no tab is open
  await first.tab.close();
  const second = await openTab(browser, job.page);
  await until("it to go on", async () => !(await second.tab.$eval("#joining", (e) => e.hidden)), () => job.story(second.tab, "body"));
  await until("the fleet", () => waits(second.tab), () => job.story(second.tab));
  await job.pause(false);
  await until("the end", async () => /^Finished/.test(await textOf(second.tab, "#state")), () => job.story(second.tab), 180_000);
  const result = await job.result();
  assert.equal(result.rounds, 24);
});
