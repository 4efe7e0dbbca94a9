// The npm package as another site has it: packed, unpacked, its README's lines as they
// stand there, on a page of that site's own before a real coordinator.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { createServer, request as ask } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { names } from "./browsers.mjs";
import { fleet, open, openTab, until } from "./fleet.mjs";
import { furnish, installed, workshop } from "./installed.mjs";

const web = fileURLToPath(new URL("..", import.meta.url));

/** The README's code, for a coordinator at the page's own address. */
function lines(at, part) {
  const code = [...readFileSync(join(at, "README.md"), "utf8").matchAll(/```js\n([^]*?)```/g)][part][1];
  const said = [['"https://fl.example.org"', "location.origin, trustLocal: true"], ["/* ... */", ""]];
  return said.reduce((text, [from, to]) => {
    assert.ok(text.includes(from), `the README has no ${from}`);
    return text.replace(from, to);
  }, code);
}

/** The members of a union that a file of types declares. */
function union(at, file, name) {
  const [, members] = new RegExp(`type ${name} = ([^;]+);`).exec(readFileSync(join(at, "dist", file), "utf8"));
  return [...members.matchAll(/"([^"]+)"/g)].map(([, code]) => code);
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
    if (kind) return answer.writeHead(200, { "Content-Type": kind, "Content-Security-Policy": "require-trusted-types-for 'script'; trusted-types starling" }).end(body);
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
  writeFileSync(join(dir, "tsconfig.json"), JSON.stringify({ compilerOptions: { target: "ES2022", module: "ES2022", moduleResolution: "bundler", strict: true,
    noEmit: true, lib: ["ES2022", "DOM"], types: [] }, files: ["one.ts", "more.ts"] }));
  const typed = (more = "") => {
    writeFileSync(join(dir, "one.ts"), lines(at, 0));
    writeFileSync(join(dir, "more.ts"), lines(at, 1) + more);
    try {
      execFileSync(join(web, "node_modules/.bin/tsc"), ["-p", dir], { encoding: "utf8", stdio: "pipe" });
      return "";
    } catch (error) {
      return error.stdout;
    }
  };
  assert.equal(typed(), "");
  assert.equal(typed('part.addEventListener("progress", ({ detail }) => { const s: "training" | "waiting" = detail.state as never; void s; });'), "");
  assert.match(typed('sourceOf([{ words: 3 }]);'), /words/, "anything passes for an example");
  assert.match(typed('part.addEventListener("progres", () => {});'), /progres/, "anything passes for an event");
  assert.match(typed('part.addEventListener("progress", ({ detail }) => detail.state === "trainign");'), /no overlap/, "anything passes for a state");
});

test("the README lists every code of an error", () => {
  const { at } = installed();
  const codes = [...union(at, "errors.d.ts", "ErrorCode"), ...union(at, "client.d.ts", "Code")].sort();
  const section = /## Errors\n([^]*?)\n## /.exec(readFileSync(join(at, "README.md"), "utf8"))[1];
  assert.deepEqual([...section.matchAll(/^\| `([a-z-]+)` \|/gm)].map(([, code]) => code).sort(), codes);
});

test("the reference is written without a warning", { timeout: 300_000 }, () => {
  furnish();
  const { dir } = installed();
  const out = join(dir, "reference");
  execFileSync(join(workshop, "node_modules/.bin/typedoc"), ["--options", join(web, "edge/typedoc.json"), "--out", out], { stdio: "pipe" });
  assert.match(readFileSync(join(out, "functions/join.html"), "utf8"), /Takes part until the job is over/);
});

