// What the visitor's browser refuses by itself, what a visitor may accept, and what
// it remembers of each file.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible } from "./axe.mjs";
import { choose, fleet, open, openTab, shot, textOf, until } from "./fleet.mjs";

test("a job beyond the policy is refused with its reasons, and joined when they are accepted", { timeout: 240_000 }, async (t) => {
  const job = await fleet(t, { rounds: 12, natives: 3, extra: "wire: {uplink: fixed16}\n", nativeFlags: ["--uplinks", "fixed16"] });
  const browser = await open(t, "chrome");
  const { tab, faults } = await openTab(browser, job.page);
  await until("the promise", async () => /ε/.test(await textOf(tab, "#given")));
  assert.match(await textOf(tab, "#trust"), /In a browser you trust whoever runs this coordinator/);
  await choose(tab, job.own);
  await tab.click("#join");
  await until("the refusal", () => tab.$eval("#limits", (e) => !e.hidden), () => job.story(tab, "body"));
  assert.match(await textOf(tab, "#limits-list"), /Updates are to be written as "fixed16".*limit: [^.]*nf4.*finer an update is written/s);
  assert.match(await textOf(tab, "#state"), /^Not joined/);
  assert.ok(await tab.$eval("#limits-accept", (b) => b.disabled), "accepted before it was read");
  await accessible(tab, "refused by the policy");
  await shot(tab, "chrome-join-policy", { fullPage: true });
  job.joinNatives();
  await tab.focus("#limit-0");
  await tab.keyboard.press("Space");
  await tab.click("#limits-accept");
  await until("the end", async () => /^Finished/.test(await textOf(tab, "#state")), () => job.story(tab, "body"), 90_000);
  assert.match(await textOf(tab, "#contributed"), /^[1-9]\d* round/);
  assert.ok(await tab.$eval("#limits", (e) => e.hidden));
  assert.deepEqual(faults.filter((f) => !/ERR_CONNECTION|Failed to load/.test(f)), []);
});

test("what a file gave outlives the page", { timeout: 240_000 }, async (t) => {
  const job = await fleet(t, { rounds: 48, natives: 3 }); // more than the others end between the two visits
  const browser = await open(t, "chrome");
  const first = await openTab(browser, job.page);
  await until("the promise", async () => /ε/.test(await textOf(first.tab, "#given")));
  await choose(first.tab, job.own);
  job.joinNatives();
  await first.tab.click("#join");
  await until("a contribution", async () => /^[1-9]\d* of 48 rounds promised$/.test(await textOf(first.tab, "#given-rounds")), () => job.story(first.tab, "body"), 60_000);
  const given = parseInt(await textOf(first.tab, "#given-rounds"), 10);
  await first.tab.click("#stop");
  await until("the stop", async () => /^Stopped/.test(await textOf(first.tab, "#state")));
  await first.tab.close();
  // Another visit with the same file goes on with its account, whatever the page remembers of the join.
  const second = await openTab(browser, job.page);
  await until("the promise", async () => /ε/.test(await textOf(second.tab, "#given")));
  await choose(second.tab, job.own);
  await second.tab.click("#join");
  await until("the account", async () => Number(/^(\d+) of 48/.exec(await textOf(second.tab, "#given-rounds"))?.[1]) >= given,
    () => job.story(second.tab, "body"), 60_000);
  const kept = await second.tab.evaluate(() => new Promise((resolve, reject) => {
    const opening = indexedDB.open("starling-edge", 1);
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const asked = opening.result.transaction("accounts").objectStore("accounts").getAll();
      asked.onsuccess = () => resolve(asked.result.map((b) => new TextDecoder().decode(b)));
    };
  }));
  assert.equal(kept.length, 1);
  const [account] = Object.values(JSON.parse(kept[0]).jobs);
  assert.equal(account.promised, 48);
  assert.ok(account.contributed >= given);
});
