// What a page says before it asks for anything: that it does not know the job's task,
// and what plain http from another machine means.
import assert from "node:assert/strict";
import { networkInterfaces } from "node:os";
import { test } from "node:test";
import { accessible } from "./axe.mjs";
import { fleet, open, openTab, shot, textOf, until } from "./fleet.mjs";
import { relay } from "./relay.mjs";

test("a job whose task the page does not know says so and asks for nothing", { timeout: 120_000 }, async (t) => {
  const job = await fleet(t);
  const browser = await open(t, "chrome");
  const { tab } = await openTab(browser, "about:blank");
  await tab.setRequestInterception(true);
  tab.on("request", async (request) => {
    if (!request.url().endsWith("/v1/job")) return request.continue();
    const about = await (await fetch(new URL("v1/job", job.page))).json();
    assert.equal(about.task, "classify");
    await request.respond({ contentType: "application/json", body: JSON.stringify({ ...about, task: "knit" }) });
  });
  await tab.goto(job.page);
  await until("the sentence", async () => /“knit”/.test(await textOf(tab, "#unable")), () => job.story(tab, "body"));
  assert.match(await textOf(tab, "#unable"), /starling join/);
  for (const id of ["#choosing", "#bar", "#joining"]) assert.ok(await tab.$eval(id, (e) => e.hidden), `${id} is shown`);
  await accessible(tab, "a task that it does not know");
  await shot(tab, "chrome-join-unable");
});

const elsewhere = Object.values(networkInterfaces()).flat().find((a) => a && a.family === "IPv4" && !a.internal)?.address;

test("over plain http from elsewhere it says what that means, and asks for nothing", { timeout: 120_000, skip: !elsewhere && "no address but loopback" }, async (t) => {
  const job = await fleet(t);
  const line = await relay(t, Number(new URL(job.page).port), elsewhere);
  const browser = await open(t, "chrome");
  const near = await openTab(browser, job.page);
  await until("the promise", async () => /ε/.test(await textOf(near.tab, "#given")));
  assert.ok(await near.tab.$eval("#unable", (e) => e.hidden), "loopback is said to be unsafe");
  await near.tab.close();
  const { tab } = await openTab(browser, line.url);
  await until("the sentence", async () => /plain http.*can read and change it.*serve --tls/.test(await textOf(tab, "#unable")), () => job.story(tab, "body"));
  assert.equal(await tab.evaluate(() => isSecureContext), false, "the test would see nothing");
  for (const id of ["#choosing", "#bar", "#joining"]) assert.ok(await tab.$eval(id, (e) => e.hidden), `${id} is shown`);
  await accessible(tab, "plain http");
  await shot(tab, "chrome-join-plain");
});
