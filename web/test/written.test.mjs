// Data without a file: typed, pasted as a spreadsheet copies it, dropped; and files that people
// have and no device reads, with a sentence of what to do.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { accessible } from "./axe.mjs";
import { names } from "./browsers.mjs";
import { open, openTab, shot, textOf, until } from "./fleet.mjs";
import { protocol, serve } from "./pages.mjs";

const guarantee = { epsilon: 2, epsilon_lower: 0, delta: 1e-6, adjacency: "add/remove", accountant: "tight", sampling: "poisson", rounds: 2, rdp_epsilon: 2, rdp_order: 8 };
const about = { job: "written", id: "00", task: "classify", labels: ["energy", "travel"], rounds: 12, private: true, protects: "device", shard_floor: 40, sampling_rate: 0.5,
  base_bytes: 22_900_000, needs_secret: false, protocol, delivered: guarantee };

for (const name of names) {
  test(`${name} takes data that are typed, pasted and dropped, and says what to do with documents`, { timeout: 240_000 }, async (t) => {
    const dir = mkdtempSync(join(tmpdir(), "starling-written-"));
    t.after(() => rmSync(dir, { recursive: true, force: true }));
    const address = await serve(t, (_, response, path) => {
      if (path === "/v1/job") return response.end(JSON.stringify(about)), true;
      if (path === "/v1/status") return response.end(JSON.stringify({ private: true, state: "waiting", round: 0, version: 0, rounds: 12 })), true;
      return false;
    });
    const { tab, faults } = await openTab(await open(t, name), address);
    await until("the question for data", () => tab.$eval("#choosing", (e) => !e.hidden), () => textOf(tab, "body"));
    const state = () => textOf(tab, "#data-state"), found = (pattern) => until(`${pattern}`, async () => pattern.test(await state()) && !(await tab.$eval("#join", (b) => b.disabled)), async () => `${await state()} ${await textOf(tab, "#writing")}`);
    await tab.click("#write");
    await until("a place to write", () => tab.evaluate(() => document.activeElement?.id === "writing-text"));
    await tab.type("#writing-text", "a flight to Lisbon");
    await tab.focus("#writing-form button");
    await tab.keyboard.press("Enter");
    await until("the missing label", async () => /^1 row has none of this job's labels/.test(await textOf(tab, "#writing-state")), () => textOf(tab, "#writing"));
    await tab.select("#writing-label", "travel");
    await tab.focus("#writing-form button");
    await tab.keyboard.press("Enter");
    await found(/^1 example in written\.jsonl: travel × 1$/);
    // Rows as a spreadsheet copies them, pasted anywhere: columns in any order, names above them.
    const paste = (text) => tab.evaluate((plain) => {
      const clipboardData = new DataTransfer();
      clipboardData.setData("text/plain", plain);
      document.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData, dataType: "text/plain", data: plain, bubbles: true }));
    }, text);
    await paste('what\tkind\r\nkilowatt hours\tenergy\r\n"a ""cheap"" hotel"\ttravel\r\n\r\n');
    await found(/^3 examples in written\.jsonl: travel × 2, energy × 1$/);
    assert.match(await textOf(tab, "#rows"), /a "cheap" hotel/);
    // A label in place; a row taken away.
    await tab.$eval("#writing-list li:nth-child(2) select", (s) => { s.value = "travel"; s.dispatchEvent(new Event("change")); });
    await found(/travel × 3$/);
    await tab.$eval("#writing-list li:first-child button", (b) => b.click());
    await found(/^2 examples/);
    await accessible(tab, "written");
    await shot(tab, `${name}-join-written`, { fullPage: true });
    // What is dropped or picked is in place of it.
    const drop = (called, text) => tab.evaluate((file, content) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([content], file));
      document.getElementById("choosing").dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
    }, called, text);
    await drop("mine.tsv", "energy\tgas\nenergy\toil\ntravel\ta train\n");
    await found(/^3 examples in mine\.tsv/);
    assert.equal(await tab.$eval("#writing", (e) => e.hidden), true);
    for (const [called, sentence] of [["letter.PDF", /copy its text and paste it here/], ["notes.docx", /copy its text and paste it here/], ["book.xlsx", /copy its cells and paste them here/], ["IMG_1.HEIC", /export it as JPEG first/]]) {
      writeFileSync(join(dir, called), "x");
      await tab.$eval("#file", (e) => { e.value = ""; });
      await (await tab.$("#file")).uploadFile(join(dir, called));
      await until(called, async () => (await state()).startsWith(called) && sentence.test(await state()), state);
      assert.ok(await tab.$eval("#join", (b) => b.disabled));
    }
    assert.deepEqual(faults.filter((f) => !/404|Failed to load/.test(f)), []);
  });
}

const talks = { ...about, task: "causal", full: true, labels: [], private: false, protects: undefined, delivered: undefined };

for (const name of names) {
  test(`${name} takes conversations and prompts as they are, and asks for no column`, { timeout: 240_000 }, async (t) => {
    const address = await serve(t, (_, response, path) => {
      if (path === "/v1/job") return response.end(JSON.stringify(talks)), true;
      if (path === "/v1/status") return response.end(JSON.stringify({ private: false, state: "waiting", round: 0, version: 0, rounds: 12 })), true;
      return false;
    });
    const dir = mkdtempSync(join(tmpdir(), "starling-talks-"));
    t.after(() => rmSync(dir, { recursive: true, force: true }));
    const { tab, faults } = await openTab(await open(t, name), address);
    await until("the question for data", () => tab.$eval("#choosing", (e) => !e.hidden), () => textOf(tab, "body"));
    const row = (asked, said) => ({ user: "ann", messages: [{ role: "system", content: "be brief" }, { role: "user", content: asked }, { role: "assistant", content: said }] });
    for (const [called, rows, shows] of [["talks.jsonl", [row("lamp on", "light_on()"), row("fan off", "fan_off()")], /lamp on → light_on\(\)/],
      ["prompts.jsonl", [{ user: "ann", prompt: "lamp on", completion: "done" }, { user: "ann", prompt: "fan on", completion: "done" }], /lamp on → done/]]) {
      writeFileSync(join(dir, called), rows.map((r) => `${JSON.stringify(r)}\n`).join(""));
      await tab.$eval("#file", (e) => { e.value = ""; });
      await (await tab.$("#file")).uploadFile(join(dir, called));
      await until(called, async () => (await textOf(tab, "#data-state")) === `2 texts in ${called}`, () => textOf(tab, "#data-state"));
      await until(`rows of ${called}`, async () => shows.test(await textOf(tab, "#rows")), () => textOf(tab, "#rows"));
      assert.ok(await tab.$eval("#columns", (e) => e.hidden), "a column is asked for");
    }
    assert.deepEqual(faults.filter((f) => !/404|Failed to load/.test(f)), []);
  });
}
