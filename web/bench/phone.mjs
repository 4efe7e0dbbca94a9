// What a round takes of a phone's browser: processor time and memory of Chromium's renderer with a phone's screen.
//
//   node bench/phone.mjs [FOLDER]    FOLDER: a Hugging Face folder to train over, else the embedded base
//
// Processor time, since other work on the machine hardly changes it. The browser's own throttling slows a page's thread
// and no worker, where training is: so it is not used. A slower core takes as many times longer.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { KnownDevices } from "puppeteer-core";
import { choose, fleet, open, openTab, textOf, until } from "../test/fleet.mjs";

const [folder] = process.argv.slice(2);
const rounds = 8, tick = 100; // of the kernel's clock, a second

/** The browser's renderer that has computed most, by its process id. */
function renderer(pid) {
  const children = (of) => readFileSync(`/proc/${of}/task/${of}/children`, "utf8").split(" ").filter(Boolean).flatMap((c) => [c, ...children(c)]);
  return children(pid).filter((p) => /--type=renderer/.test(readFileSync(`/proc/${p}/cmdline`, "utf8"))).sort((a, b) => seconds(b) - seconds(a))[0];
}

/** Processor seconds of a process, all threads, so far. */
function seconds(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /, "").split(" ");
  return (Number(fields[11]) + Number(fields[12])) / tick;
}

const after = [], t = { after: (f) => after.unshift(f) };
try {
  const job = await fleet(t, { rounds, floor: 4, extra: folder ? `base: ${resolve(folder)}\n` : "" }); // no round is made without the phone
  const browser = await open(t, "chrome");
  const { tab } = await openTab(browser, "about:blank");
  await tab.emulate(KnownDevices["Pixel 5"]);
  await tab.goto(job.page);
  await choose(tab, job.own);
  await until("the trial", async () => /of computing/.test(await textOf(tab, "#here")), () => textOf(tab, "#here"), 120_000);
  job.joinNatives();
  await tab.$eval("#join", (button) => button.click());
  const made = async () => Number.parseInt(await textOf(tab, "#contributed")) || 0;
  await until("two rounds, after which all is compiled", async () => await made() >= 2, () => job.story(tab, "body"), 300_000);
  const pid = renderer(browser.process().pid), first = await made(), from = seconds(pid);
  await until("the rest", async () => await made() >= rounds, () => job.story(tab, "body"), 600_000);
  const each = (seconds(pid) - from) / (await made() - first);
  const peak = Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]) / 1000;
  console.log(JSON.stringify({ base: folder ? "given" : "embedded", rounds: rounds - first, round_s: each.toFixed(2), at_4_s: (4 * each).toFixed(1),
    at_6_s: (6 * each).toFixed(1), renderer_peak_mb: peak.toFixed(0), said: await textOf(tab, "#here") }));
} finally {
  for (const f of after) await f();
}
