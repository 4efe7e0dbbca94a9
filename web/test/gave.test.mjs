// What a browser's files have given: shown with a picture, taken along, forgotten without
// giving up what protects them, all of it after the coordinator is gone; and what a round takes, tried before joining.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible } from "./axe.mjs";
import { names } from "./browsers.mjs";
import { choose, fleet, open, openTab, shot, textOf, until } from "./fleet.mjs";
import { relay } from "./relay.mjs";

/** The accounts that the browser keeps, by file. */
const accounts = (tab) => tab.evaluate(() => new Promise((resolve, reject) => {
  const opening = indexedDB.open("starling-edge", 1);
  opening.onerror = () => reject(opening.error);
  opening.onsuccess = () => {
    const store = opening.result.transaction("accounts").objectStore("accounts"), names = store.getAllKeys(), all = store.getAll();
    all.onsuccess = () => resolve(Object.fromEntries(names.result.map((n, i) => [n, JSON.parse(new TextDecoder().decode(all.result[i]))])));
  };
}));

/** What lies in this browser's caches. */
const kept = (tab) => tab.evaluate(async () => {
  const all = await Promise.all((await caches.keys()).map(async (name) => (await caches.open(name)).keys()));
  return all.flat().map((request) => request.url);
});

/** What a press of a button would have saved as a file. */
const saved = (tab, button) => tab.evaluate((id) => new Promise((resolve) => {
  const make = URL.createObjectURL;
  URL.createObjectURL = (blob) => {
    URL.createObjectURL = make;
    void blob.text().then(resolve);
    return make.call(URL, blob);
  };
  document.getElementById(id).click();
}), button);

