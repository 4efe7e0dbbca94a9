// Builds the pages and the browser's edge into dist/, which package web embeds:
//
//   node build.mjs [pages|edge|package]    pages and edge without an argument; the npm package is edge/dist
//   node build.mjs check                   says where dist/ was built from other sources than lie here
//
// Everything in dist/assets is named by a hash of its content and lies there as
// brotli, of which the server makes what else is asked for. dist/ is not in git.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, brotliDecompressSync, constants, gzipSync } from "node:zlib";
import * as esbuild from "esbuild";
import { filter, unfilter } from "./edge/src/filter.js";
import { mergeData } from "./mergedata.mjs";
import { loader, speaks } from "./speaks.mjs";
import { stripLines } from "./striplines.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const dist = join(here, "dist");
const assets = join(dist, "assets");
const what = process.argv[2] ?? "all";

// Inlining makes Go's WebAssembly a tenth larger after compression. Only where a
// device spends its time does it stay.
const inlined = ["filippo.io/...", "crypto/internal/fips140/aes/...", "crypto/internal/fips140/edwards25519/...",
  "crypto/internal/fips140/sha256", "github.com/starling-fl/starling/quant", "github.com/starling-fl/starling/secagg"];
const gcflags = ["-gcflags=all=-l", ...inlined.map((p) => `-gcflags=${p}=`)];

/** The two builds of cmd/starling-web: what most jobs need, and everything. */
const variants = [{ name: "edge", tags: "" }, { name: "edge-full", tags: "full" }];

const digest = (b) => createHash("sha256").update(b).digest("hex");

function go(args, env = {}) {
  return execFileSync("go", args, { cwd: join(here, ".."), env: { ...process.env, ...env }, encoding: "utf8" });
}

