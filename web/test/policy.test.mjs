// What the visitor's browser refuses by itself, what a visitor may accept, and what
// it remembers of each file.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible } from "./axe.mjs";
import { elsewhere, names } from "./browsers.mjs";
import { accept, choose, fleet, open, openTab, shot, textOf, until } from "./fleet.mjs";
import { freePort } from "./proxies.mjs";

const sends16 = { rounds: 3, natives: 3, floor: 4, extra: "wire: {uplink: fixed16}\n", nativeFlags: ["--uplinks", "fixed16"] };

for (const name of names) {
  test(`${name} asks once, before Join, for what a job asks beyond the policy`, { timeout: 240_000 }, async (t) => {
    const job = await fleet(t, sends16);
    const browser = await open(t, name);
    const { tab, faults } = await openTab(browser, job.page);
    await until("the verdict", async () => await textOf(tab, "#verdict-title") === "1 thing needs your yes", () => job.story(tab, "body"));
    assert.match(await textOf(tab, "#trust"), /In a browser you trust whoever runs this coordinator/);
    const before = await textOf(tab, "#given");
    await until("the question", () => tab.$eval("#consent", (e) => !e.hidden), () => job.story(tab, "body"));
    assert.equal(await textOf(tab, "#consent-list"), "Updates are larger or finer than usual: more of your data fits in.");
    assert.match(await textOf(tab, "#consent-more"), /Updates are to be written as “fixed16”.*limit: [^.]*nf4.*larger and finer an update may be/s);
    await (await tab.$("#file")).uploadFile(job.own);
    await until("the data", () => tab.$eval("#preview", (e) => !e.hidden), () => job.story(tab, "#data-state"));
    await until("the question", async () => /^Answer the question above/.test(await textOf(tab, "#join-hint")), () => textOf(tab, "#join-hint"));
    assert.ok(await tab.$eval("#join", (b) => b.disabled), "joined before it was accepted");
    await accessible(tab, "asked before Join");
    await shot(tab, `${name}-join-policy`, { fullPage: true });
    job.joinNatives();
    await tab.focus("#consent-yes");
    await tab.keyboard.press(" ");
    await tab.click("#join");
    await until("the end", async () => /^Finished/.test(await textOf(tab, "#state")), () => job.story(tab, "body"), 90_000);
    assert.match(await textOf(tab, "#contributed"), /^[1-9]\d* round/);
    assert.ok(await tab.$eval("#limits", (e) => e.hidden), "it is asked again");
    assert.equal(await textOf(tab, "#given"), before, "the verdict has changed");
    assert.deepEqual(faults.filter((f) => !/ERR_CONNECTION|NetworkError|Failed to load/.test(f)), []);
  });
}

test("what a job's program takes beyond the limits is asked with the rest, before Join", { timeout: 120_000 }, async (t) => {
  const job = await fleet(t, sends16);
  const browser = await open(t, "chrome");
  const { tab, faults } = await openTab(browser, "about:blank");
  await tab.evaluateOnNewDocument(() => { // the trial ends as it does over a program that takes too much
    const post = Worker.prototype.postMessage, { set } = Object.getOwnPropertyDescriptor(Worker.prototype, "onmessage");
    let trial;
    Worker.prototype.postMessage = function (message, ...more) {
      if (message.kind === "quote") trial = message.id;
      return post.call(this, message, ...more);
    };
    const limits = [{ key: "work", what: "the round's training may take 2e+13 units of work", why: "", have: "2.02e+13", want: "at most 1e+13" }];
    Object.defineProperty(Worker.prototype, "onmessage", { set(take) {
      set.call(this, (event) => take(event.data.kind === "answer" && event.data.id === trial ? { data: { kind: "refused", id: trial, reason: "too much", code: "policy", limits } } : event));
    } });
  });
  await tab.goto(job.page);
  await until("the question for data", () => tab.$eval("#choosing", (e) => !e.hidden), () => textOf(tab, "body"));
  await (await tab.$("#file")).uploadFile(job.own);
  await until("both", async () => /finer than usual: more of your data fits in\.Training takes more time and power than usual\.$/.test(await textOf(tab, "#consent-list")), () => textOf(tab, "body"));
  await until("the verdict", async () => await textOf(tab, "#verdict-title") === "2 things need your yes", () => textOf(tab, "#given"));
  assert.ok(await tab.$eval("#join", (b) => b.disabled), "joined before it was accepted");
  await tab.$eval("#consent-yes", (box) => box.click());
  await until("the answer to count", async () => !(await tab.$eval("#join", (b) => b.disabled)), () => textOf(tab, "#join-hint"));
  assert.deepEqual(faults.filter((f) => !/ERR_CONNECTION|NetworkError|Failed to load/.test(f)), []);
});

