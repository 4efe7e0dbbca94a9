// A job of recordings beside native edges: files that are picked, folder by folder or of one
// word at a time, and words that are said into the browser's own invented microphone.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { accessible } from "./axe.mjs";
import { inDark, names } from "./browsers.mjs";
import { fleet, open, openTab, shot, textOf, until } from "./fleet.mjs";
import { flac, recordings, said, transcripts, wav } from "./voices.mjs";

const state = (tab) => textOf(tab, "#data-state");
const ready = (tab) => until("the recordings", async () => !(await tab.$eval("#join", (b) => b.disabled)), () => state(tab));
const quiet = (faults) => assert.deepEqual(faults.filter((f) => !/ERR_CONNECTION|NetworkError|Failed to load/.test(f)), []);

async function page(job, browser) {
  const opened = await openTab(browser, job.page);
  await until("the promise", async () => /ε/.test(await textOf(opened.tab, "#given")), () => job.story(opened.tab, "body"));
  return opened;
}

/** Waits until the page has come to the job's end. */
async function ended(tab, job) {
  await until("the browser to finish", async () => {
    const now = await textOf(tab, "#state");
    if (/did not work/.test(now)) throw new Error(now);
    return /^Finished/.test(now);
  }, () => job.story(tab, "body"), 200_000);
  assert.match(await textOf(tab, "#state"), /took part in 2 rounds/); // no round is made without it
  assert.equal((await job.result()).rounds, 2);
  await until("the model", () => tab.$eval("#trained", (e) => !e.hidden), () => job.story(tab, "body"));
}