/** Writes a file as brotli; a small one, or a picture, is not worth it. */
function emit(name, content) {
  const body = Buffer.from(content);
  const path = join(dist, name);
  for (const old of [path, `${path}.br`]) rmSync(old, { force: true });
  if (body.length < 400 || name.endsWith(".png")) {
    writeFileSync(path, body);
    return body.length;
  }
  const small = brotliCompressSync(body, { params: {
    [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 24, [constants.BROTLI_PARAM_SIZE_HINT]: body.length,
  } });
  writeFileSync(`${path}.br`, small);
  return small.length;
}

/** What is served of a file in dist/ that is stored as brotli or, a small one, plain. */
const plainOf = (name) => existsSync(join(dist, `${name}.br`)) ? brotliDecompressSync(readFileSync(join(dist, `${name}.br`))) : readFileSync(join(dist, name));

const integrity = (content) => `sha256-${createHash("sha256").update(content).digest("base64")}`;

/** Removes what an earlier build left under the same name with another hash. */
function forget(prefix, extension, keep) {
  for (const file of readdirSync(assets)) {
    const plain = file.replace(/\.br$/, "");
    if (plain !== keep && plain.startsWith(`${prefix}-`) && plain.endsWith(extension)
      && /^[0-9a-f]{12}$/.test(plain.slice(prefix.length + 1, -extension.length))) rmSync(join(assets, file));
  }
}

function asset(prefix, extension, content) {
  const name = `${prefix}-${digest(content).slice(0, 12)}${extension}`;
  forget(prefix, extension, name);
  const known = existsSync(join(assets, `${name}.br`)) || existsSync(join(assets, name));
  const size = known ? undefined : emit(`assets/${name}`, content);
  return { name, size };
}

function buildEdge() {
  for (const { name, tags } of variants) {
    const out = join(tmpdir(), `starling-${process.pid}-${name}.wasm`);
    go(["build", "-trimpath", `-tags=${tags}`, ...gcflags, "-ldflags=-s -w", "-o", out, "./cmd/starling-web"],
      { GOOS: "js", GOARCH: "wasm", CGO_ENABLED: "0" });
    const made = asset(name, ".bin", filter(stripLines(mergeData(readFileSync(out)))));
    rmSync(out);
    forget(name, ".wasm"); // how it was called before it was filtered
    console.log(`web/dist/assets/${made.name}: ${made.size ?? "unchanged"}${made.size ? " bytes" : ""}`);
  }
}

/** The names of the edge's builds, "" where one was not built. */
function edgeNames() {
  const found = {};
  for (const { name } of variants) {
    found[name] = readdirSync(assets).map((f) => f.replace(/\.br$/, ""))
      .find((f) => new RegExp(`^${name}-[0-9a-f]{12}\\.bin$`).test(f)) ?? "";
  }
  return found;
}

/** One of the client's builds as it is filtered. */
const packed = (name) => brotliDecompressSync(readFileSync(join(assets, `${name}.br`)));

/** One of the client's builds as WebAssembly. */
const client = (name) => unfilter(packed(name));

/** A digest of all that the client and the pages are made of. */
function sources() {
  const hash = createHash("sha256");
  const list = new Set();
  for (const { tags } of variants) {
    const format = "{{if not .Standard}}{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}\n{{end}}{{range .EmbedFiles}}{{$d}}/{{.}}\n{{end}}{{end}}";
    const out = go(["list", "-deps", `-tags=${tags}`, "-f", format, "./cmd/starling-web"], { GOOS: "js", GOARCH: "wasm", CGO_ENABLED: "0" });
    for (const file of out.split("\n").filter(Boolean)) list.add(file);
  }
  for (const folder of ["src", "src/join", "src/language", "src/dashboard", "edge/src", "pages", "pages/parts", "."]) {
    for (const entry of readdirSync(join(here, folder), { withFileTypes: true })) {
      if (entry.isFile() && /\.(ts|css|html|svg|png|js|mjs|json)$/.test(entry.name)) list.add(join(here, folder, entry.name));
    }
  }
  hash.update(go(["version"]));
  for (const file of [...list].sort()) hash.update(basename(file)).update(digest(readFileSync(file)));
  return hash.digest("hex").slice(0, 16);
}

/** What dist/ was built from, for the program that embeds it. */
const record = join(dist, "built.json");

async function noteBuild() {
  const { edge } = edgeNames();
  const protocol = edge ? await speaks(client(edge)) : "";
  writeFileSync(record, `${JSON.stringify({ protocol, sources: sources() })}\n`);
  return protocol;
}

function check() {
  if (!existsSync(record)) return; // the program says itself that it has no pages
  if (JSON.parse(readFileSync(record, "utf8")).sources === sources()) return;
  console.error("note: the browser's pages in web/dist were built from other sources than lie here now: make web builds them anew");
}

async function bundle(entry, options) {
  const made = await esbuild.build({
    absWorkingDir: here, entryPoints: [entry], bundle: true, write: false, minify: true, target: "es2022",
    legalComments: "none", charset: "utf8", logLevel: "warning", ...options,
  });
  return made.outputFiles;
}

/** A module's exports, its imports bundled. */
async function exportsOf(entry) {
  const [made] = await bundle(entry, { format: "esm", outfile: "module.js" });
  return { contents: made.contents, exports: await import(`data:text/javascript;base64,${Buffer.from(made.contents).toString("base64")}`) };
}

/** The catalogues: English, and the others with the module that each is. */
async function catalogues() {
  const en = { ...(await exportsOf("src/language/en.ts")).exports.en, ...(await exportsOf("src/language/en-later.ts")).exports.later };
  const others = [];
  for (const file of readdirSync(join(here, "src/language")).filter((f) => /^[a-z]{2,3}\.ts$/.test(f) && f !== "en.ts").sort()) {
    const { contents, exports } = await exportsOf(`src/language/${file}`);
    others.push({ ...exports.default, contents });
  }
  return { en, others };
}

/** English, which pages hold, and the others, each a file that pages fetch where they speak it. */
async function buildLanguages() {
  const { en, others } = await catalogues();
  return { en, others: others.map(({ tag, name, messages, contents }) => ({ tag, name, messages, file: `assets/${asset(`language-${tag}`, ".js", contents).name}` })) };
}

const escaped = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

/** A page with what several have in common put in. */
const whole = (page) => readFileSync(join(here, "pages", page), "utf8")
  .replace(/<!--part (\w+)-->\n/g, (_, part) => readFileSync(join(here, "pages/parts", `${part}.html`), "utf8"));

/** Puts English where a page's HTML names a message, so that it is read before any script has run. */
function filled(html, { en, others }) {
  const english = (key) => {
    if (typeof en[key] !== "string") throw new Error(`a page names the message ${key}, which English does not have`);
    return escaped(en[key]);
  };
  const every = (key) => [{ tag: "en", messages: en }, ...others].map(({ tag, messages }) => `<p class="failed" lang="${tag}">${escaped(messages[key])}</p>`).join("");
  return html.replace(/(<(\w+)[^>]* data-say="([^"]+)"[^>]*>)(?=<\/\2>)/g, (whole, tag, _, key) => tag + english(key))
    .replace(/ data-label="([^"]+)"/g, (whole, key) => `${whole} aria-label="${english(key)}"`)
    .replace(/(<noscript) data-every="([^"]+)">/g, (_, tag, key) => `${tag}>${every(key)}`);
}

