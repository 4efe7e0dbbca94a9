// A join page between a coordinator and files that mean it ill: names that turn the
// text around, a thousand classes, files that are not what they are called.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { accessible } from "./axe.mjs";
import { names } from "./browsers.mjs";
import { open, openTab, shot, textOf, until } from "./fleet.mjs";
import { protocol, serve } from "./pages.mjs";

const usual = { job: "hostile", task: "classify", labels: ["a", "b"], rounds: 2, private: true, protects: "device", shard_floor: 3, sampling_rate: 0.5,
  base_bytes: 1, needs_secret: false, protocol, delivered: { epsilon: 2, epsilon_lower: 0, delta: 1e-6, adjacency: "add/remove", accountant: "tight",
    sampling: "poisson", rounds: 2, rdp_epsilon: 2, rdp_order: 8 } };

/** A join page of a coordinator whose job has some values of its own. */
async function visit(t, browser, job = {}) {
  const address = await serve(t, (_, response, path) =>
    path === "/v1/job" ? response.end(JSON.stringify({ ...usual, ...job })) :
    path === "/v1/status" ? response.end(JSON.stringify({ private: true, state: "waiting", round: 0, version: 0, rounds: 2 })) : false);
  const opened = await openTab(browser, address);
  await until("the promise", async () => /ε/.test(await textOf(opened.tab, "#given")), () => textOf(opened.tab, "body"));
  return opened;
}

const file = (name, content) => ({ name, content: Buffer.from(content) });
const zip = Buffer.from("504b0304140000000800", "hex");

/** Files, and what the page says of them. */
const files = [
  [file("empty.csv", ""), /empty|no examples|no text/i],
  [file("header.csv", "label,text\n"), /no examples|empty/i],
  [file("archive.csv", Buffer.concat([zip, Buffer.alloc(3000, 0xe3)])), /archive\.csv/],
  [file("binary.txt", Buffer.from(Array.from({ length: 4000 }, (_, i) => i * 7 & 255))), /binary\.txt/],
  [file("latin1.csv", Buffer.concat([Buffer.from("label,text\na,"), Buffer.from([0xe4, 0xf6, 0xfc]), Buffer.from("\n")])), /UTF-8/],
  [file("notgzip.csv.gz", "label,text\na,b\n"), /no gzip/],
  [file("bomb.csv.gz", gzipSync(Buffer.alloc(300e6, "a,b\n"))), /256/],
  [file("open.csv", `label,text\na,"never closed\n${"x\n".repeat(1000)}`), /open\.csv/],
  [file("deep.jsonl", "[".repeat(100_000)), /deep\.jsonl/],
  [file("page.csv", "label,text\n<img src=x onerror=alert(1)>,b\n"), /not among this job/],
];

for (const name of names) {
  test(`${name}: files that are not what they are called are refused by name`, { timeout: 400_000 }, async (t) => {
    const dir = mkdtempSync(join(tmpdir(), "starling-hostile-"));
    t.after(() => rmSync(dir, { recursive: true, force: true }));
    const browser = await open(t, name);
    const { tab, faults } = await visit(t, browser);
    const input = await tab.$("#file");
    const pick = async ({ name: called, content }) => {
      writeFileSync(join(dir, called), content);
      await tab.$eval("#file", (e) => { e.value = ""; });
      await input.uploadFile(join(dir, called));
    };
    const said = () => textOf(tab, "#data-state");
    for (const [one, what] of files) {
      await pick(one);
      await until(`the refusal of ${one.name}`, () => tab.$eval("#data-state", (e) => e.classList.contains("failed")), said, 120_000);
      assert.match(await said(), what, one.name);
      assert.ok((await said()).length < 400, `${one.name}: ${(await said()).length} characters of error`);
      assert.ok(await tab.$eval("#join", (b) => b.disabled));
    }
    const wide = Array.from({ length: 500 }, (_, i) => `c${i}`).join(",");
    await pick(file("wide.csv", `${wide},label,text\n${"1,".repeat(500)}a,something\n`));
    await until("500 columns", async () => /^1 example in wide\.csv: a × 1$/.test(await said()), said);
    assert.equal(await tab.$eval("#text-column", (s) => s.value), "text");
    assert.ok(await tab.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page scrolls sideways");
    // Two columns of any names: the likely ones are chosen, and others can be.
    for (const [one, of] of [[file("mail.jsonl", '{"class":"a","body":"hello"}\n'), "a × 1"], [file("frage.jsonl", '{"frage":"hello","art":"b"}\n'), "b × 1"]]) {
      await pick(one);
      await until(one.name, async () => await said() === `1 example in ${one.name}: ${of}`, said);
      assert.ok(await tab.$eval("#columns", (e) => !e.hidden), `no columns to choose of ${one.name}`);
    }
    await pick(file("art.csv", "art,frage\nb,hello\n"));
    await until("the wrong guess", async () => /choose another label column/.test(await said()), said);
    await tab.select("#label-column", "art");
    await tab.select("#text-column", "frage");
    await until("the right choice", async () => await said() === "1 example in art.csv: b × 1", said);
    assert.deepEqual(faults.filter((f) => !/Failed to read data from the ReadableStream/.test(f)), []); // Firefox's note of a broken gzip
  });
}

test("a job of hostile words is shown as text, and Join stays in sight", { timeout: 120_000 }, async (t) => {
  const browser = await open(t, "chrome");
  const evil = "\u202Etxet desrever\u2066 <b>bold</b> &amp; \u0000\u0007";
  const { tab, faults } = await visit(t, browser, { job: `${evil}${"W".repeat(5000)}`, labels: [evil, "<script>alert(1)</script>", "x".repeat(20_000),
    ...Array.from({ length: 10_000 }, (_, i) => `class ${i}`)] });
  assert.equal(await tab.$$eval("#labels b, #labels script, #job b", (e) => e.length), 0);
  assert.ok(await tab.$eval("#join", (e) => { const r = e.getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight; }), "Join is out of sight");
  assert.ok(await tab.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page scrolls sideways");
  const given = await tab.$eval("#given", (e) => e.getBoundingClientRect().top);
  assert.ok(given < 2 * 844, `what is given stands ${given} pixels down`);
  const text = await tab.evaluate(() => document.title + document.body.textContent);
  assert.ok(text.includes("txet desrever"), "the name is not there");
  assert.doesNotMatch(text, /[\u202e\u2066\u0007]/, "a name turns text around");
  await accessible(tab, "a hostile job");
  await shot(tab, "chrome-join-hostile", { fullPage: true });
  assert.deepEqual(faults, []);
});
