// Words that are said into the browsers' own invented microphones: kept, heard again,
// deleted and learnt from; and what a page says where there is nothing to hear.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { accessible } from "./axe.mjs";
import { inDark, names } from "./browsers.mjs";
import { fleet, open, shot, textOf, until } from "./fleet.mjs";
import { recordings, transcripts, wav } from "./voices.mjs";

const dir = mkdtempSync(join(tmpdir(), "starling-microphone-"));
after(() => rmSync(dir, { recursive: true, force: true }));

/** What a microphone hears, for Chromium: a file that it plays again and again. */
function heard(name, sample) {
  const at = join(dir, `${name}.wav`);
  writeFileSync(at, wav(Array.from({ length: 48_000 }, (_, i) => sample(i)), 48_000));
  return at;
}
const tone = heard("tone", (i) => 0.4 * Math.sin(2 * Math.PI * 440 * i / 48_000));
const silence = heard("silence", () => 0);

const microphone = (file, ...flags) => ({
  flags: ["--use-fake-device-for-media-stream", `--use-file-for-fake-audio-capture=${file}`, "--autoplay-policy=no-user-gesture-required",
    ...(flags.length ? flags : ["--use-fake-ui-for-media-stream"])],
  preferences: { "media.navigator.streams.fake": true, "media.navigator.permission.disabled": true },
});

/** A sound server with loudspeakers that nobody hears: Firefox listens to no microphone where there are none. */
async function loudspeakers(t) {
  const socket = join(dir, `sound-${process.pid}`);
  const server = spawn(process.env.PULSEAUDIO || "/usr/bin/pulseaudio", ["-n", "--daemonize=no", "--use-pid-file=no", "--exit-idle-time=-1", "--disable-shm=yes",
    "--load=module-null-sink", `--load=module-native-protocol-unix auth-anonymous=1 socket=${socket}`],
  { stdio: "ignore", env: { ...process.env, XDG_RUNTIME_DIR: dir, HOME: dir } });
  const over = new Promise((resolve) => server.on("close", resolve).on("error", resolve));
  t.after(() => {
    server.kill("SIGKILL");
    return over;
  });
  await until("the sound server", () => existsSync(socket));
  return { PULSE_SERVER: `unix:${socket}` };
}

/** A tab that counts what the page does with microphones and loudspeakers. */
async function page(job, browser, before = () => undefined) {
  const tab = await browser.newPage(), faults = [], requests = [];
  await tab.setViewport({ width: 390, height: 844 });
  tab.on("pageerror", (error) => faults.push(String(error)));
  tab.on("request", (request) => requests.push(request));
  await tab.evaluateOnNewDocument(() => {
    globalThis.asked = [];
    globalThis.played = 0;
    if (!navigator.mediaDevices) return;
    const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    navigator.mediaDevices.getUserMedia = async (of) => {
      const stream = ask(of);
      globalThis.asked.push(stream);
      return stream;
    };
    const start = AudioBufferSourceNode.prototype.start;
    AudioBufferSourceNode.prototype.start = function (...at) {
      globalThis.played++;
      return start.apply(this, at);
    };
  });
  await tab.evaluateOnNewDocument(before);
  await tab.goto(job.page);
  await until("the promise", async () => /ε/.test(await textOf(tab, "#given")), () => job.story(tab, "body"));
  return { tab, faults, requests };
}

const told = (tab) => textOf(tab, "#microphone-told");
const shownHere = (tab, id) => tab.$eval(id, (e) => !e.hidden && e.getClientRects().length > 0);
const focused = (tab) => tab.evaluate(() => document.activeElement?.id);
const tracks = (tab) => tab.evaluate(async () => (await Promise.all(globalThis.asked)).flatMap((s) => s.getTracks()).map((t) => t.readyState));
const opened = (tab) => until("the microphone", async () => {
  if (/\S/.test(await textOf(tab, "#microphone-state")) && await tab.$eval("#microphone-state", (e) => e.classList.contains("failed"))) throw new Error(await textOf(tab, "#microphone-state"));
  return shownHere(tab, "#microphone");
}, () => textOf(tab, "#microphone-state"));

