// The languages of the join page: each says all that English does, the browser's or the
// visitor's choice is spoken, in place, and one that is written from right to left mirrors
// the page.
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import * as esbuild from "esbuild";
import { accessible } from "./axe.mjs";
import { names } from "./browsers.mjs";
import { open, openTab, shot, textOf, until } from "./fleet.mjs";
import { protocol, serve } from "./pages.mjs";

const root = new URL("..", import.meta.url).pathname;

async function exportsOf(file) {
  const built = await esbuild.build({ entryPoints: [`src/language/${file}.ts`], bundle: true, format: "esm", write: false, absWorkingDir: root });
  return import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].contents).toString("base64")}`);
}

const en = { ...(await exportsOf("en")).en, ...(await exportsOf("en-later")).later };
const others = await Promise.all(readdirSync(join(root, "src/language")).filter((f) => /^[a-z]{2,3}\.ts$/.test(f) && f !== "en.ts")
  .map(async (f) => (await exportsOf(f.replace(".ts", ""))).default));

const forms = (message) => typeof message === "string" ? { other: message } : message;
const placeholders = (text) => [...text.matchAll(/\{(\w+)\}/g)].map((m) => m[1]).sort();

test("every language says what English says, with the same placeholders and its own plurals", () => {
  assert.deepEqual(others.map((l) => l.tag).sort(), ["de", "es", "fr"]);
  for (const { tag, direction, messages } of [{ tag: "en", direction: "ltr", messages: en }, ...others]) {
    assert.equal(direction, "ltr");
    assert.deepEqual(Object.keys(messages).sort(), Object.keys(en).sort(), tag);
    // "many" is of millions in French and Spanish, where "other" reads as well.
    const categories = new Intl.PluralRules(tag).resolvedOptions().pluralCategories.filter((c) => c !== "many").sort();
    for (const [key, message] of Object.entries(messages)) {
      const wanted = placeholders(forms(en[key]).other);
      assert.equal(typeof message, typeof en[key], `${tag}: ${key}`);
      if (typeof message !== "string") assert.deepEqual(Object.keys(message).sort(), categories, `${tag}: ${key}`);
      for (const [form, text] of Object.entries(forms(message))) {
        assert.ok(text.trim(), `${tag}: ${key} is empty`);
        const has = placeholders(text);
        assert.deepEqual(form === "other" ? has : has.filter((p) => p !== "n"), form === "other" ? wanted : wanted.filter((p) => p !== "n"), `${tag}: ${key}: ${form}`);
        assert.doesNotMatch(text, /^\s.*\s$|  |[<>]/, `${tag}: ${key}`);
      }
    }
  }
});

const guarantee = (epsilon) => ({ epsilon, epsilon_lower: 0, delta: 1e-6, adjacency: "add/remove", accountant: "tight", sampling: "poisson", rounds: 2, rdp_epsilon: epsilon, rdp_order: 8 });
const about = { job: "speaks", id: "00", task: "classify", labels: ["a", "b"], rounds: 1200, private: true, protects: "device", shard_floor: 40, sampling_rate: 0.5,
  base_bytes: 22_900_000, needs_secret: false, protocol, delivered: guarantee(2) };
const status = { private: true, state: "waiting", round: 3, version: 2, rounds: 1200, delivered: guarantee(1.25), validation: [{ rank: 2, accuracy: 0.625 }], validation_version: 2 };

/** A played coordinator; module, where there is one, is what it serves for each language's file. */
const played = (t, module) => serve(t, (_, response, path) => {
  if (path === "/v1/job") return response.end(JSON.stringify(about)), true;
  if (path === "/v1/status") return response.end(JSON.stringify(status)), true;
  if (!module || !/^\/assets\/language-/.test(path)) return false;
  if (module === "none") return response.writeHead(503).end(), true;
  response.writeHead(200, { "Content-Type": "text/javascript" });
  return response.end(module), true;
});

/** A tab of a visitor whose browser prefers these languages. */
async function visit(browser, address, preferred, viewport) {
  const opened = await openTab(browser, "about:blank", viewport);
  await opened.tab.evaluateOnNewDocument((tags) => Object.defineProperty(navigator, "languages", { get: () => tags }), preferred);
  await opened.tab.goto(address);
  await until("the lines", async () => (await opened.tab.$$("#plain li")).length === 2, () => textOf(opened.tab, "body"));
  return opened;
}

/** Texts of the page that read as English's do, hidden ones too. */
const english = (tab, messages, same) => tab.evaluate((texts, allowed) => {
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const text = node.data.trim();
    if (texts.includes(text) && !allowed.includes(text) && !node.parentElement.closest("noscript, option")) found.push(text);
  }
  for (const at of document.querySelectorAll("[aria-label]")) {
    if (texts.includes(at.getAttribute("aria-label")) && !allowed.includes(at.getAttribute("aria-label"))) found.push(at.getAttribute("aria-label"));
  }
  return found;
}, Object.values(messages).filter((m) => typeof m === "string"), same);

for (const name of names) {
  test(`${name} speaks the browser's language, and another in place where it is chosen`, { timeout: 300_000 }, async (t) => {
    const dir = mkdtempSync(join(tmpdir(), "starling-language-"));
    t.after(() => rmSync(dir, { recursive: true, force: true }));
    const address = await played(t), browser = await open(t, name);
    for (const { tag, messages } of others) {
      const { tab, faults } = await visit(browser, address, ["xx-XX", `${tag}-${tag.toUpperCase()}`, "en"]);
      assert.deepEqual(await tab.evaluate(() => [document.documentElement.lang, document.documentElement.dir, document.getElementById("language").value]), [tag, "ltr", tag]);
      const same = Object.keys(en).filter((k) => en[k] === messages[k]).map((k) => en[k]);
      assert.ok(same.length < 12, `${tag}: ${same.length} messages are English's: ${same}`);
      assert.deepEqual(await english(tab, en, same), [], tag);
      assert.equal(await textOf(tab, "#join"), messages["join"]);
      assert.equal(await textOf(tab, "noscript").then((text) => text.length > 0), true);
      await accessible(tab, tag);
      await shot(tab, `${name}-join-${tag}`, { fullPage: true });
      assert.deepEqual(faults, []);
      await tab.close();
    }

    const { tab, faults, requests } = await visit(browser, address, ["de-CH", "de"]);
    await until("the figures", async () => /62[.,]5/.test(await textOf(tab, "#accuracy")), () => textOf(tab, "#accuracy"));
    // German of Switzerland writes numbers in its own way.
    assert.match(await textOf(tab, "#rounds-text"), /^2 von 1[’'\u2019]200 Runden geschafft$/);
    assert.match(await textOf(tab, "#accuracy"), /^62\.5\s?% \(nach 2 Runden, Rang 2\)$/);
    assert.match(await textOf(tab, "#plain"), /Lädt etwa 24\.1\sMB \(8 Fotos\) einmal/);
    const file = join(dir, "texts.csv");
    writeFileSync(file, "label,text\na,eins\nb,zwei\na,drei\n");
    await (await tab.$("#file")).uploadFile(file);
    await until("the file", async () => !(await tab.$eval("#join", (b) => b.disabled)), () => textOf(tab, "#data-state"));
    assert.match(await textOf(tab, "#data-state"), /^3 Beispiele in texts\.csv: a × 2, b × 1$/);
    writeFileSync(file, "label,text\nc,eins\n");
    await tab.$eval("#file", (e) => { e.value = ""; }); // as a click does
    await (await tab.$("#file")).uploadFile(file);
    await until("the refusal", async () => /gehört nicht zu den Klassen/.test(await textOf(tab, "#data-state")), () => textOf(tab, "#data-state"));
    // All of what is there is told again, with what was chosen.
    await tab.select("#language", "fr");
    await until("French", async () => (await textOf(tab, "#join")) === "Participer", () => textOf(tab, "body"));
    assert.match(await textOf(tab, "#data-state"), /“c” ne fait pas partie des classes de cet entraînement/);
    assert.match(await textOf(tab, "#rounds-text"), /^2 sur 1\s200 tours$/);
    assert.equal(await textOf(tab, "#job"), "speaks");
    assert.deepEqual(await english(tab, others.find((l) => l.tag === "de").messages, Object.values(others.find((l) => l.tag === "fr").messages)), []);
    await tab.reload();
    await until("French again", async () => (await tab.evaluate(() => document.documentElement.lang)) === "fr", () => textOf(tab, "body"));
    // English is what the page holds: nothing is fetched for it, and of the others what is spoken.
    const fetched = new Set(requests.map((r) => /language-(\w+)-/.exec(r)?.[1]).filter(Boolean));
    assert.deepEqual([...fetched].sort(), ["de", "fr"]);
    await tab.select("#language", "en");
    await until("English", async () => (await textOf(tab, "#join")) === "Join", () => textOf(tab, "body"));
    assert.deepEqual(faults, []);
  });

  test(`${name} reads English where a language does not come`, { timeout: 120_000 }, async (t) => {
    const address = await played(t, "none"), browser = await open(t, name);
    const { tab } = await visit(browser, address, ["de"]);
    assert.equal(await textOf(tab, "#join"), "Join");
    assert.equal(await tab.evaluate(() => document.documentElement.lang), "en");
    await tab.select("#language", "fr");
    await until("the switch to tell the truth", () => tab.$eval("#language", (s) => s.value === "en"));
  });

  test(`${name} mirrors the page for a language that is written from right to left`, { timeout: 120_000 }, async (t) => {
    // English in Arabic's letters, served in German's place: no translation, but written as one.
    const letters = "ابتثجحخدذرزسشصضطظعغفقكلمنه";
    const mirrored = (text) => text.replace(/\{\w+\}|[a-z]/gi, (c) => c.length > 1 ? c : letters[c.toLowerCase().charCodeAt(0) - 97]);
    const messages = Object.fromEntries(Object.entries(en).map(([k, m]) =>
      [k, typeof m === "string" ? mirrored(m) : Object.fromEntries(Object.entries(m).map(([form, text]) => [form, mirrored(text)]))]));
    const address = await played(t, `export default ${JSON.stringify({ tag: "ar", name: "Deutsch", direction: "rtl", messages })}`);
    const browser = await open(t, name);
    for (const viewport of [{ width: 390, height: 844 }, { width: 1280, height: 900 }]) {
      const { tab, faults } = await visit(browser, address, ["de"], viewport);
      assert.deepEqual(await tab.evaluate(() => [document.documentElement.lang, document.documentElement.dir]), ["ar", "rtl"]);
      await until("the figures", async () => (await textOf(tab, "#accuracy")).length > 3);
      assert.ok(await tab.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page scrolls sideways");
      const outside = await tab.evaluate(() => [...document.querySelectorAll("body *")].filter((e) => {
        const { left, right, width } = e.getBoundingClientRect();
        return width > 0 && (left < -1 || right > innerWidth + 1);
      }).map((e) => e.outerHTML.slice(0, 100)));
      assert.deepEqual(outside, [], "beside the page");
      const box = (selector) => tab.$eval(selector, (e) => { const { left, right } = e.getBoundingClientRect(); return { left, right }; });
      const [button, brand, first, second] = await Promise.all(["#join", ".brand", "dt[data-say='progress.accuracy']", "#accuracy"].map(box));
      // On a phone's bar at the end, below the data at the beginning.
      assert.ok(viewport.width < 500 ? button.left < 30 : button.right > viewport.width / 2, `Join is ${button.left} pixels from the left`);
      assert.ok(brand.right > viewport.width / 2, "the name stands on the left");
      assert.ok(first.right >= second.right, "a list's names stand to the right of what they name");
      assert.equal(await tab.$eval("#given", (e) => getComputedStyle(e).borderRightWidth !== getComputedStyle(e).borderLeftWidth), true);
      // Somebody else's words are held apart, so that they do not turn the sentence around.
      assert.match(await tab.evaluate(() => document.getElementById("spent").textContent), /^ε/);
      await accessible(tab, "right to left");
      await shot(tab, `${name}-join-rtl-${viewport.width}`);
      assert.deepEqual(faults, []);
      await tab.close();
    }
  });
}
