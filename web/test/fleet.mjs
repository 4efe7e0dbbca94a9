// A coordinator with native edges, as processes, and what tests need around them.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { inDark, launch } from "./browsers.mjs";

const binary = fileURLToPath(new URL("../../bin/starling", import.meta.url));
const shots = fileURLToPath(new URL("./shots", import.meta.url));

/** Runs the program; the caller ends it. */
export function start(args) {
  const child = spawn(binary, args, { stdio: ["ignore", "pipe", "pipe"] });
  const run = { child, out: "", err: "" };
  child.stdout.on("data", (d) => { run.out += d; });
  child.stderr.on("data", (d) => { run.err += d; });
  run.done = new Promise((resolve) => child.on("close", resolve));
  return run;
}

export async function until(what, probe, story = () => "", limit = 60_000) {
  const end = Date.now() + limit;
  for (;;) {
    const found = await probe();
    if (found) return found;
    if (Date.now() > end) throw new Error(`timed out waiting for ${what}\n${await story()}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Invoices for some devices and to validate with: files, the option of serve, and the job's labels. */
async function invoices(dir, devices) {
  const data = join(dir, "data"), validation = join(dir, "validation");
  assert.equal(await start(["lab", "invoices", "--out", data, "--clients", String(devices)]).done, 0);
  assert.equal(await start(["lab", "invoices", "--out", validation, "--split", "validation", "--clients", "1"]).done, 0);
  return {
    files: readdirSync(data).map((name) => join(data, name)), validation: join(validation, "validation-0.jsonl"),
    keys: 'labels: [catering, energy, freight, maintenance, office, software, telecom, travel, "<img src=x onerror=alert(1)>"]',
  };
}

/**
 * Starts serve for natives + browsers devices; ended with the test. made yields their data, in place of invoices: files of each
 * device, validation and keys, the job's lines for it.
 */
export async function fleet(t, { rounds = 2, natives = 3, browsers = 1, floor = 3, extra = "", nativeFlags = [], serveFlags = [], listen = "127.0.0.1:0", sequence = 0, made = invoices, name = "browser test" } = {}) {
  const dir = mkdtempSync(join(tmpdir(), "starling-browser-"));
  const running = [];
  t.after(async () => {
    for (const run of running) run.child.kill("SIGKILL");
    await Promise.all(running.map((run) => run.done));
    rmSync(dir, { recursive: true, force: true });
  });
  const { files, validation, keys } = await made(dir, natives + browsers);
  const job = join(dir, "job.yaml");
  writeFileSync(job, `
name: ${JSON.stringify(name)}
${keys}
rounds: ${rounds}
adapter: {rank_min: 1, rank_max: 2${sequence ? `, sequence: ${sequence}` : ""}}
cohort: {population: ${natives + browsers}, sampling_rate: 1, floor: ${floor}}
shard: {size: 8, floor: 3, corrupt: 0, breach_bits: 0}
privacy: {epsilon: 2, simulated_population: 1000000, simulated_cohort: 10000}
${extra}`);
  const serve = (address, admin = "127.0.0.1:0") => {
    const run = start(["serve", "--json", "--job", job, "--dir", join(dir, "state"), "--listen", address, "--admin", admin,
      "--validation", validation, ...serveFlags]);
    running.push(run);
    return run;
  };
  const server = serve(listen);
  const said = (what, pattern) => until(what, () => {
    if (server.child.exitCode !== null) throw new Error(`serve ended: ${server.err}`);
    return pattern.exec(server.err)?.[1];
  });
  const token = await said("the join token", /join with: starling join (\S+)/);
  const page = await said("the page", /or open (\S+) in a browser/);
  const dashboard = await said("the dashboard", /dashboard[^:]*: (\S+)/);
  return {
    dir, files, server, token,
    story: async (tab, selector = "#state") => `${await textOf(tab, selector)}\n${server.err.slice(-1500)}`, page, dashboard, own: files[natives],
    joinNatives(from = 0, to = natives) {
      const edges = [];
      for (let i = from; i < to; i++) {
        edges.push(start(["join", token, "--data", files[i], "--identity", join(dir, `identity-${i}.pem`), "--cache", join(dir, "cache"),
          "--accounts", join(dir, "accounts"), ...(["127.0.0.1", "localhost", "[::1]"].includes(new URL(page).hostname) ? ["--trust-local"] : []), ...nativeFlags]));
      }
      running.push(...edges);
      return edges;
    },
    /** Has no round drawn after the running one, or has the job go on: what a test looks at meanwhile may take as long as it takes. */
    async pause(is) {
      const { origin, hash } = new URL(dashboard);
      const answer = await fetch(`${origin}/v1/admin/job/${is ? "pause" : "resume"}`, { method: "POST", headers: { Authorization: `Bearer ${hash.slice(1)}` }, body: JSON.stringify({ reason: "" }) });
      assert.equal(answer.status, 200, await answer.text());
    },
    /** After server.child has ended: the same coordinator again, at the same address. */
    restart: () => serve(new URL(page).host, new URL(dashboard).host),
    async result() {
      assert.equal(await server.done, 0, server.err);
      return JSON.parse(server.out.trim().split("\n").at(-1));
    },
  };
}

/** A tab whose errors the test sees. */
export async function openTab(browser, address, viewport = { width: 390, height: 844 }) {
  const tab = await browser.newPage();
  const faults = [], requests = [];
  await tab.setViewport(viewport);
  tab.on("pageerror", (error) => faults.push(String(error)));
  tab.on("console", (message) => { if (message.type() === "error") faults.push(message.text()); });
  tab.on("request", (request) => requests.push(request.url()));
  tab.on("dialog", (dialog) => { faults.push(`a dialog: ${dialog.message()}`); void dialog.dismiss(); });
  await tab.goto(address);
  return { tab, faults, requests };
}

export async function open(t, name, more) {
  const browser = await launch(name, more);
  t.after(() => browser.close());
  return browser;
}

export const textOf = (tab, selector) => tab.$eval(selector, (e) => e.textContent ?? "");

export async function choose(tab, file) {
  await until("the question for data", () => tab.$eval("#choosing", (e) => !e.hidden), () => textOf(tab, "body"));
  const input = await tab.$("#file");
  await input.uploadFile(file);
  await until("the file to be read", async () => !(await tab.$eval("#join", (b) => b.disabled)), () => textOf(tab, "#data-state"));
}

/** Says yes to what the job asks for beyond the device's limits, and yields that. */
export async function accept(tab) {
  await until("the question before Join", () => tab.$eval("#consent", (e) => !e.hidden), () => textOf(tab, "body"));
  await tab.$eval("#consent-yes", (box) => box.click());
  return textOf(tab, "#consent");
}

const views = { phone: [390, 844, 1], desk: [1280, 900, 1], zoomed: [640, 450, 2] }; // a desk's 200 % is half its width

/** Keeps a picture, and one of the page at night; CI keeps the folder. With SHOTS=every also one of each size, language and direction. */
export async function shot(tab, name, options = {}) {
  mkdirSync(shots, { recursive: true });
  // A page draws a piece a frame: so many frames are more than it has pieces.
  const drawn = () => tab.evaluate(() => new Promise((resolve) => {
    let left = 40;
    const frame = () => left-- > 0 ? requestAnimationFrame(frame) : resolve();
    frame();
  }));
  const take = async (suffix, more) => {
    await drawn();
    await tab.screenshot({ path: join(shots, `${name}${suffix}.png`), ...options, ...more });
  };
  await take("");
  await inDark(tab, () => take("-dark"));
  if (process.env.SHOTS !== "every") return;
  const before = tab.viewport();
  for (const [view, [width, height, deviceScaleFactor]] of Object.entries(views)) {
    await tab.setViewport({ width, height, deviceScaleFactor });
    await take(`-${view}`, { fullPage: true });
  }
  await tab.setViewport(before);
  if (!await tab.evaluate(() => document.getElementById("language")?.value === "en")) return;
  for (const language of await tab.$$eval("#language option", (all) => all.map((o) => o.value)).then((all) => [...all.filter((l) => l !== "en"), "en"])) {
    await tab.select("#language", language);
    const spoken = await until(language, () => tab.evaluate((l) => document.documentElement.lang === l, language), undefined, 10_000).catch(() => false); // offline none comes
    if (spoken && language !== "en") await take(`-${language}`, { fullPage: true });
  }
  await tab.evaluate(() => { document.documentElement.dir = "rtl"; });
  await take("-rtl", { fullPage: true });
  await tab.evaluate(() => {
    document.documentElement.dir = "ltr";
    localStorage.clear(); // the choice of a language
  });
}
