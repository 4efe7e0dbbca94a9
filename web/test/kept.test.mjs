// The model that a job ended with outlives the page: it is listed on the next visit,
// tried again without the coordinator that made it, and forgotten when asked.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible } from "./axe.mjs";
import { names } from "./browsers.mjs";
import { choose, fleet, open, openTab, shot, textOf, until } from "./fleet.mjs";
import { relay } from "./relay.mjs";

for (const name of names) {
  test(`${name} keeps a model over a reload until it is forgotten`, { timeout: 300_000 }, async (t) => {
    const job = await fleet(t);
    const line = await relay(t, Number(new URL(job.page).port)); // one address for both coordinators
    const browser = await open(t, name);
    const { tab } = await openTab(browser, line.url);
    await until("the promise", async () => /ε/.test(await textOf(tab, "#given")), () => job.story(tab, "body"));
    assert.ok(await tab.$eval("#shelf", (e) => e.hidden), "models are kept before any was made");
    await choose(tab, job.own);
    job.joinNatives();
    await tab.click("#join");
    const said = async () => {
      await tab.$eval("#try-text", (e) => { e.value = "flight to Lisbon, economy, one passenger"; });
      await tab.click("#try-button");
      await until("a label", async () => /^Most likely \S+/.test(await textOf(tab, "#try-state")), () => job.story(tab, "#try-state"));
      return textOf(tab, "#try-result");
    };
    await until("the model to be kept", async () => /kept in this browser/.test(await textOf(tab, "#trained-kept")), () => job.story(tab, "body"), 120_000);
    const before = await said();
    await job.server.done;
    // Another visit, to another coordinator: the first is gone.
    const next = await fleet(t);
    line.port = Number(new URL(next.page).port);
    await tab.reload();
    await until("the kept model", async () => /browser test.*2 rounds/.test(await textOf(tab, "#shelf-list")), () => next.story(tab, "body"));
    await until("the promise", async () => /ε/.test(await textOf(tab, "#given")), () => next.story(tab, "body"));
    await accessible(tab, "with a kept model");
    await tab.$eval("#shelf", (e) => e.scrollIntoView());
    await shot(tab, `${name}-join-kept`);
    await (await tab.$("#shelf-list button")).click();
    await until("the model", () => tab.$eval("#trained", (e) => !e.hidden), () => next.story(tab, "#shelf-state"));
    assert.equal(await said(), before, "it says something else than before");
    await tab.$eval("#trained", (e) => e.scrollIntoView());
    await shot(tab, `${name}-join-kept-tried`);
    await tab.click("#forget");
    await until("it to be forgotten", async () => /forgotten/.test(await textOf(tab, "#trained-kept")));
    await tab.reload();
    await until("the promise", async () => /ε/.test(await textOf(tab, "#given")), () => next.story(tab, "body"));
    assert.ok(await tab.$eval("#shelf", (e) => e.hidden), "it is remembered");
  });
}

test("a page that may store nothing takes part, and says what it forgets", { timeout: 300_000 }, async (t) => {
  const job = await fleet(t, { floor: 4 }); // no round is made without it
  const browser = await open(t, "chrome");
  const { tab, faults } = await openTab(browser, "about:blank");
  await tab.evaluateOnNewDocument(() => {
    const denied = () => { throw new DOMException("The operation is insecure.", "SecurityError"); };
    Object.defineProperty(globalThis, "indexedDB", { get: denied });
    Object.defineProperty(globalThis, "localStorage", { get: denied });
  });
  await tab.goto(job.page);
  await until("the promise", async () => /ε/.test(await textOf(tab, "#given")), () => job.story(tab, "body"));
  await choose(tab, job.own);
  job.joinNatives();
  await tab.click("#join");
  await until("the model", () => tab.$eval("#trained", (e) => !e.hidden), () => job.story(tab, "body"), 120_000);
  assert.match(await textOf(tab, "#state"), /^Finished: this browser took part in 2 rounds/);
  await until("the word on keeping", async () => /^This browser keeps nothing/.test(await textOf(tab, "#trained-kept")), () => textOf(tab, "#trained-kept"));
  assert.ok(await tab.$eval("#forget", (e) => e.hidden), "what is not kept is to be forgotten");
  assert.deepEqual(faults.filter((f) => !/ERR_CONNECTION|Failed to load/.test(f)), []);
});
