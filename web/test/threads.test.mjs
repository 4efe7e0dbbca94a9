// A browser trains over several workers that share memory.
import assert from "node:assert/strict";
import { test } from "node:test";
import { names } from "./browsers.mjs";
import { choose, fleet, open, openTab, textOf, until } from "./fleet.mjs";

for (const name of names) {
  test(`${name} trains on two workers`, { timeout: 300_000 }, async (t) => {
    const job = await fleet(t, { floor: 4 }); // no round is made without the browser
    const browser = await open(t, name);
    const { tab, faults } = await openTab(browser, job.page);
    assert.ok(await tab.evaluate(() => crossOriginIsolated), "the page is not isolated");
    // Of four cores half are taken.
    await tab.evaluate(() => Object.defineProperty(navigator, "hardwareConcurrency", { value: 4 }));
    await choose(tab, job.own);
    job.joinNatives();
    await tab.click("#join");
    if (name === "chrome") { // which names workers of workers among its targets
      const cdp = await browser.target().createCDPSession();
      await until("a helper", async () => {
        const { targetInfos } = await cdp.send("Target.getTargets", { filter: [{}] });
        return targetInfos.filter(({ type }) => type === "worker").length >= 2;
      }, () => job.story(tab, "body"));
    }
    await until("the browser to finish", async () => {
      const state = await textOf(tab, "#state");
      if (/did not work/.test(state)) throw new Error(state);
      return /^Finished/.test(state);
    }, () => job.story(tab, "body"), 120_000);
    const result = await job.result();
    assert.equal(result.rounds, 2);
    assert.equal(result.dropped, 0, "a device was dropped");
    assert.deepEqual(faults.filter((f) => !/ERR_CONNECTION|NetworkError|Failed to load/.test(f)), []);
  });
}
