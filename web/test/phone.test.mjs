// What phones need of the page: that it can be installed, and that a join outlasts being frozen. Chromium alone
// can be asked for either.
import assert from "node:assert/strict";
import { test } from "node:test";
import { choose, fleet, open, openTab, textOf, until } from "./fleet.mjs";

test("the page can be installed, says that it pauses when hidden, and goes on once it is seen again", { timeout: 180_000 }, async (t) => {
  const job = await fleet(t, { rounds: 60, floor: 4 }); // no round is made without the browser
  const browser = await open(t, "chrome");
  const { tab, faults } = await openTab(browser, job.page);
  const client = await tab.createCDPSession();
  assert.deepEqual((await client.send("Page.getAppManifest")).errors, []);
  const obstacles = async () => JSON.stringify((await client.send("Page.getInstallabilityErrors")).installabilityErrors);
  await until("no obstacle to installing", async () => await obstacles() === "[]", obstacles, 20_000);
  await choose(tab, job.own);
  await until("the word on it", async () => /^Keep this page open\. Hidden on a phone, it pauses/.test(await textOf(tab, "#join-hint")), () => textOf(tab, "#join-hint"));
  job.joinNatives();
  await tab.$eval("#join", (button) => button.click());
  const made = async () => Number.parseInt(await textOf(tab, "#contributed")) || 0;
  await until("two rounds", async () => await made() >= 2, () => job.story(tab, "body"));
  await client.send("Page.setWebLifecycleState", { state: "frozen" });
  await new Promise((resolve) => setTimeout(resolve, 2000));
  await client.send("Page.setWebLifecycleState", { state: "active" });
  const before = await made();
  await until("it to go on", async () => await made() > before + 2, () => job.story(tab, "body"));
  assert.deepEqual(faults.filter((f) => !/ERR_CONNECTION|NetworkError|Failed to load/.test(f)), []);
});