test("the package is small", () => {
  const { at } = installed();
  const sizes = { packed: 0, rest: 0 };
  for (const entry of readdirSync(at, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue;
    sizes[/\.bin\.(gz|br)$/.test(entry.name) ? "packed" : "rest"] += statSync(join(entry.parentPath ?? entry.path, entry.name)).size;
  }
  assert.ok(sizes.rest < 175_000, `${sizes.rest} bytes besides the program`);
  assert.ok(sizes.packed < 7_500_000, `${sizes.packed} bytes of the program in its compressed forms`);
});

for (const name of names) {
  test(`${name}: another site takes part with the README's lines`, { timeout: 400_000 }, async (t) => {
    const { at } = installed();
    const job = await fleet(t, { floor: 4 }); // no round is made without the page
    const browser = await open(t, name);
    job.joinNatives();
    const one = `window.onunhandledrejection = ({ reason }) => { document.title = "failed " + reason.code + " " + reason.message; };
      ${lines(at, 0).replace("console.log(", 'document.title = "finished " + JSON.stringify([').replace(/\);\s*$/, "]);")}`;
    const { tab, faults } = await openTab(browser, await site(t, at, one, job.page));
    const title = await until("the end", async () => {
      const title = await tab.title();
      if (/^failed/.test(title)) throw new Error(title);
      return /^finished/.test(title) && title;
    }, () => job.story(tab, "body"), 200_000);
    assert.match(title, /^finished \[2,\[\{"label":/);
    assert.equal((await job.result()).rounds, 2);
    assert.deepEqual(faults.filter((f) => !/ERR_CONNECTION|NetworkError|Failed to load/.test(f)), []);
  });

  test(`${name}: a page is told why, by a code, and ends what it has started`, { timeout: 200_000 }, async (t) => {
    const { at } = installed();
    const browser = await open(t, name);
    const main = 'window.starling = await import("@starling-fl/edge"); document.title = "loaded";';
    const { tab } = await openTab(browser, await site(t, at, main, "http://127.0.0.1:1"));
    await until("the package", async () => await tab.title() === "loaded");
    const told = await tab.evaluate(async () => {
      const { join, Edge, Participation, StarlingError } = window.starling;
      const why = (promise) => promise.then(() => "nothing", (e) => e instanceof StarlingError ? e.code : `${e}`);
      const data = [{ text: "a", label: "b" }];
      const controller = new AbortController();
      const left = why(join({ url: location.origin, data, signal: controller.signal }));
      controller.abort("left");
      const edge = await Edge.load({ full: false });
      const part = new Participation({ url: "http://127.0.0.1:1", source: { fileName: "a.tsv", data: new Uint8Array() } });
      const standings = [];
      part.addEventListener("standing", ({ detail }) => standings.push(detail));
      const lost = await why(part.finished);
      const said = {
        left: await left, aborted: await why(join({ url: location.origin, data, signal: AbortSignal.abort("before") })),
        unreachable: await why(join({ url: "http://127.0.0.1:1", data })), options: await why(join({ url: "ftp://x", data })),
        data: await why(edge.preview({ fileName: "a.xls", data: new Uint8Array([1]) })), nameless: await why(join({ url: location.origin, data: new Blob(["a"]) })),
        program: await why(Edge.load({ program: "nothing-here" })), worker: await why(Edge.load({ worker: "nothing-here.js" })),
        cut: await why(edge.preview({ fileName: "a.tsv", data: new Uint8Array(1) }, edge.close())), lost, standings,
      };
      return said;
    });
    assert.deepEqual(told, { left: "left", aborted: "before", unreachable: "unreachable", options: "options", data: "data", nameless: "data", program: "not-loaded",
      worker: "not-loaded", cut: "closed", lost: "unreachable", standings: ["failed"] });
  });
}

// Node 20 has no WebSocket; the program panicked over it in the middle of a join.
test("Node without a WebSocket is told so by a typed error", () => {
  const { at } = installed();
  const ask = `delete globalThis.WebSocket;
    const { Edge } = await import(${JSON.stringify(join(at, "dist/node.js"))});
    const error = await Edge.load().then(() => "loaded", (e) => e);
    process.stdout.write(error.name + " " + error.code + " " + error.message);`;
  const said = execFileSync(process.execPath, ["--input-type=module", "-e", ask], { encoding: "utf8" });
  assert.match(said, /^StarlingError unsupported .*Node 22/);
});

test("the README's sizes are those of what was built", () => {
  const said = readFileSync(join(web, "edge/README.md"), "utf8").replace(/\s+/g, " ");
  const [, light, full, lightBr, fullBr] = /`edge\.bin\.gz` has ([\d.]+) MB, `edge-full\.bin\.gz` ([\d.]+)\. The `\.br` files \(([\d.]+) and ([\d.]+) MB\)/.exec(said);
  for (const [file, mb] of [["edge.bin.gz", light], ["edge-full.bin.gz", full], ["edge.bin.br", lightBr], ["edge-full.bin.br", fullBr]]) {
    const is = statSync(join(web, "edge/dist", file)).size / 1e6;
    assert.ok(Math.abs(is - Number(mb)) < 0.1, `${file} has ${is.toFixed(2)} MB, the README says ${mb}`);
  }
});