async function buildPages() {
  const protocol = await noteBuild();
  const [worker] = await bundle("edge/src/worker.ts", { format: "iife", outfile: "worker.js", alias: { "go-wasm-exec": loader() } });
  const workerName = asset("worker", ".js", worker.contents).name;
  const [recorder] = await bundle("src/join/recorder.worklet.ts", { format: "esm", outfile: "recorder.js" });
  const recorderName = asset("recorder", ".js", recorder.contents).name;
  const edge = edgeNames(), languages = await buildLanguages(), parts = new Set(), kept = {};
  for (const page of readdirSync(join(here, "pages")).filter((f) => f.endsWith(".html"))) {
    const name = basename(page, ".html");
    const entry = name === "index" ? "join" : name;
    const files = await bundle(`src/${entry}.ts`, {
      format: "esm", outdir: "out", splitting: true, chunkNames: "part-[name]-[hash]",
      define: {
        RECORDER_URL: JSON.stringify(`assets/${recorderName}`),
        WORKER_URL: JSON.stringify(`assets/${workerName}`),
        EDGE_URL: JSON.stringify(edge.edge && `assets/${edge.edge}`),
        LANGUAGES: JSON.stringify(languages.others.map(({ tag, name, file }) => ({ tag, name, file }))),
        PROTOCOL: JSON.stringify(protocol),
        EDGE_FULL_URL: JSON.stringify(edge["edge-full"] && `assets/${edge["edge-full"]}`),
      },
    });
    let html = filled(whole(page), languages);
    for (const file of files) {
      const extension = file.path.endsWith(".css") ? ".css" : ".js", part = basename(file.path);
      if (part.startsWith("part-")) { // of the script, or what it fetches later
        if (entry === "join") kept[`assets/${part}`] = integrity(file.contents);
        parts.add(part);
        if (!existsSync(join(assets, `${part}.br`))) emit(`assets/${part}`, file.contents);
        if (part.startsWith("part-chunk-")) html = html.replace("<link rel=\"stylesheet\"", `<link rel="modulepreload" href="assets/${part}">\n$&`);
        continue;
      }
      const { name } = asset(entry, extension, file.contents);
      if (entry === "join") kept[`assets/${name}`] = integrity(file.contents);
      html = html.replaceAll(`${entry}${extension}"`, `assets/${name}"`);
    }
    if (entry === "join") kept["./"] = integrity(html);
    emit(page, html);
  }
  for (const old of readdirSync(assets)) if (old.startsWith("part-") && !parts.has(old.replace(/\.br$/, ""))) rmSync(join(assets, old));
  for (const file of ["favicon.svg", "manifest.json", "icon-192.png", "icon-512.png"]) emit(file, readFileSync(join(here, "pages", file)));
  // What a browser keeps of the join page for the time after its coordinator, by hashes: src/join/keep.ts.
  for (const name of [workerName, recorderName, ...Object.values(edge), ...languages.others.map((l) => basename(l.file))].filter(Boolean)) {
    kept[`assets/${name}`] = integrity(plainOf(`assets/${name}`));
  }
  emit("page.json", JSON.stringify(kept));
  const [sw] = await bundle("src/sw.ts", { format: "iife", outfile: "sw.js" });
  emit("sw.js", sw.contents);
}

