// What own noise costs a device in Chromium: processor time of the page's thread in the
// benchmark of dp, five times. Prints ms/round lines as `go test -bench` does.
//
//   node lab/bench/own/browser.mjs DP.wasm WASM_EXEC.js
//
// DP.wasm is `GOOS=js GOARCH=wasm go test -c ./dp`.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import process from "node:process";

const require = createRequire(new URL("../../../web/package.json", import.meta.url));
const { default: puppeteer } = await import(require.resolve("puppeteer-core"));
const [program, glue] = process.argv.slice(2).map((file) => readFileSync(file));
const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"] });
try {
  const tab = await browser.newPage();
  let said = "";
  tab.on("console", (line) => { said += line.text() + "\n"; });
  await tab.evaluate(glue.toString());
  // The benchmark asks Node for its processor time; here its own figure is not read.
  await tab.evaluate(() => { globalThis.process.cpuUsage = () => ({ user: performance.now() * 1000, system: 0 }); });
  await tab.evaluate(`globalThis.bytes = Uint8Array.from(atob(${JSON.stringify(program.toString("base64"))}), (c) => c.charCodeAt(0))`);
  const thread = await tab.createCDPSession();
  await thread.send("Performance.enable", { timeDomain: "threadTicks" });
  const busy = async () => (await thread.send("Performance.getMetrics")).metrics.find((m) => m.name === "TaskDuration").value * 1000;
  const rounds = async (n) => {
    const begun = await busy();
    said = "";
    await tab.evaluate(async (n) => {
      const go = new globalThis.Go();
      go.argv = ["dp.test", "-test.run=xxx", "-test.bench=OwnNoise", `-test.benchtime=${n}x`];
      const { instance } = await WebAssembly.instantiate(globalThis.bytes, go.importObject);
      await go.run(instance);
    }, n);
    const took = await busy() - begun;
    if (!said.includes("ms/round")) throw new Error(`the benchmark says: ${said}`);
    return took;
  };
  await rounds(1); // compiles
  for (let i = 0; i < 5; i++) {
    const start = await rounds(1), all = await rounds(21); // what starting takes is in both
    console.log(`BenchmarkOwnNoise 20 ${((all - start) / 20).toFixed(2)} ms/round`);
  }
} finally {
  await browser.close();
}
