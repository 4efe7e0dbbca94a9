// What a file has given is known by the job itself, and before anything is painted: over
// a reload while paused, of a job whose name an account shows escaped, and beside another
// job of the same name.
import assert from "node:assert/strict";
import { test } from "node:test";
import { names } from "./browsers.mjs";
import { choose, fleet, open, openTab, shot, textOf, until } from "./fleet.mjs";
import { relay } from "./relay.mjs";

const called = "brows\u00ader test"; // a soft hyphen

for (const name of names) {
  test(`${name} shows what was given, whatever the job is called`, { timeout: 300_000 }, async (t) => {
    const job = await fleet(t, { name: called, rounds: 48 });
    const line = await relay(t, Number(new URL(job.page).port)); // one address for both coordinators
    const browser = await open(t, name);
    const { tab, faults } = await openTab(browser, line.url);
    await until("the promise", async () => /ε/.test(await textOf(tab, "#given")), () => job.story(tab, "body"));
    await choose(tab, job.own);
    job.joinNatives();
    await tab.click("#join");
    const said = () => textOf(tab, "#given-rounds");
    await until("a contribution", async () => /^[1-9]\d* of 48 rounds promised$/.test(await said()), () => job.story(tab, "#joining"), 60_000);
    await tab.click("#pause");
    await until("the pause", async () => /^Paused/.test(await textOf(tab, "#state")), () => job.story(tab, "#joining"));
    const given = await said();

    await tab.evaluateOnNewDocument(() => {
      globalThis.painted = [];
      new MutationObserver(() => globalThis.painted.push(document.getElementById("given-rounds")?.textContent ?? ""))
        .observe(document, { childList: true, subtree: true, characterData: true });
    });
    // Its coordinator is away for a while: the page is the one that this browser kept, and goes on with another's first answer.
    await until("the page to be kept", async () => /keeps this page/.test(await textOf(tab, "#page-kept")), () => textOf(tab, "body"));
    line.cut();
    await tab.reload();
    await until("the kept page", async () => /Taking part goes on by itself/.test(await textOf(tab, "#summary")), () => textOf(tab, "body"));
    line.mend(); // the page loads itself anew
    await until("what was given", async () => (await said().catch(() => "between two pages")) === given, () => job.story(tab, "#joining"));
    assert.match(await textOf(tab, "#state"), /^Paused/);
    assert.deepEqual((await tab.evaluate(() => globalThis.painted)).filter((text) => /^0 of/.test(text)), [], "nothing is shown where data was given");
    await shot(tab, `${name}-join-paused`, { fullPage: true });

    // Another job that has the same name is another job.
    job.server.child.kill("SIGKILL");
    await job.server.done;
    const next = await fleet(t, { name: called, rounds: 3 });
    line.port = Number(new URL(next.page).port);
    await tab.goto("about:blank"); // a browser may keep a form's file over a reload
    await tab.goto(line.url);
    await until("the promise", async () => /in 3 rounds/.test(await textOf(tab, "#summary")), () => next.story(tab, "body"));
    assert.ok(await tab.$eval("#joining", (e) => e.hidden), "it takes part in a job that nobody joined");
    await choose(tab, job.own);
    await tab.click("#join");
    const rounds = /^\d+ rounds?/.exec(given.replace(/ of .*/, given.startsWith("1 ") ? " round" : " rounds"))?.[0];
    await until("both", async () => (await said()) === `0 of 3 rounds promised; ${rounds} to 1 other job`, async () => `${await said()}, want ${rounds}`);
    assert.deepEqual(faults.filter((f) => !/ERR_CONNECTION|ERR_EMPTY|Failed to load|NetworkError/.test(f)), []);
  });
}