/** Presses a button by the keyboard: a click on one below the bar with Join would not reach it. */
async function press(tab, button) {
  await tab.focus(button);
  await tab.keyboard.press("Enter");
}

/** Records what is asked for. */
async function record(tab) {
  const word = (await textOf(tab, "#microphone-word")).replace("Say ", ""), clips = (await tab.$$("#microphone-clips li")).length;
  await press(tab, "#microphone-record");
  await until(`${word} to be recorded`, async () => {
    if (await tab.$eval("#microphone-told", (e) => e.classList.contains("failed"))) throw new Error(await told(tab));
    return (await tab.$$("#microphone-clips li")).length === clips + 1 && (await told(tab)) === `Recorded ${word}.`;
  }, () => told(tab));
  return word;
}

for (const name of names) {
  test(`${name} trains on what is said into its microphone`, { timeout: 500_000 }, async (t) => {
    const job = await fleet(t, { made: recordings(), floor: 4, sequence: 24 });
    const env = name === "firefox" ? await loudspeakers(t) : {};
    const browser = await open(t, name, { ...microphone(tone), env });
    const { tab, faults, requests } = await page(job, browser);
    assert.equal(await tab.evaluate(() => globalThis.asked.length), 0, "the microphone was asked for before anybody wanted it");
    assert.ok(!(await shownHere(tab, "#microphone")));
    assert.ok(!requests.some((r) => /recorder-/.test(r.url())), "what records was loaded before anybody wanted it");
    await press(tab, "#microphone-open");
    await opened(tab);
    assert.equal(await tab.evaluate(() => globalThis.asked.length), 1);
    await until("the focus", async () => await focused(tab) === "microphone-record", () => focused(tab));
    await until("the meter to move", () => tab.$eval("#microphone-level", (m) => m.value > 0.02));
    assert.ok(await tab.$eval("#join", (b) => b.disabled), "Join without data");
    // The word that was said the least comes next; its row says how often.
    assert.deepEqual([await record(tab), await record(tab), await record(tab)], ["“high”", "“low”", "“high”"]);
    assert.equal(await textOf(tab, "#microphone-label"), "high (2)low (1)");
    await until("the recordings", async () => /^3 recordings: high × 2, low × 1$/.test(await textOf(tab, "#data-state")), () => textOf(tab, "#data-state"));
    assert.ok(await tab.$eval("#preview", (e) => e.hidden), "the clips stand there twice");
    // As long as a row of the job has room for, of the microphone's own rate: 24 frames are 3,850 samples at 8,000 a second.
    assert.match(await textOf(tab, "#microphone-clips"), /^high0\.5 secPlayDelete/);
    await press(tab, "#microphone-clips li:nth-child(2) button");
    await until("the clip to be played", () => tab.evaluate(() => globalThis.played === 1));
    await accessible(tab, "the microphone");
    await inDark(tab, () => accessible(tab, "the microphone, dark"));
    assert.ok(await tab.evaluate(() => document.scrollingElement.scrollWidth <= innerWidth), "wider than a phone");
    await shot(tab, `${name}-join-microphone`, { fullPage: true });
    // Deleted before anything is learnt, by the keyboard, which goes on from there.
    await press(tab, "#microphone-clips li:nth-child(3) button:last-child");
    assert.equal(await textOf(tab, "#microphone-label"), "high (1)low (1)");
    assert.match(await told(tab), /^Deleted high 1\.$/);
    assert.equal(await tab.evaluate(() => document.activeElement?.getAttribute("aria-label")), "Delete: low 2");
    await until("the rest", async () => /^2 recordings: /.test(await textOf(tab, "#data-state")), () => textOf(tab, "#data-state"));
    // Closed, the light goes out; opened again, what was recorded is still there.
    await press(tab, "#microphone-close");
    assert.deepEqual(await tracks(tab), ["ended"]);
    assert.equal((await tab.$$("#microphone-clips li")).length, 2);
    await press(tab, "#microphone-open");
    await opened(tab);
    await until("the microphone again", () => shownHere(tab, "#microphone-record"));
    await record(tab);
    await until("all of it", async () => /^3 recordings: /.test(await textOf(tab, "#data-state")) && !(await tab.$eval("#join", (b) => b.disabled)), () => textOf(tab, "#data-state"));
    job.joinNatives();
    await tab.click("#join");
    assert.deepEqual(await tracks(tab), ["ended", "ended"], "the microphone is open while nothing is recorded");
    await until("the browser to finish", async () => {
      const now = await textOf(tab, "#state");
      if (/did not work/.test(now)) throw new Error(now);
      return /^Finished/.test(now);
    }, () => job.story(tab, "body"), 200_000);
    assert.match(await textOf(tab, "#state"), /took part in 2 rounds/);
    assert.equal((await job.result()).rounds, 2);
    await until("the model", () => tab.$eval("#trained", (e) => !e.hidden), () => job.story(tab, "body"));
    await press(tab, "#try-say");
    await until("a label", async () => /^Most likely (high|low), [\d.]+%$/.test(await textOf(tab, "#try-state")), () => textOf(tab, "#try-state"));
    await until("what was said", () => tab.$("#try-heard svg"));
    assert.deepEqual(await tracks(tab), ["ended", "ended", "ended"]);
    assert.deepEqual(faults, []);
    // Recordings go nowhere: nothing but questions left the page beside the device's socket.
    const origin = new URL(job.page).origin;
    assert.deepEqual(requests.filter((r) => r.method() !== "GET" || new URL(r.url()).origin !== origin && !/^(blob|data|moz-extension):/.test(r.url())).map((r) => r.url()), []);
  });
}