for (const name of names) {
  test(`${name} tries what a round takes, shows what a file gave, and forgets it safely`, { timeout: 420_000 }, async (t) => {
    const job = await fleet(t, { rounds: 4, floor: 4 }); // no round is made without the browser
    const line = await relay(t, Number(new URL(job.page).port)); // the page outlives its coordinator
    const browser = await open(t, name);
    const { tab, faults } = await openTab(browser, line.url);
    await until("the promise", async () => /ε/.test(await textOf(tab, "#given")), () => job.story(tab, "body"));
    assert.match(await textOf(tab, "#plain"), /Loads [\d.]+ MB \(.*\) once, then [\d.]+ [kM]B \(.*\) each round\./);
    assert.ok(await tab.$eval("#gave", (e) => e.hidden), "something was given before anything was");
    await choose(tab, job.own);
    const cost = /^On this device: about \d+ (?:seconds?|minutes?) of computing in all, and [\d.]+ MB \(.*\) of memory\.$/;
    await until("the trial", async () => cost.test(await textOf(tab, "#here")), () => textOf(tab, "#here"));
    assert.equal((await fetch(new URL("v1/status", job.page)).then((r) => r.json())).enrolled ?? 0, 0);
    await accessible(tab, "tried");
    await shot(tab, `${name}-join-tried`);
    job.joinNatives();
    await tab.click("#join");
    await until("the end", async () => /^Finished/.test(await textOf(tab, "#state")), () => job.story(tab, "body"), 120_000);
    await job.server.done;

    // The coordinator is gone, and whoever comes back has a link with a token behind it.
    await until("the page to be kept", async () => /keeps this page: it opens also when/.test(await textOf(tab, "#page-kept")), () => textOf(tab, "#gave"));
    line.cut();
    const back = `${line.url}?from=mail#a-token`;
    await tab.goto(back);
    await until("the kept page", async () => await textOf(tab, "#job") === "Kept in this browser", () => textOf(tab, "body"));
    assert.match(await textOf(tab, "#summary"), /^127\.0\.0\.1:\d+ does not answer\./);
    for (const id of ["#asks", "#given", "#progress"]) assert.equal(await tab.$eval(id, (e) => getComputedStyle(e).display), "none", `${id} is shown without a coordinator`);
    const cached = await kept(tab);
    assert.deepEqual(cached.filter((url) => !/^http:\/\/127\.0\.0\.1:\d+\/(assets\/[\w.-]+)?$/.test(url)), [], "more than the page is kept");
    assert.ok(cached.some((url) => /\/assets\/edge-[0-9a-f]/.test(url)) && !cached.some((url) => /edge-full|language-|recorder/.test(url)), cached.join(" "));
    await tab.$eval("#shelf-list button", (button) => button.click());
    await until("the model", () => tab.$eval("#trained", (e) => !e.hidden), () => textOf(tab, "body"));
    await tab.$eval("#try-text", (e) => { e.value = "flight to Lisbon, economy, one passenger"; });
    await tab.$eval("#try-button", (button) => button.click());
    await until("a label", async () => /^Most likely \S+/.test(await textOf(tab, "#try-state")), () => textOf(tab, "#try-state"));
    await accessible(tab, "without its coordinator");
    await shot(tab, `${name}-join-gone`, { fullPage: true });
    await until("the job", async () => (await tab.$$("#gave-list > li")).length === 1, () => textOf(tab, "#gave"), 90_000);
    const told = await textOf(tab, "#gave-list");
    assert.match(told, /browser test/);
    assert.match(told, /Rounds4 of 4 rounds promised/);
    assert.match(told, /[\d.]+ [kM]B sent, [\d.]+ [kM]B received/);
    assert.match(told, /If the noise is as announcedε \S+ \(δ \d.*\): no useful limit/);
    assert.match(told, /If everybody else liesnothing bounds what it could tell/);
    const { jobs } = Object.values(await accounts(tab))[0];
    const [before] = Object.values(jobs);
    assert.ok(before.history.length >= 2 && before.history.at(-1).rounds === 4 && before.up > 1000 && before.down > 1000, JSON.stringify(before));
    if (before.history.at(-1).at > before.history[0].at) {
      assert.match(await tab.$eval("svg.gave", (e) => e.getAttribute("aria-label")), /^4 rounds from .+ to .+/);
    }
    const exported = JSON.parse(await saved(tab, "gave-json"));
    assert.equal(exported[0].given.contributed, 4);
    const rows = (await saved(tab, "gave-csv")).trim().split("\r\n");
    assert.equal(rows.length, 1 + before.history.length);
    assert.match(rows[0], /^file,job,id,time,rounds/);
    await accessible(tab, "what was given");
    await tab.$eval("#gave", (e) => e.scrollIntoView());
    await shot(tab, `${name}-join-gave`);

    // Forgotten, it tells of no job; what protects the data is as it was.
    await tab.click("#gave-list details > summary");
    assert.match(await textOf(tab, "#gave-list"), /nobody who has you forget it can ask for those rounds again/);
    await accessible(tab, "before forgetting");
    await tab.click("#gave-list details button");
    await until("the forgetting", async () => /forgotten\./.test(await textOf(tab, "#gave-state")), () => textOf(tab, "#gave"));
    assert.match(await textOf(tab, "#gave-list"), /A job that was forgotten \([0-9a-f]{8}\)/);
    assert.equal(await tab.evaluate(() => document.activeElement?.id), "gave-title");
    const [after] = Object.values(Object.values(await accounts(tab))[0].jobs);
    assert.ok(!JSON.stringify(after).includes("browser test") && !after.history && !after.up, JSON.stringify(after));
    for (const key of ["promised", "answered", "begun", "contributed", "committed", "noise", "delta"]) assert.equal(after[key], before[key], key);
    await shot(tab, `${name}-join-forgotten`);

    // Once nothing is left to come back to, the page goes, too.
    await tab.$eval("#forget", (button) => button.click());
    await until("the page to go", async () => /does not keep this page any more/.test(await textOf(tab, "#page-kept")), () => textOf(tab, "body"));
    assert.deepEqual(await kept(tab), []);
    assert.equal(await tab.evaluate(async () => (await navigator.serviceWorker.getRegistrations()).length), 0);
    await assert.rejects(tab.goto(back.replace("mail", "nowhere")), "a page that is forgotten opens");
    assert.deepEqual(faults.filter((f) => !/ERR_CONNECTION|ERR_EMPTY|Failed to load|NetworkError/.test(f)), []);
  });
}
