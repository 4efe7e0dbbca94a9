// A page that is opened under another address than its link's says which link to open;
// one that a proxy serves below a path takes part like any other, and so do devices.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible } from "./axe.mjs";
import { names } from "./browsers.mjs";
import { choose, fleet, open, openTab, shot, textOf, until } from "./fleet.mjs";
import { freePort, present, proxy } from "./proxies.mjs";
import { relay } from "./relay.mjs";

for (const name of names) {
  test(`${name} says which link to open under another address than the token's`, { timeout: 120_000 }, async (t) => {
    const job = await fleet(t, { extra: "enrolment: {secret: a secret of sixteen bytes}" });
    const meant = job.page.replace(/#.*/, "");
    const forwarded = await relay(t, Number(new URL(job.page).port));
    const browser = await open(t, name);
    for (const base of [job.page.replace("127.0.0.1", "localhost"), job.page.replace(meant, forwarded.url)]) {
      const { tab, faults } = await openTab(browser, base);
      await until("the sentence", () => tab.$eval("#unable", (e) => !e.hidden), () => job.story(tab, "body"));
      const said = await textOf(tab, "#unable");
      assert.ok(said.includes(`is for ${meant}`) && said.includes(`--url ${base.replace(/#.*/, "")}`), said);
      assert.equal(await tab.$eval("#elsewhere", (e) => e.href), job.page);
      assert.ok(await tab.$eval("#choosing", (e) => e.hidden), "it asks for data that it can do nothing with");
      await accessible(tab, "opened elsewhere");
      await shot(tab, `${name}-join-elsewhere`);
      await tab.click("#elsewhere");
      await until("the page that was meant", async () => tab.url() === job.page && await tab.$eval("#choosing", (e) => !e.hidden), () => job.story(tab, "body"));
      await until("the promise", async () => /ε/.test(await textOf(tab, "#given")), () => job.story(tab, "body"));
      assert.ok(await tab.$eval("#unable", (e) => e.hidden));
      assert.deepEqual(faults, []);
      await tab.close();
    }
  });
}

test("a link that was cut or changed on its way is refused before anything is asked", { timeout: 120_000 }, async (t) => {
  const job = await fleet(t);
  const browser = await open(t, "chrome");
  const { tab } = await openTab(browser, job.page);
  await until("a whole link to do", () => tab.$eval("#choosing", (e) => !e.hidden), () => job.story(tab, "body"));
  const { href, hash } = new URL(job.page), address = href.replace(/#.*/, "");
  for (const broken of [hash.slice(0, -1), hash.slice(0, -8), hash.slice(0, hash.length / 2), `${hash}A`, `${hash}.`, hash.replace("_", ""), hash.replace("starling2_", "starling3_"), "#else"]) {
    await tab.goto("about:blank");
    await tab.goto(address + broken);
    await until(broken, async () => /^This link is damaged/.test(await textOf(tab, "#unable")), () => textOf(tab, "body"), 10_000);
    for (const id of ["#choosing", "#consent", "#limits", "#joining"]) assert.ok(await tab.$eval(id, (e) => e.hidden), `${broken}: ${id} is shown`);
  }
  await tab.goto("about:blank");
  await tab.goto(address); // no token at all is no damage
  await until("no link to do", () => tab.$eval("#choosing", (e) => !e.hidden), () => job.story(tab, "body"));
});

for (const [name, how, lines] of [
  ["nginx", "the name that was asked for", "proxy_set_header Host $http_host;"], ["nginx", "its own name", ""], ["caddy", "the name that was asked for", ""],
]) {
  const missing = present(name) ? false : `${name.toUpperCase()} IS NOT HERE: nobody has shown that a path before a coordinator works with it. sh browser-test.sh installs it; ${name.toUpperCase()} names another.`;
  if (missing) console.error(`# ${missing}`);
  test(`a fleet and a page take part through ${name} below a path, which passes ${how}`, { timeout: 300_000, skip: missing }, async (t) => {
    const port = await freePort(), path = "some/fl";
    const job = await fleet(t, { serveFlags: ["--url", `http://127.0.0.1:${port}/${path}/`, "--trust-proxy", "127.0.0.1"] });
    assert.ok(job.page.startsWith(`http://127.0.0.1:${port}/${path}/#`), job.page);
    const [, upstream] = /listening on (\S+)/.exec(job.server.err);
    const front = await proxy(t, name, { port, path, upstream, lines });
    // A trusted proxy's number of a request is taken, where it says whom it asks for; nobody else's is.
    const numbered = async (base) => (await fetch(`${base}/healthz`, { headers: { "X-Request-Id": "of-the-proxy-1" } })).headers.get("x-request-id");
    assert.equal(await numbered(`http://127.0.0.1:${port}/${path}`), "of-the-proxy-1");
    assert.notEqual(await numbered(`http://${upstream}`), "of-the-proxy-1");
    const browser = await open(t, "chrome");
    const opened = await openTab(browser, job.page.replace("/#", "#")); // as somebody types it
    const { tab, faults, requests } = opened;
    await until("the promise", async () => /ε/.test(await textOf(tab, "#given")), () => job.story(tab, "body"));
    assert.equal(tab.url(), job.page);
    await choose(tab, job.own);
    const edges = job.joinNatives();
    await tab.click("#join");
    const heard = async () => `${await job.story(tab, "body")}\n${front.said()}\n${edges.map((e) => e.err.slice(-300)).join("\n")}`;
    await until("the end", async () => /^Finished/.test(await textOf(tab, "#state")), heard, 120_000);
    await until("the model", () => tab.$eval("#trained", (e) => !e.hidden), heard);
    assert.equal((await job.result()).rounds, 2);
    for (const edge of edges) assert.equal(await edge.done, 0, edge.err);
    const strays = requests.filter((r) => /^(http|ws)/.test(r) && !new URL(r).pathname.startsWith(`/${path}`));
    assert.deepEqual(strays, [], "it asks beside its path");
    assert.deepEqual(faults.filter((f) => !/ERR_CONNECTION|502|Failed to load/.test(f)), []);
  });
}