for (const name of names) {
  test(`${name} learns to write down what is said into its microphone`, { timeout: 500_000 }, async (t) => {
    const job = await fleet(t, { made: transcripts, floor: 4, sequence: 26 });
    const env = name === "firefox" ? await loudspeakers(t) : {};
    const { tab, faults } = await page(job, await open(t, name, { ...microphone(tone), env }));
    const heading = (n) => until(`${n} recordings`, async () => new RegExp(`^${n} recordings?$`).test(await textOf(tab, "#data-state")), () => job.story(tab, "#data-state"));
    await press(tab, "#microphone-open");
    await opened(tab);
    await until("the meter to move", () => tab.$eval("#microphone-level", (m) => m.value > 0.02));
    /** Says something, and writes what it was where the focus has gone. */
    const say = async (text) => {
      const clips = (await tab.$$("#microphone-clips li")).length;
      await press(tab, "#microphone-record");
      await until("a clip", async () => (await tab.$$("#microphone-clips li")).length === clips + 1, () => told(tab));
      assert.match(await told(tab), /^Recorded\. Write down what you said/);
      assert.equal(await tab.evaluate(() => document.activeElement?.tagName), "INPUT");
      await tab.keyboard.type(text);
      await tab.keyboard.press("Enter");
    };
    await say("");
    assert.ok(await tab.$eval("#join", (b) => b.disabled), "a recording is taken of which nobody knows what it says");
    await tab.focus("#microphone-clips input");
    await tab.keyboard.type("high");
    await tab.keyboard.press("Tab");
    await heading(1);
    await say("low");
    await say("high low");
    await heading(3);
    assert.deepEqual(await tab.$$eval("#microphone-clips input", (all) => all.map((i) => i.value)), ["high low", "low", "high"]);
    await press(tab, "#microphone-clips li:nth-child(2) button");
    await until("the clip to be played", () => tab.evaluate(() => globalThis.played === 1));
    await accessible(tab, "sentences");
    await inDark(tab, () => accessible(tab, "sentences, dark"));
    await shot(tab, `${name}-join-microphone-sentences`, { fullPage: true });
    await press(tab, "#microphone-clips li:nth-child(2) button:last-child");
    await heading(2);
    job.joinNatives();
    await until("Join", async () => !(await tab.$eval("#join", (b) => b.disabled)), () => textOf(tab, "#data-state"));
    await press(tab, "#join");
    assert.deepEqual(await tracks(tab), ["ended"], "the microphone is open while nothing is recorded");
    await until("the browser to finish", async () => {
      const now = await textOf(tab, "#state");
      if (/did not work/.test(now)) throw new Error(now);
      return /^Finished: this browser took part in 2 rounds/.test(now);
    }, () => job.story(tab, "body"), 200_000);
    assert.match(await textOf(tab, "#sentence"), /^2 recordings stay in this page/);
    assert.equal((await job.result()).rounds, 2);
    assert.deepEqual(faults, []);
  });
}

