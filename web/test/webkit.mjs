// Lets WebKitGTK, the engine of Safari, join a real job and says what it lacks:
//
//   sh web/build.sh && make build && xvfb-run node web/test/webkit.mjs
//
// Needs Debian's webkit2gtk-driver and xvfb, 300 MB that CI does not install. It drives MiniBrowser over WebDriver (W3C)
// alone. JSC_useSharedArrayBuffer=1 and JSC_useWasmRelaxedSIMD=1 turn on what Debian's build leaves off.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { fleet, until } from "./fleet.mjs";
import { site } from "./sites.mjs";

/** What of a browser the edge uses, or could, as code that says whether it is there. */
const features = {
  "WebAssembly SIMD": `WebAssembly.validate(new Uint8Array([0,97,115,109,1,0,0,0,1,5,1,96,0,1,123,3,2,1,0,10,10,1,8,0,65,0,253,15,253,98,11]))`,
  "WebAssembly relaxed SIMD": `WebAssembly.validate(new Uint8Array([0,97,115,109,1,0,0,0,1,5,1,96,0,1,123,3,2,1,0,10,15,1,13,0,65,1,253,15,65,2,253,15,253,128,2,11]))`,
  "WebAssembly streaming": `typeof WebAssembly.instantiateStreaming === "function"`,
  "isolated from other origins": `crossOriginIsolated`,
  "SharedArrayBuffer": `typeof SharedArrayBuffer === "function"`,
  "shared WebAssembly memory": `new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true }).buffer instanceof SharedArrayBuffer`,
  "a worker's own workers": `await inWorker("typeof Worker === 'function'")`,
  "module workers": `await inWorker("true", { type: "module" })`,
  "Atomics.wait in workers": `await inWorker("Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1) === 'timed-out'")`,
  "DecompressionStream (gzip)": `new DecompressionStream("gzip") instanceof DecompressionStream`,
  "DecompressionStream (brotli)": `new DecompressionStream("brotli") instanceof DecompressionStream`,
  "IndexedDB": `await new Promise((resolve) => { const o = indexedDB.open("probe"); o.onsuccess = () => resolve(true); o.onerror = () => resolve(false); })`,
  "origin private file system": `!!(await navigator.storage.getDirectory())`,
  "its synchronous access in workers": `await inWorker("!!(await (await (await navigator.storage.getDirectory()).getFileHandle('probe', { create: true })).createSyncAccessHandle())")`,
  "Web Locks": `!!navigator.locks`,
  "OffscreenCanvas in workers": `await inWorker("!!new OffscreenCanvas(1, 1).getContext('2d')")`,
  "Ed25519 in WebCrypto": `!!(await crypto.subtle.generateKey("Ed25519", false, ["sign"]))`,
  "screen wake lock": `"wakeLock" in navigator`,
  "BigInt64Array": `typeof BigInt64Array === "function"`,
};

const free = () => new Promise((resolve) => {
  const s = createServer().listen(0, "127.0.0.1", () => { const { port } = s.address(); s.close(() => resolve(port)); });
});

/** A session of MiniBrowser; ended by close. */
async function session() {
  const port = await free();
  const driver = spawn("WebKitWebDriver", [`--port=${port}`, "--host=127.0.0.1"], { stdio: ["ignore", "ignore", "inherit"] });
  const ask = async (method, path, body) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, ...(body ? { body: JSON.stringify(body) } : {}) });
    const { value } = await answer.json();
    if (!answer.ok) throw new Error(`${path}: ${value.error}: ${value.message}`);
    return value;
  };
  await until("WebKitWebDriver", () => ask("GET", "/status").then(() => true, () => false));
  const { sessionId, capabilities } = await ask("POST", "/session", { capabilities: { alwaysMatch: { "webkitgtk:browserOptions": {
    binary: process.env.MINIBROWSER ?? "/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser", args: ["--automation"] } } } });
  const at = `/session/${sessionId}`;
  return {
    capabilities,
    go: (url) => ask("POST", `${at}/url`, { url }),
    run: (script, ...args) => ask("POST", `${at}/execute/sync`, { script, args }),
    wait: (script, ...args) => ask("POST", `${at}/execute/async`, { script: `const done = arguments[arguments.length - 1]; (async () => { ${script} })().then(done, (e) => done(String(e)))`, args }),
    find: async (css) => Object.values(await ask("POST", `${at}/element`, { using: "css selector", value: css }))[0],
    click: (element) => ask("POST", `${at}/element/${element}/click`, {}),
    shot: async (name) => {
      const shots = fileURLToPath(new URL("shots", import.meta.url));
      mkdirSync(shots, { recursive: true });
      writeFileSync(`${shots}/${name}.png`, Buffer.from(await ask("GET", `${at}/screenshot`), "base64"));
    },
    close: async () => {
      await ask("DELETE", at).catch(() => {});
      driver.kill();
    },
  };
}

const ending = [];
const t = { after: (end) => ending.unshift(end) };
try {
  const browser = await session();
  t.after(browser.close);
  // A page of its own: that of a coordinator lets no script start such workers.
  const folder = mkdtempSync(join(tmpdir(), "starling-webkit-"));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "index.html"), "<!doctype html><title>probe</title>");
  const isolating = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" };
  await browser.go(`${await site(t, folder, { headers: isolating })}/`);
  const has = {};
  for (const [name, code] of Object.entries(features)) {
    has[name] = await browser.wait(`
      const inWorker = (code, options) => new Promise((resolve, reject) => {
        const text = "(async () => " + code + ")().then((v) => postMessage(v), (e) => postMessage(String(e)))";
        const w = new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })), options);
        w.onmessage = ({ data }) => resolve(data);
        w.onerror = (e) => { e.preventDefault(); reject(new Error(e.message || "it cannot be started")); };
      });
      return ${code};`);
  }
  const agent = await browser.run("return navigator.userAgent");
  console.log(`${browser.capabilities.browserName} ${browser.capabilities.browserVersion}: ${agent}`);
  for (const [name, value] of Object.entries(has)) console.log(`| ${name} | ${value === true ? "yes" : value === false ? "no" : `no: ${value}`} |`);
  const job = await fleet(t, { natives: 2 }); // a shard has three: no round is made without the page
  job.joinNatives();
  await browser.go(job.page);
  await browser.click(await browser.find("#sample"));
  await until("the sample", () => browser.run("return !document.querySelector('#join').disabled"), () => browser.run("return document.body.innerText"));
  await browser.click(await browser.find("#join"));
  await until("the end", async () => job.server.child.exitCode !== null, async () => `${await browser.run("return document.body.innerText")}\n${job.server.err.slice(-1500)}`, 300_000);
  await browser.shot("webkit");
  assert.equal((await job.result()).rounds, 2);
  const said = await browser.run("return document.querySelector('#state').innerText");
  assert.match(said, /\b2\b/, "the rounds that the page took part in");
  console.log(`joined a job: ${said}`);
} finally {
  for (const end of ending) await end();
}