test("what could not be checked before Join is refused with its reasons then, and joined when they are accepted", { timeout: 240_000 }, async (t) => {
  const job = await fleet(t, sends16);
  const browser = await open(t, "chrome");
  const { tab, faults } = await openTab(browser, "about:blank");
  await tab.evaluateOnNewDocument(() => { // a coordinator that announces its job to nobody
    const post = Worker.prototype.postMessage;
    Worker.prototype.postMessage = function (message, ...more) {
      return post.call(this, message.kind === "limits" ? { ...message, of: { ...message.of, token: undefined, url: `${message.of.url}/nowhere` } } : message, ...more);
    };
  });
  await tab.goto(job.page);
  await until("the verdict", async () => await textOf(tab, "#verdict-title") === "Not checked yet", () => job.story(tab, "body"));
  await choose(tab, job.own);
  await tab.click("#join");
  await until("the refusal", () => tab.$eval("#limits", (e) => !e.hidden), () => job.story(tab, "body"));
  assert.match(await textOf(tab, "#limits-more"), /Updates are to be written as “fixed16”.*limit: [^.]*nf4.*larger and finer an update may be/s);
  assert.match(await textOf(tab, "#state"), /^Not joined/);
  assert.ok(await tab.$eval("#limits-accept", (b) => b.disabled), "accepted before it was read");
  await accessible(tab, "refused by the policy");
  job.joinNatives();
  await tab.focus("#limits-yes");
  await tab.keyboard.press(" ");
  await tab.click("#limits-accept");
  await until("the end", async () => /^Finished/.test(await textOf(tab, "#state")), () => job.story(tab, "body"), 90_000);
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

for (const name of names) {
  test(`${name} is asked what protects it of a coordinator elsewhere, and only once`, { timeout: 240_000 }, async (t) => {
    const port = await freePort();
    const job = await fleet(t, { natives: 2, listen: `127.0.0.1:${port}`, serveFlags: ["--tls", "--url", `https://${elsewhere}:${port}`] });
    const browser = await open(t, name);
    const visit = async () => {
      const { tab } = await openTab(browser, job.page);
      await until("the verdict", async () => await textOf(tab, "#verdict-title") === "Only the operator's honesty protects your data", () => job.story(tab, "body"));
      return tab;
    };
    const waits = async (tab) => /wait/i.test(await textOf(tab, "#state"));
    const tab = await visit();
    const asked = await accept(tab);
    assert.match(asked, /The operator alone adds noise\. No device can check it\..*invents other devices.*As few as 3 devices/s);
    assert.match(asked, /coordinator alone adds the noise, and no device can check it.*limit: at least 0\.1/s);
    assert.equal(asked.match(/honesty/g)?.length, 1, "one reason is told once");
    await accessible(tab, "asked what protects it");
    await shot(tab, `${name}-join-honesty`, { fullPage: true });
    await choose(tab, job.own);
    await tab.click("#join");
    await until("the fleet", () => waits(tab), () => job.story(tab, "body"), 90_000);
    assert.ok(await tab.$eval("#limits", (e) => e.hidden), "it is asked again");
    await tab.evaluate(() => { // a slow disk: closed at "Stopped", the page must not come back taking part
      const remove = IDBObjectStore.prototype.delete;
      IDBObjectStore.prototype.delete = function (key) {
        const end = performance.now() + 1000, asked = remove.call(this, key);
        const hold = () => { if (performance.now() < end) this.get(key).onsuccess = hold; };
        hold();
        return asked;
      };
    });
    await tab.click("#stop");
    await until("the stop", async () => /^Stopped/.test(await textOf(tab, "#state")), () => textOf(tab, "#state"));
    await tab.close();
    const again = await visit();
    assert.ok(await again.$eval("#consent-ask", (e) => !e.hidden), "what was accepted for other data is taken for these");
    await choose(again, job.own);
    assert.ok(await again.$eval("#consent-granted", (e) => !e.hidden), "it is not told that this was accepted");
    assert.equal(await textOf(again, "#verdict-title"), "Only the operator's honesty protects your data", "what was accepted has become better");
    await again.click("#join");
    await until("the fleet", () => waits(again), () => job.story(again, "body"), 90_000);
    assert.ok(await again.$eval("#limits", (e) => e.hidden), "it is asked again");
  });
}
