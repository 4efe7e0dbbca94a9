// Jobs that learn something else than a label of a text, beside native edges: pictures
// that are picked, words that have labels, answers that stand in documents. Each model
// is tried in the page when the job has ended.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { accessible } from "./axe.mjs";
import { names } from "./browsers.mjs";
import { choose, fleet, open, openTab, shot, textOf, until } from "./fleet.mjs";
import { noise, png, vit } from "./images.mjs";
import { llama } from "./writers.mjs";

const classes = ["bright", "dark"];
const side = 8;

/** The picture of a number: bright ones for even numbers. */
function drawn(i) {
  const next = noise(i);
  return Array.from({ length: side * side * 3 }, () => (next() >> 1) + (i % 2 ? 0 : 120));
}

/** Folders of PNG files, one folder a class. */
async function pictures(dir, devices) {
  vit(join(dir, "vit"));
  const folder = (name, from, n) => {
    for (const c of classes) mkdirSync(join(dir, name, c), { recursive: true });
    for (let i = from; i < from + n; i++) writeFileSync(join(dir, name, classes[i % 2], `${i}.png`), png(side, side, 3, drawn(i)));
    return join(dir, name);
  };
  return {
    files: Array.from({ length: devices }, (_, i) => folder(`device ${i}`, 100 * i, 12)), validation: folder("validation", 5000, 20),
    keys: "task: image\nbase: vit\nlabels: [bright, dark]",
  };
}

/** Waits until the page has come to the job's end. */
async function ended(tab, job) {
  await until("the browser to finish", async () => {
    const state = await textOf(tab, "#state");
    if (/did not work/.test(state)) throw new Error(state);
    return /^Finished/.test(state);
  }, () => job.story(tab, "body"), 200_000);
  assert.match(await textOf(tab, "#state"), /took part in 2 rounds/); // no round is made without it
  assert.equal((await job.result()).rounds, 2);
}

const said = (tab) => textOf(tab, "#try-state");

/** The bytes of the previewed pictures, by their labels. */
const previewed = (tab) => tab.$$eval("#rows tr", (rows) => rows.map((r) => {
  const canvas = r.querySelector("canvas");
  return [r.querySelector("td").textContent, [...canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data]];
}));