/** The texts of the join page that the package's element shows, by language. */
async function consentWords() {
  const { en, others } = await catalogues();
  const wanted = /^(limit|state)\.|^(join|trust|plain\.stop|data\.file|asks\.(who|nobody|unconfirmed)|limits\.(title|decide|own|accept)|device\.(pause|resume|stop))$/;
  const all = Object.keys(en).filter((key) => wanted.test(key));
  for (const key of ["join", "trust", "plain.stop", "data.file", "asks.who", "asks.nobody", "asks.unconfirmed", "limits.title", "limits.own", "limits.accept", "state.round", "device.stop"]) {
    if (!all.includes(key)) throw new Error(`<starling-consent> shows the message ${key}, which English does not have`);
  }
  return Object.fromEntries([{ tag: "en", messages: en }, ...others].map(({ tag, messages }) => [tag, Object.fromEntries(all.map((key) => [key, messages[key]]))]));
}

/**
 * The npm package: the program packed as it lies in dist/, whose worker unpacks it, so that no site has to set up
 * anything for it; the rest is small.
 */
async function buildPackage() {
  const out = join(here, "edge/dist");
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const put = async (name, entry, options) => {
    const [made] = await bundle(`edge/src/${entry}.ts`, { outfile: name, ...options });
    writeFileSync(join(out, name), made.contents);
  };
  await put("worker.js", "worker", { format: "iife", alias: { "go-wasm-exec": loader() } });
  await put("index.js", "index", { format: "esm", minify: false });
  const node = { format: "esm", minify: false, external: ["node:*"] };
  await put("node.js", "node", node);
  await put("node-worker.js", "node-worker", node);
  await put("consent.js", "consent", { format: "esm", minify: false, external: ["./index.js"], define: { CONSENT_WORDS: JSON.stringify(await consentWords()) } });
  // A script that is no module knows its address while it is run, and not later.
  await put("edge.global.js", "index", { format: "iife", globalName: "Starling", define: { "import.meta.url": "starlingAt" },
    banner: { js: "var starlingAt=globalThis.document?.currentScript?.src??location.href;" } });
  for (const [name, file] of Object.entries(edgeNames())) {
    if (!file) throw new Error(`${name} is not built: node build.mjs edge`);
    copyFileSync(join(assets, `${file}.br`), join(out, `${name}.bin.br`));
    writeFileSync(join(out, `${name}.bin.gz`), gzipSync(packed(file), { level: 9 }));
  }
  execFileSync(join(here, "node_modules/.bin/tsc"), ["-p", "tsconfig.package.json"], { cwd: here, stdio: "inherit" });
}

mkdirSync(assets, { recursive: true });
// Earlier builds left each file as gzip too.
for (const folder of [dist, assets]) for (const old of readdirSync(folder)) if (old.endsWith(".gz")) rmSync(join(folder, old));
if (what === "check") check();
else if (what === "package") await buildPackage();
else {
  if (what !== "pages") buildEdge();
  if (what !== "edge") await buildPages();
}
