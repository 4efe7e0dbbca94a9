// A page that outlived its coordinator's update: it is loaded again once, and says
// what is wrong where that does not help.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible } from "./axe.mjs";
import { fleet, open, openTab, shot, textOf, until } from "./fleet.mjs";

test("a coordinator that names no protocol has the page loaded again once", { timeout: 120_000 }, async (t) => {
  const job = await fleet(t);
  const browser = await open(t, "chrome");
  const { tab, requests } = await openTab(browser, "about:blank");
  await tab.setRequestInterception(true);
  tab.on("request", async (request) => {
    if (!request.url().endsWith("/v1/job")) return request.continue();
    const { protocol, ...about } = await (await fetch(new URL("v1/job", job.page))).json();
    assert.ok(protocol);
    await request.respond({ contentType: "application/json", body: JSON.stringify(about) });
  });
  await tab.goto(job.page);
  await until("the sentence", async () => /neither reads the other/.test(await textOf(tab, "#connection").catch(() => "")), () => job.story(tab, "body"));
  assert.equal(requests.filter((r) => new URL(r).pathname === "/").length, 2);
});

test("a page older than its coordinator is loaded again once, and then says so", { timeout: 120_000 }, async (t) => {
  const job = await fleet(t);
  const browser = await open(t, "chrome");
  const { tab, requests } = await openTab(browser, "about:blank");
  let other = true; // the coordinator says that it speaks something else
  await tab.setRequestInterception(true);
  tab.on("request", async (request) => {
    if (!other || !request.url().endsWith("/v1/job")) return request.continue();
    const about = await (await fetch(new URL("v1/job", job.page))).json();
    await request.respond({ contentType: "application/json", body: JSON.stringify({ ...about, protocol: "99-abcdef" }) });
  });
  await tab.goto(job.page);
  await until("the sentence", async () => /protocol .*99-abcdef: neither reads the other/.test(await textOf(tab, "#connection").catch(() => "")), () => job.story(tab, "body"));
  const visits = () => requests.filter((r) => new URL(r).pathname === "/").length;
  assert.equal(visits(), 2, "it is loaded again once");
  assert.ok(await tab.$eval("#join", (b) => b.disabled));
  assert.match(await textOf(tab, "#join-hint"), /too old/);
  await accessible(tab, "too old");
  await shot(tab, "chrome-join-outdated");
  other = false;
  await tab.reload();
  await until("the promise", async () => /ε/.test(await textOf(tab, "#given")), () => job.story(tab, "body"));
  assert.equal(await textOf(tab, "#connection"), "");
  // The coordinator is updated while the page is open: it is away, comes back and speaks something else.
  other = true;
  const before = visits();
  job.server.child.kill("SIGKILL");
  await job.server.done;
  await until("the silence", async () => /No word from the coordinator/.test(await textOf(tab, "#connection")), () => textOf(tab, "#connection"));
  job.restart();
  await until("the sentence again", async () => /neither reads the other/.test(await textOf(tab, "#connection").catch(() => "")), () => textOf(tab, "#connection"));
  assert.equal(visits(), before, "what was loaded again for this protocol is loaded again for ever");
});