for (const name of names) {
  test(`${name} trains on recordings that are picked`, { timeout: 400_000 }, async (t) => {
    const job = await fleet(t, { made: recordings(), floor: 4, sequence: 24 });
    const browser = await open(t, name);
    const { tab, faults, requests } = await page(job, browser);
    assert.match(await textOf(tab, "#summary"), /sort recordings into 2 classes/);
    const input = await tab.$("#file");
    const refused = async (files, reason) => {
      await tab.$eval("#file", (e) => { e.value = ""; }); // as a click does
      await input.uploadFile(...files);
      await until("question or refusal", async () => !(await tab.$eval("#naming", (e) => e.hidden)) || reason.test(await state(tab)), () => state(tab));
      if (!(await tab.$eval("#naming", (e) => e.hidden))) {
        await tab.select("#naming-label", "low");
        await tab.click("#naming-form button");
      }
      await until(`the refusal ${reason}`, async () => reason.test(await state(tab)), () => state(tab));
      assert.ok(await tab.$eval("#join", (b) => b.disabled));
      await tab.click("#pictures-forget").catch(() => undefined); // nothing was taken yet
    };
    const file = (title, content) => {
      const at = join(job.dir, title);
      writeFileSync(at, content);
      return at;
    };
    await refused([file("song.mid", "no recording")], /No recordings are among these files: want \.wav, \.flac, \.mp3, \.m4a, \.ogg or \.opus/);
    await refused([file("broken.mp3", "ID3")], /broken\.mp3/);
    await refused([file("broken.wav", "RIFF")], /^broken\.wav: neither WAV/);
    await refused([file("mute.wav", wav(new Array(8000).fill(0), 8000))], /mute\.wav: .*nothing is heard: was the microphone muted/);
    await refused([file("click.wav", said(1, 0.01))], /click\.wav lasts 0\.01 sec, and this job's model hears nothing shorter than 0\.021 sec: leave it out/);
    const own = (i) => join(job.own, ["high", "low"][i % 2], `${i}.wav`);
    const pick = async (label, files) => {
      await tab.$eval("#file", (e) => { e.value = ""; });
      await input.uploadFile(...files);
      await until("the question", () => tab.$eval("#naming", (e) => !e.hidden), () => state(tab));
      assert.match(await textOf(tab, "#naming-text"), new RegExp(`^${files.length} recordings?: what is heard in (it|them)\\?$`));
      await tab.select("#naming-label", label);
      await tab.click("#naming-form button");
      await ready(tab);
    };
    await pick("high", [file("long.wav", said(2, 1.5))]);
    assert.match(await textOf(tab, "#cut"), /^Of each recording the model hears the first 0\.4\d? sec: the longest, long\.wav, lasts 1\.5 sec\. What comes later is not learnt from\.$/);
    await tab.click("#pictures-forget");
    await until("nothing", () => tab.$eval("#join", (b) => b.disabled));
    await pick("high", [300, 302, 304].map(own));
    await until("three recordings", async () => /^3 recordings: high × 3$/.test(await state(tab)), () => state(tab));
    assert.equal(await textOf(tab, "#cut"), "");
    const tone = flac(Array.from({ length: 8000 }, (_, i) => 0.5 * Math.sin(i / 9)), 16_000);
    await pick("low", [own(301), file("tone.flac", tone)]);
    await until("five recordings", async () => /^5 recordings: high × 3, low × 2$/.test(await state(tab)), () => state(tab));
    await ready(tab);
    assert.deepEqual(await tab.$$eval("#rows tr", (rows) => rows.map((r) => r.textContent)), ["high0.5 sec", "low0.5 sec", "low0.5 sec"]);
    assert.equal((await tab.$$("#rows svg.wave rect")).length, 3 * 96);
    await accessible(tab, "recordings");
    await inDark(tab, () => accessible(tab, "recordings, dark"));
    await shot(tab, `${name}-join-recordings`, { fullPage: true });
    job.joinNatives();
    await tab.click("#join");
    await ended(tab, job);
    const trial = await tab.$("#try-sound");
    const verdict = () => textOf(tab, "#try-state");
    await trial.uploadFile(own(302));
    await until("a label", async () => /^Most likely (high|low), [\d.]+%$/.test(await verdict()), verdict);
    assert.equal((await tab.$$("#try-result li:not(.heads)")).length, 2);
    // The base beside it has not learnt these words.
    assert.equal(await textOf(tab, "#try-base"), "Before this job its base could not tell: every label had 50.0%.");
    assert.deepEqual(await tab.$$eval("#try-result li:not(.heads)", (rows) => rows.map((r) => r.lastElementChild.textContent)), ["50.0%", "50.0%"]);
    assert.notEqual(await tab.$eval("#try-result meter", (m) => m.value), 0.5, "nothing was gained");
    await until("the recording", () => tab.$("#try-heard svg"));
    await trial.uploadFile(join(job.dir, "broken.wav"));
    await until("the refusal", async () => /the recording: neither WAV/.test(await verdict()), verdict);
    await trial.uploadFile(own(301));
    await until("a label again", async () => /^Most likely/.test(await verdict()), verdict);
    await accessible(tab, "a recording tried");
    await shot(tab, `${name}-join-recording-tried`, { fullPage: true });
    quiet(faults);
    const origin = new URL(job.page).origin;
    assert.deepEqual(requests.filter((r) => new URL(r).origin !== origin && !/^(blob|data|moz-extension):/.test(r)), [], "requests elsewhere");
  });
}

test("a folder's recordings have the names of its folders, and generated words are a sample", { timeout: 240_000 }, async (t) => {
  const job = await fleet(t, { made: recordings(), sequence: 24 });
  const browser = await open(t, "chrome");
  const { tab } = await page(job, browser);
  assert.ok(await tab.$eval("#sample", (b) => b.hidden), "generated words are offered to a job of others");
  writeFileSync(join(job.own, "low", "notes.txt"), "no recording");
  mkdirSync(join(job.own, "_background_noise_"));
  writeFileSync(join(job.own, "_background_noise_", "hum.wav"), said(9));
  const input = await tab.$("#folder");
  await input.uploadFile(job.own);
  await ready(tab);
  assert.match(await state(tab), /^12 recordings in device 3: (high × 6, low × 6|low × 6, high × 6)$/);
  assert.match(await textOf(tab, "#left-out"), /^2 files are no recordings/);
  await tab.click("#pictures-forget");
  await until("nothing", () => tab.$eval("#join", (b) => b.disabled));
  await tab.setRequestInterception(true);
  const spoken = ["asa", "eha", "hemo", "ima", "misu", "ose", "sami", "sime", "uhi", "umo"];
  tab.on("request", async (request) => {
    if (!request.url().endsWith("/v1/job")) return request.continue();
    const about = await (await fetch(new URL("v1/job", job.page))).json();
    await request.respond({ contentType: "application/json", body: JSON.stringify({ ...about, labels: spoken }) });
  });
  await tab.reload();
  await until("the sample", () => tab.$eval("#sample", (b) => !b.hidden));
  await tab.click("#sample");
  await until("the words", async () => /^40 recordings in sample-\d+: /.test(await state(tab)), () => state(tab));
  await ready(tab);
  assert.equal((await tab.$$("#rows svg.wave")).length, 5);
  await shot(tab, "chrome-join-spoken", { fullPage: true });
});

test("recordings with what is said in them are transcribed", { timeout: 400_000 }, async (t) => {
  const job = await fleet(t, { made: transcripts, floor: 4, sequence: 26 });
  const browser = await open(t, "chrome");
  const { tab, faults } = await page(job, browser);
  assert.match(await textOf(tab, "#summary"), /write down what is said/);
  const own = (i) => join(job.dir, "device-3", `${i}.wav`), input = await tab.$("#file");
  const file = (title, content) => {
    writeFileSync(join(job.dir, title), content);
    return join(job.dir, title);
  };
  const refused = async (files, reason) => {
    await tab.$eval("#file", (e) => { e.value = ""; });
    await input.uploadFile(...files);
    await until(`the refusal ${reason}`, async () => reason.test(await state(tab)), () => state(tab));
    assert.ok(await tab.$eval("#join", (b) => b.disabled));
  };
  await refused([own(300)], /^Nothing says what is said in 300\.wav/);
  await refused([own(300), file("said.jsonl", '{"audio": "300.wav", "text": 7}\n')], /^said\.jsonl, line 1: want "audio" and "text"/);
  await refused([file("long.wav", said(1, 2)), file("long.txt", "low\n")], /^long\.wav lasts 2 sec, and the model hears 0\.5\d? sec at most: cut it, with its text/);
  await tab.click("#pictures-forget");
  await tab.$eval("#file", (e) => { e.value = ""; });
  await input.uploadFile(...Array.from({ length: 11 }, (_, k) => own(300 + k)), job.own, own(311), file("311.txt", " low\n"));
  await ready(tab);
  assert.match(await state(tab), /^12 recordings$/);
  assert.deepEqual(await tab.$$eval("#rows tr td:first-child", (cells) => cells.map((c) => c.textContent)), ["high", "low", "high", "low", "high"]);
  await accessible(tab, "transcripts");
  await shot(tab, "chrome-join-transcripts", { fullPage: true });
  job.joinNatives();
  await tab.click("#join");
  await ended(tab, job);
  await (await tab.$("#try-sound")).uploadFile(own(302));
  const verdict = () => textOf(tab, "#try-state");
  await until("a text", async () => /^(Most likely “[ghilow ]+”, [\d.]+%|It hears no words)/.test(await verdict()), verdict);
  assert.match(await textOf(tab, "#try-base"), /^Before this job its base (would have said “.+”, [\d.]+%|recognised no words)\.$/);
  await shot(tab, "chrome-join-transcript-tried", { fullPage: true });
  quiet(faults);
});
