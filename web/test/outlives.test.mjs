// The page that a browser kept is what opens where nobody answers, and only there: what a coordinator serves
// comes first, what is damaged is not kept, and no token is.
import assert from "node:assert/strict";
import { test } from "node:test";
import { names } from "./browsers.mjs";
import { open, openTab, textOf, until } from "./fleet.mjs";
import { protocol, serve } from "./pages.mjs";

const about = { job: "short", id: "00", task: "classify", labels: ["a", "b"], rounds: 2, private: true, protects: "device", shard_floor: 3, sampling_rate: 1, base_bytes: 1, protocol, needs_secret: false };

/** A coordinator that is there, away or newer, as of.how says. */
async function coordinator(t) {
  const of = { how: "there", damaged: "" };
  of.url = await serve(t, (request, response, path) => {
    if (of.how === "away") return request.socket.destroy(), true;
    if (of.how === "left") return response.writeHead(502).end("a proxy is left"), true;
    if (path === "/v1/job") return response.end(JSON.stringify(about)), true;
    if (path === "/v1/status") return response.end(JSON.stringify({ private: true, state: "waiting", round: 1, version: 0, rounds: 2 })), true;
    if (path === "/" && of.how === "newer") return response.writeHead(200, { "Content-Type": "text/html; charset=utf-8" }).end("<title>newer</title>"), true;
    if (of.damaged && path.startsWith(of.damaged)) return response.end("something else"), true;
    return false;
  });
  return of;
}