for (const name of names) {
  test(`${name} trains on pictures that are picked, class by class`, { timeout: 400_000 }, async (t) => {
    const job = await fleet(t, { made: pictures, floor: 4 });
    const browser = await open(t, name);
    const { tab, faults } = await openTab(browser, job.page);
    await until("the promise", async () => /ε/.test(await textOf(tab, "#given")), () => job.story(tab, "body"));
    assert.match(await textOf(tab, "#summary"), /sort pictures into 2 classes/);
    const input = await tab.$("#file");
    // What the browser does not open is named; nothing of the pick is taken.
    const broken = join(job.dir, "broken.png");
    writeFileSync(broken, "no picture");
    await input.uploadFile(broken, join(job.own, "dark", "301.png"));
    await until("the refusal", async () => /does not read broken\.png as a picture/.test(await textOf(tab, "#data-state")), () => textOf(tab, "#data-state"));
    const pick = async (label, files) => {
      await tab.$eval("#file", (e) => { e.value = ""; }); // as a click does
      await input.uploadFile(...files);
      await until("the question", () => tab.$eval("#naming", (e) => !e.hidden), () => textOf(tab, "#data-state"));
      assert.match(await textOf(tab, "#naming-text"), new RegExp(`^${files.length} pictures: what do they show`));
      await accessible(tab, "what pictures show");
      assert.ok(await tab.$eval("#naming", (e) => {
        const button = e.querySelector("button"), { left, top, width, height } = button.getBoundingClientRect();
        return document.elementFromPoint(left + width / 2, top + height / 2) === button;
      }), "the question lies below the bar");
      await shot(tab, `${name}-join-naming`);
      await tab.select("#naming-label", label);
      await tab.click("#naming-form button");
      await until("the pictures", async () => !(await tab.$eval("#join", (b) => b.disabled)), () => textOf(tab, "#data-state"));
    };
    const own = (i) => join(job.own, classes[i % 2], `${i}.png`);
    await pick("bright", [300, 302, 304].map(own));
    assert.match(await textOf(tab, "#data-state"), /^3 pictures: bright × 3$/);
    await pick("dark", [301, 303].map(own));
    assert.match(await textOf(tab, "#data-state"), /^5 pictures: bright × 3, dark × 2$/);
    // What is shown is what a device reads: the file's own numbers.
    const shown = await previewed(tab);
    for (const [label, i] of [["bright", 300], ["dark", 301]]) {
      const opaque = drawn(i).flatMap((v, k) => k % 3 === 2 ? [v, 255] : [v]);
      assert.deepEqual(shown.find(([l]) => l === label)?.[1], opaque, `pixels of ${i}`);
    }
    await accessible(tab, "pictures");
    await shot(tab, `${name}-join-pictures`, { fullPage: true });
    job.joinNatives();
    await tab.click("#join");
    await ended(tab, job);
    await until("the model", () => tab.$eval("#trained", (e) => !e.hidden), () => job.story(tab, "body"));
    const trial = await tab.$("#try-picture");
    await trial.uploadFile(own(302));
    await until("a label", async () => /^Most likely (bright|dark), [\d.]+%$/.test(await said(tab)), () => said(tab));
    assert.equal((await tab.$$("#try-result li:not(.heads)")).length, 2);
    assert.equal(await textOf(tab, "#try-base"), "Before this job its base could not tell: every label had 50.0%.");
    assert.ok(await tab.$eval("#try-shown", (c) => !c.hidden && c.width === 8), "the picture is not shown");
    await trial.uploadFile(broken);
    await until("the refusal", async () => /^This browser does not read broken\.png as a picture/.test(await said(tab)), () => said(tab));
    await accessible(tab, "a picture tried");
    await shot(tab, `${name}-join-picture-tried`, { fullPage: true });
    assert.deepEqual(faults.filter((f) => !/ERR_CONNECTION|NetworkError|Failed to load/.test(f)), []);
  });
}

test("a folder's pictures have the names of its folders, and digits a sample", { timeout: 240_000 }, async (t) => {
  const job = await fleet(t, { made: pictures });
  const browser = await open(t, "chrome");
  const { tab } = await openTab(browser, job.page);
  await until("the promise", async () => /ε/.test(await textOf(tab, "#given")), () => job.story(tab, "body"));
  assert.ok(await tab.$eval("#sample", (b) => b.hidden), "digits are offered to a job of other classes");
  writeFileSync(join(job.own, "dark", "notes.txt"), "no picture");
  const input = await tab.$("#folder");
  await input.uploadFile(job.own);
  await until("the pictures", async () => !(await tab.$eval("#join", (b) => b.disabled)), () => textOf(tab, "#data-state"));
  assert.match(await textOf(tab, "#data-state"), /^12 pictures in device 3: (bright × 6, dark × 6|dark × 6, bright × 6)$/);
  assert.match(await textOf(tab, "#left-out"), /^1 file is no picture/);
  await tab.click("#pictures-forget");
  await until("nothing", () => tab.$eval("#join", (b) => b.disabled));
  await input.uploadFile(join(job.dir, "vit"));
  await until("the refusal", async () => /No pictures are among these files/.test(await textOf(tab, "#data-state")), () => textOf(tab, "#data-state"));
  await tab.setRequestInterception(true);
  tab.on("request", async (request) => {
    if (!request.url().endsWith("/v1/job")) return request.continue();
    const about = await (await fetch(new URL("v1/job", job.page))).json();
    await request.respond({ contentType: "application/json", body: JSON.stringify({ ...about, labels: [..."0123456789"] }) });
  });
  await tab.reload();
  await until("the sample", () => tab.$eval("#sample", (b) => !b.hidden));
  await tab.click("#sample");
  await until("the digits", async () => /^96 pictures in sample-\d+\.csv: /.test(await textOf(tab, "#data-state")), () => textOf(tab, "#data-state"));
  assert.ok((await previewed(tab)).every(([label, pixels]) => /^\d$/.test(label) && pixels.length === 4 * side * side));
  await until("Join", async () => !(await tab.$eval("#join", (b) => b.disabled)), () => textOf(tab, "#data-state"));
  await shot(tab, "chrome-join-digits", { fullPage: true });
});