test("a microphone that is not to be had, or hears nothing, is told with the next step", { timeout: 400_000 }, async (t) => {
  const job = await fleet(t, { made: recordings(), sequence: 24 });
  const refused = async (browser, reason, before) => {
    const { tab, faults } = await page(job, browser, before);
    await press(tab, "#microphone-open");
    await until(`the refusal ${reason}`, async () => reason.test(await textOf(tab, "#microphone-state")), () => textOf(tab, "#microphone-state"));
    assert.ok(await tab.$eval("#microphone-state", (e) => e.classList.contains("failed")));
    assert.ok(!(await shownHere(tab, "#microphone")) && await shownHere(tab, "#microphone-open"), "it cannot be tried again");
    await accessible(tab, String(reason));
    assert.deepEqual(faults, []);
    return tab;
  };
  const denied = /^This page may not use the microphone: allow it where the browser shows this page's address, then try again; or choose recordings as files\.$/;
  if (names.includes("chrome")) {
    const tab = await refused(await open(t, "chrome", microphone(tone, "--use-fake-ui-for-media-stream=deny")), denied);
    await shot(tab, "chrome-join-microphone-denied");
  }
  if (names.includes("firefox")) {
    const blocked = { preferences: { "media.navigator.streams.fake": true, "permissions.default.microphone": 2 } };
    await refused(await open(t, "firefox", blocked), denied);
  }
  const browser = await open(t, "chrome", microphone(silence));
  await refused(browser, /^There is no microphone: connect one, then try again; or choose recordings as files\.$/, () => {
    navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("Requested device not found", "NotFoundError"));
  });
  await refused(browser, /^The microphone does not answer: another program may be using it\./, () => {
    navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("Could not start audio source", "NotReadableError"));
  });
  await refused(browser, /^This browser lets pages hear no microphone: choose recordings as files\.$/, () => {
    Object.defineProperty(navigator, "mediaDevices", { value: undefined });
  });
  await refused(browser, /and this browser hears it only on a machine that plays sound, too: connect loudspeakers or headphones/, () => {
    AudioContext.prototype.resume = () => new Promise(() => undefined);
  });
  const { tab } = await page(job, browser);
  await press(tab, "#microphone-open");
  await opened(tab);
  await press(tab, "#microphone-record");
  await until("silence to be told", async () => /^Nothing was heard: see that the microphone is not muted/.test(await told(tab)), () => told(tab));
  assert.equal((await tab.$$("#microphone-clips li")).length, 0);
  await shot(tab, "chrome-join-microphone-silent");
  // Pulled out while it is heard.
  await press(tab, "#microphone-record");
  await until("the question", async () => /^Say “high” now/.test(await told(tab)));
  await tab.evaluate(async () => (await globalThis.asked[0]).getTracks()[0].dispatchEvent(new Event("ended")));
  await until("the loss", async () => /^The microphone has gone: connect it again/.test(await textOf(tab, "#microphone-state")));
  assert.ok(await shownHere(tab, "#microphone-open"));
});

test("a clip that is cut short is refused", { timeout: 200_000 }, async (t) => {
  const job = await fleet(t, { made: recordings(), sequence: 24 });
  const { tab } = await page(job, await open(t, "chrome", microphone(tone)));
  await press(tab, "#microphone-open");
  await opened(tab);
  // Stopped at the very block in which the word begins, as no finger is quick enough to.
  await tab.evaluate(() => new MutationObserver((_, watch) => {
    if (document.getElementById("microphone-told").textContent !== "Recording…") return;
    watch.disconnect();
    document.getElementById("microphone-record").click();
  }).observe(document.getElementById("microphone-told"), { childList: true, subtree: true, characterData: true }));
  await press(tab, "#microphone-record");
  await until("the refusal", async () => /^That was too short: press Record again, say all of it/.test(await told(tab)), () => told(tab));
  assert.equal((await tab.$$("#microphone-clips li")).length, 0);
  assert.equal(await record(tab), "“high”");
});
