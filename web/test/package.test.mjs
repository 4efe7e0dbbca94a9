// The npm package as another site has it: packed, unpacked, its README's lines as they
// stand there, on a page of that site's own before a real coordinator.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request as ask } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { names } from "./browsers.mjs";
import { fleet, open, openTab, until } from "./fleet.mjs";

const web = fileURLToPath(new URL("..", import.meta.url));

let dir;
after(() => { if (dir) rmSync(dir, { recursive: true, force: true }); });

/** A folder with the package in node_modules, as npm leaves it. */
function installed() {
  const there = (at) => ({ dir, at: join(at, "node_modules/@starling-fl/edge") });
  if (dir) return there(dir);
  dir = mkdtempSync(join(tmpdir(), "starling-package-"));
  execFileSync(process.execPath, ["build.mjs", "package"], { cwd: web });
  const [{ filename }] = JSON.parse(execFileSync("npm", ["pack", "--json", "--pack-destination", dir], { cwd: join(web, "edge"), encoding: "utf8" }));
  const { at } = there(dir);
  mkdirSync(at, { recursive: true });
  execFileSync("tar", ["-xzf", join(dir, filename), "-C", at, "--strip-components=1"]);
  return { dir, at };
}

/** The README's first lines of code, for a coordinator at the page's own address that asks for no token: one would name the coordinator's. */
function lines(at) {
  const code = /```js\n([^]*?)```/.exec(readFileSync(join(at, "README.md"), "utf8"))[1];
  const said = [['"https://fl.example.org"', "location.origin"], ['"starling2_..."', "undefined"], ["/* ... */", ""],
    ["(p) => console.log(p.standing, p.event?.state, p.totals)", "(p) => { document.title = `${p.standing} ${p.totals.rounds}: ${p.reason}`; }"]];
  return said.reduce((text, [from, to]) => {
    assert.ok(text.includes(from), `the README has no ${from}`);
    return text.replace(from, to);
  }, code).replace(/^part\.\w+\(\);.*$/gm, "");
}

/** Another site's server: its page and the package, and the coordinator behind it. */
async function site(t, at, main, coordinator) {
  const { exports } = JSON.parse(readFileSync(join(at, "package.json"), "utf8"));
  const files = { "/app/main.js": ["text/javascript", main], "/app/": ["text/html",
    '<!doctype html><link rel="icon" href="data:,"><script type="importmap">{"imports": {"@starling-fl/edge": "/app/@starling-fl/edge/"}}</script><script type="module" src="main.js"></script>'] };
  const { hostname, port } = new URL(coordinator);
  const server = createServer((request, answer) => {
    const inside = request.url.startsWith("/app/@starling-fl/edge/") && exports[`.${request.url.slice("/app/@starling-fl/edge".length)}`.replace(/\/$/, "")];
    const file = inside ? (inside.default ?? inside) : "";
    const [kind, body] = file ? [file.endsWith(".wasm") ? "application/wasm" : "text/javascript", readFileSync(join(at, file))] : files[request.url] ?? [];
    if (kind) return answer.writeHead(200, { "Content-Type": kind }).end(body);
    request.pipe(ask({ hostname, port, path: request.url, method: request.method, headers: request.headers }, (from) => {
      answer.writeHead(from.statusCode, from.headers);
      from.pipe(answer);
    }).on("error", () => answer.destroy()));
  });
  const sockets = new Set();
  server.on("upgrade", (request, from, head) => {
    const to = connect(port, hostname, () => {
      const headers = request.rawHeaders.flatMap((v, i, all) => i % 2 ? [] : [`${v}: ${all[i + 1]}`]);
      to.write(`${request.method} ${request.url} HTTP/1.1\r\n${headers.join("\r\n")}\r\n\r\n`);
      to.write(head);
      from.pipe(to).pipe(from);
    });
    for (const s of [from, to]) {
      sockets.add(s);
      s.on("error", () => { from.destroy(); to.destroy(); });
      s.on("close", () => { from.destroy(); to.destroy(); });
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    for (const s of sockets) s.destroy();
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}/app/`;
}

test("the package's types take its README's lines", { timeout: 300_000 }, () => {
  const { dir, at } = installed();
  writeFileSync(join(dir, "main.ts"), lines(at));
  writeFileSync(join(dir, "tsconfig.json"), JSON.stringify({ compilerOptions: { target: "ES2022", module: "ES2022", moduleResolution: "bundler", strict: true,
    noEmit: true, lib: ["ES2022", "DOM"], types: [] }, files: ["main.ts"] }));
  const tsc = join(web, "node_modules/.bin/tsc");
  execFileSync(tsc, ["-p", dir], { encoding: "utf8" });
  writeFileSync(join(dir, "main.ts"), lines(at).replace("sourceOf([", "sourceOf([{ words: 3 }, "));
  assert.throws(() => execFileSync(tsc, ["-p", dir], { encoding: "utf8", stdio: "pipe" }), (e) => /words/.test(e.stdout), "anything passes for an example");
});

for (const name of names) {
  test(`${name}: another site takes part with the README's lines`, { timeout: 400_000 }, async (t) => {
    const { at } = installed();
    const job = await fleet(t, { floor: 4 }); // no round is made without the page
    const browser = await open(t, name);
    job.joinNatives();
    const { tab, faults } = await openTab(browser, await site(t, at, lines(at), job.page));
    await until("the end", async () => {
      const title = await tab.title();
      if (/^(failed|refused)/.test(title)) throw new Error(title);
      return /^finished/.test(title);
    }, () => job.story(tab, "body"), 200_000);
    assert.match(await tab.title(), /^finished 2:$/);
    assert.equal((await job.result()).rounds, 2);
    assert.deepEqual(faults.filter((f) => !/ERR_CONNECTION|NetworkError|Failed to load/.test(f)), []);
  });
}