/** Documents with a total that is asked for, and texts whose prices have a label: lines of JSON. */
function documents(i) {
  return Array.from({ length: 12 }, (_, k) => {
    const total = `${3 + i}${k}.00`;
    return JSON.stringify({ words: ["shop", "total", total, "thanks"], boxes: [[1, 1, 90, 20], [1, 50, 80, 70], [100, 50, 180, 70], [1, 90, 90, 99]],
      question: "total", answers: [total] });
  });
}
const tagged = (i) => Array.from({ length: 12 }, (_, k) => JSON.stringify({ words: ["invoice", "over", `${3 + i}${k}`, "EUR"], tags: ["O", "O", "price", "O"] }));
const plain = (i) => Array.from({ length: 12 }, (_, k) => JSON.stringify({ text: `a shop in street ${i}${k}, open all day` }));

/** Files of lines for each device. */
const lines = (make, keys) => async (dir, devices) => {
  const file = (name, i) => {
    writeFileSync(join(dir, name), `${make(i).join("\n")}\n`);
    return join(dir, name);
  };
  return { files: Array.from({ length: devices }, (_, i) => file(`device-${i}.jsonl`, i)), validation: file("validation.jsonl", 90), keys };
};

for (const name of names) {
  test(`${name} trains on documents and questions, and on words with labels`, { timeout: 900_000 }, async (t) => {
    const browser = await open(t, name);
    const tasks = [
      { task: "span", made: lines(documents, "task: span"), row: /^3\d\.00|^6\d\.00/, state: /^12 questions in device-3\.jsonl$/,
        text: "shop total 41.00 thanks", question: "total", verdict: /^(Most likely “.+”, [\d.]+%|It finds no answer)/, wrong: /This holds words with a label each; the job trains on questions/ },
      { task: "pretrain", made: lines(plain, "task: pretrain"), flags: ["--unlabelled"], row: /^a shop in street 3\d/, state: /^12 texts in device-3\.jsonl$/,
        wrong: /"words" must be a string/ },
      { task: "answer", made: lines(documents, "task: answer"), row: /^3\d\.00|^6\d\.00/, state: /^12 questions in device-3\.jsonl$/,
        text: "shop total 41.00 thanks", question: "total", verdict: /^(Most likely “.+”, [\d.]+%|It finds no answer)/, writes: true,
        wrong: /This holds words with a label each; the job trains on questions/ },
      { task: "causal", made: (dir, devices) => { llama(join(dir, "llama")); return lines(plain, "task: causal\nbase: llama")(dir, devices); }, flags: ["--unlabelled"], row: /^a shop in street 3\d/, state: /^12 texts in device-3\.jsonl$/,
        text: "a shop", verdict: /^Written: the likeliest each time/, writes: true, wrong: /"words" must be a string/ },
      { task: "tag", made: lines(tagged, "task: tag\nlabels: [O, price]"), row: /invoice\u2009\[O\] .*\[price\]/, state: /^12 texts in device-3\.jsonl: O × 36, price × 12$/,
        text: "over 41 EUR", verdict: /^3 words, each with its likeliest label$/, wrong: /This holds questions about documents; the job trains on words with a label each/ },
    ];
    for (const { task, made, flags = [], row, state, text, question, verdict, writes, wrong } of tasks) {
      const job = await fleet(t, { made, floor: 4, sequence: 24, serveFlags: flags, nativeFlags: flags });
      const { tab, faults } = await openTab(browser, job.page);
      await until("the promise", async () => /ε/.test(await textOf(tab, "#given")), () => job.story(tab, "body"));
      const other = join(job.dir, "other.jsonl");
      writeFileSync(other, (task === "span" || task === "answer" ? tagged : documents)(1).join("\n"));
      const input = await tab.$("#file");
      await input.uploadFile(other);
      await until("the refusal", async () => wrong.test(await textOf(tab, "#data-state")), () => textOf(tab, "#data-state"));
      await tab.$eval("#file", (e) => { e.value = ""; }); // as a click does
      if (task === "answer") { // a page's picture is a file of its own, which nobody picked
        const pages = join(job.dir, "pages.jsonl");
        writeFileSync(pages, JSON.stringify({ words: ["shop"], question: "total", answers: ["41.00"], image: "pages/1.png" }));
        await input.uploadFile(pages);
        await until("the refusal", async () => /a browser does not open: take part with starling join/.test(await textOf(tab, "#data-state")), () => textOf(tab, "#data-state"));
        await tab.$eval("#file", (e) => { e.value = ""; });
      }
      await choose(tab, job.own);
      assert.match(await textOf(tab, "#data-state"), state);
      assert.match(await textOf(tab, "#rows"), row);
      await accessible(tab, task);
      await shot(tab, `${name}-join-${task}`, { fullPage: true });
      job.joinNatives();
      await tab.click("#join");
      await ended(tab, job);
      if (!verdict) {
        assert.ok(await tab.$eval("#trained", (e) => e.hidden), "a model without answers is to be tried");
        await until("the sentence", async () => /no use for its model by itself/.test(await textOf(tab, "#sentence")));
        await tab.close();
        continue;
      }
      await until("the model", () => tab.$eval("#trained", (e) => !e.hidden), () => job.story(tab, "body"));
      await tab.type("#try-text", text);
      if (question) await tab.type("#try-question", question);
      await tab.click("#try-button");
      await until("an answer", async () => verdict.test(await said(tab)), () => said(tab));
      if (task === "tag") assert.match(await textOf(tab, "#try-result"), /^nowbeforeover (O|price)[\d.]+%50\.0%41 (O|price)/);
      if (writes) {
        // Both write, the one that has learnt and its base, and can be stopped.
        if (task === "causal") assert.match(await textOf(tab, "#try-result"), /^With what was learnt.+Before this job.+/s);
        assert.ok(await tab.$eval("#try-stop", (b) => b.hidden));
        await tab.$eval("#try-button", (b) => b.click());
        await until("its first words", async () => (await tab.$("#try-result .written span")) !== null || verdict.test(await said(tab)));
        await tab.$eval("#try-stop", (b) => b.click());
        await until("its end", async () => /^Stopped\.$/.test(await said(tab)) || verdict.test(await said(tab)), () => said(tab));
        await until("the button", () => tab.$eval("#try-button", (b) => !b.disabled), () => said(tab));
        // What was stopped does not stand in the way of the next.
        await tab.click("#try-button");
        await until("an answer again", async () => verdict.test(await said(tab)), () => said(tab));
      }
      if (task !== "causal") assert.match(await textOf(tab, "#try-base"), task === "tag" ? /^Before this job its base could not tell: every label had 50\.0%\.$/ : /^Before this job its base (would have said “.+”|found no answer)/);
      await accessible(tab, `${task} tried`);
      await shot(tab, `${name}-join-${task}-tried`, { fullPage: true });
      assert.deepEqual(faults.filter((f) => !/ERR_CONNECTION|NetworkError|Failed to load/.test(f)), []);
      await tab.close();
    }
  });
}