/** Gives this browser a model to come back to, as a job would have. */
const leaveModel = (tab) => tab.evaluate(() => new Promise((resolve, reject) => {
  const opening = indexedDB.open("starling-models", 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore("models");
  opening.onerror = () => reject(opening.error);
  opening.onsuccess = () => {
    const work = opening.result.transaction("models", "readwrite");
    work.objectStore("models").put({ job: "earlier", id: "01", at: 1, model: { version: 2, rank: 1, archive: new Uint8Array(3), kept: new Uint8Array(3) } }, "01");
    work.oncomplete = () => { opening.result.close(); resolve(); };
  };
}));

/** Leaves a join with its token and data in place of the model, as a page that was closed in mid-job does. */
const leaveJoin = (tab) => tab.evaluate(async () => {
  const change = (database, store, use) => new Promise((resolve, reject) => {
    const opening = indexedDB.open(database, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(store);
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const work = opening.result.transaction(store, "readwrite");
      use(work.objectStore(store));
      work.oncomplete = () => { opening.result.close(); resolve(); };
    };
  });
  await change("starling-models", "models", (s) => s.clear());
  await change("starling", "joins", (s) => s.put({ job: "short", id: "00", token: "a-token", source: { kind: "files", files: [new File(["secret"], "own.jsonl")] }, totals: {}, accepted: {}, paused: false }, "join"));
});

const joins = (tab) => tab.evaluate(() => new Promise((resolve, reject) => {
  const opening = indexedDB.open("starling", 1);
  opening.onerror = () => reject(opening.error);
  opening.onsuccess = () => {
    const asked = opening.result.transaction("joins").objectStore("joins").count();
    asked.onsuccess = () => { opening.result.close(); resolve(asked.result); };
  };
}));

const workers = (tab) => tab.evaluate(async () => (await navigator.serviceWorker.getRegistrations()).map((r) => new URL(r.scope).pathname).sort());

const kept = (tab) => tab.evaluate(async () => (await Promise.all((await caches.keys()).map(async (name) => (await caches.open(name)).keys()))).flat().map((r) => r.url));
const isKept = (tab, url) => tab.evaluate(async (url) => (await caches.match(url)) !== undefined && (await navigator.serviceWorker.getRegistration())?.active?.state === "activated", url);

for (const name of names) {
  test(`${name} opens the page that it kept where nobody answers, and there alone`, { timeout: 120_000 }, async (t) => {
    const there = await coordinator(t);
    const browser = await open(t, name);
    const { tab } = await openTab(browser, there.url);
    await until("the job", async () => await textOf(tab, "#job") === "short", () => textOf(tab, "body"));
    assert.deepEqual(await kept(tab), [], "a visitor who gave nothing keeps the page");
    await leaveModel(tab);

    // Of which a part is not what the build made.
    there.damaged = "/assets/worker-";
    await tab.goto("about:blank");
    await tab.goto(there.url);
    await until("the word on it", async () => /does not keep this page/.test(await textOf(tab, "#page-kept")), () => textOf(tab, "body"));
    assert.ok(!await isKept(tab, there.url));

    there.damaged = "";
    await tab.goto(`${there.url}?from=mail#secret`);
    await tab.reload();
    await until("the page to be kept", () => isKept(tab, there.url), () => textOf(tab, "body"));
    assert.ok((await kept(tab)).every((url) => !/[?#]|v1|blob/.test(url.replace(there.url, ""))), String(await kept(tab)));

    for (const how of ["away", "left"]) {
      there.how = how;
      await tab.goto(`${there.url}#another`);
      await tab.reload();
      await until("the kept page", async () => /does not answer/.test(await textOf(tab, "#summary")), () => textOf(tab, "body"));
      await until("the model", async () => /earlier/.test(await textOf(tab, "#shelf-list")), () => textOf(tab, "body"));
      assert.equal(await tab.evaluate(async () => (await fetch("v1/job").catch(() => undefined))?.ok ?? false), false, "figures come from a cache");
    }
    // Somebody answers again, with a page that this browser has not seen.
    there.how = "newer";
    await until("the newer page", async () => await tab.title().catch(() => "between two pages") === "newer");
    await tab.reload();
    assert.equal(await tab.title(), "newer");
  });
}

test("chrome ends a join whose coordinator is gone for good, and leaves another's worker alone", { timeout: 120_000 }, async (t) => {
  const there = await coordinator(t);
  const browser = await open(t, "chrome");
  const { tab } = await openTab(browser, there.url);
  await until("the job", async () => await textOf(tab, "#job") === "short", () => textOf(tab, "body"));
  await leaveModel(tab);
  await tab.reload();
  await until("the page of / to be kept", () => isKept(tab, there.url), () => textOf(tab, "body"));

  // Below it another one's, whose own worker is gone: the browser answers with the one of "/".
  const below = `${there.url}a/`;
  await tab.goto(below);
  await until("the page of /a/ to be kept", async () => await isKept(tab, below) && String(await workers(tab)) === "/,/a/", () => textOf(tab, "body"));
  await until("the word on it", async () => /opens also when/.test(await textOf(tab, "#page-kept")), () => textOf(tab, "body"));
  await tab.evaluate(async (scope) => (await navigator.serviceWorker.getRegistration(scope)).unregister(), below);
  await tab.$eval("#shelf-list button:last-child", (button) => button.click());
  await until("the page of /a/ to go", async () => /does not keep this page any more/.test(await textOf(tab, "#page-kept")), () => textOf(tab, "body"));
  assert.ok((await workers(tab)).includes("/"), "the worker of / is gone");

  there.how = "away";
  await tab.goto(there.url);
  await leaveJoin(tab);
  await tab.reload();
  await until("the button", async () => await tab.$("#gone-end") !== null, () => textOf(tab, "body"));
  assert.equal(await joins(tab), 1);
  await tab.$eval("#gone-end", (button) => button.click());
  await until("the page to go", async () => /does not keep this page any more/.test(await textOf(tab, "#page-kept")), () => textOf(tab, "body"));
  assert.equal(await joins(tab), 0, "the join is kept");
  assert.equal(await tab.$("#gone-end"), null);
  assert.match(await textOf(tab, "#summary"), /It is loaded anew/);
  assert.deepEqual(await kept(tab), []);
  assert.ok(!(await workers(tab)).includes("/"), "the worker is kept");
});
