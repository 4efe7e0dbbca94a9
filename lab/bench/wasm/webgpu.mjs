// A product of 512 x 512 x 512 in WGSL, in Chromium on its software adapter: which of its bits are those of class
// exact (every term multiplied, rounded, added in order, rounded), what becomes of subnormal numbers, and how long a
// submission and its answer take. What docs/RATIONALE.md says of WebGPU rests on it; nothing of it is in a product.
//
//   node webgpu.mjs [CHROMIUM]
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";

async function page() {
  const n = 512;
  const code = `
    @group(0) @binding(0) var<storage, read> a: array<f32>;
    @group(0) @binding(1) var<storage, read> b: array<f32>;
    @group(0) @binding(2) var<storage, read_write> c: array<f32>;
    var<workgroup> left: array<array<f32, 16>, 16>;
    var<workgroup> right: array<array<f32, 16>, 16>;
    @compute @workgroup_size(16, 16)
    fn main(@builtin(global_invocation_id) at: vec3u, @builtin(local_invocation_id) in: vec3u) {
      var sum = 0.0;
      for (var k = 0u; k < ${n}u; k += 16u) {
        left[in.y][in.x] = a[at.y * ${n}u + k + in.x];
        right[in.y][in.x] = b[(k + in.y) * ${n}u + at.x];
        workgroupBarrier();
        for (var i = 0u; i < 16u; i++) { sum = sum + left[in.y][i] * right[i][in.x]; }
        workgroupBarrier();
      }
      c[at.y * ${n}u + at.x] = sum;
    }`;
  const adapter = await navigator.gpu?.requestAdapter();
  if (!adapter) return { error: "no adapter" };
  const device = await adapter.requestDevice();
  const module = device.createShaderModule({ code });
  const pipeline = await device.createComputePipelineAsync({ layout: "auto", compute: { module, entryPoint: "main" } });
  const bytes = 4 * n * n;
  const buffer = (usage) => device.createBuffer({ size: bytes, usage });
  const { STORAGE, COPY_DST, COPY_SRC, MAP_READ } = GPUBufferUsage;
  const [a, b] = [buffer(STORAGE | COPY_DST), buffer(STORAGE | COPY_DST)];
  const [c, out] = [buffer(STORAGE | COPY_SRC), buffer(MAP_READ | COPY_DST)];
  const group = device.createBindGroup({
    layout: pipeline.getBindGroupLayout(0),
    entries: [a, b, c].map((buffer, binding) => ({ binding, resource: { buffer } })),
  });
  async function product(x, y, groups) {
    device.queue.writeBuffer(a, 0, x);
    device.queue.writeBuffer(b, 0, y);
    await device.queue.onSubmittedWorkDone();
    const began = performance.now();
    const commands = device.createCommandEncoder();
    const pass = commands.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group);
    pass.dispatchWorkgroups(groups, groups);
    pass.end();
    commands.copyBufferToBuffer(c, 0, out, 0, bytes);
    device.queue.submit([commands.finish()]);
    await out.mapAsync(GPUMapMode.READ);
    const ms = performance.now() - began;
    const result = new Float32Array(out.getMappedRange().slice(0));
    out.unmap();
    return { result, ms };
  }
  const fill = (f) => Float32Array.from({ length: n * n }, f);
  const x = fill(() => Math.random() - 0.5);
  const y = fill(() => Math.random() - 0.5);
  const { result, ms } = await product(x, y, n / 16);
  let exact = 0;
  const compared = 4096;
  for (let s = 0; s < compared; s++) {
    const at = Math.floor(Math.random() * n * n);
    const row = Math.floor(at / n) * n;
    let sum = 0;
    for (let k = 0; k < n; k++) sum = Math.fround(sum + Math.fround(x[row + k] * y[k * n + (at % n)]));
    if (Object.is(sum, result[at])) exact++;
  }
  // 2^-140 + 2^-140 + ...: not zero where subnormal numbers are kept.
  const tiny = await product(fill((_, i) => (i % n === 0 ? 2 ** -140 : 0)), fill(() => 1), 1);
  let least = Infinity;
  for (let i = 0; i < 20; i++) least = Math.min(least, (await product(x, y, 1)).ms);
  const { vendor, architecture, description } = adapter.info;
  return {
    adapter: [vendor, architecture, description].filter(Boolean).join(" "),
    browser: navigator.userAgent,
    compared,
    exact,
    product_ms: ms,
    submission_ms: least,
    subnormal_kept: tiny.result[0] !== 0,
  };
}

const html = `<script type="module">${page}
page().catch((e) => ({ error: String(e) })).then((r) => fetch("/", { method: "POST", body: JSON.stringify(r) }));</script>`;
const profile = mkdtempSync(path.join(tmpdir(), "webgpu-"));
let browser;
const server = createServer((req, res) => {
  if (req.method !== "POST") return res.setHeader("content-type", "text/html").end(html);
  let body = "";
  req.on("data", (part) => (body += part));
  req.on("end", () => {
    console.log(body);
    res.end();
    finish(JSON.parse(body).error ? 1 : 0);
  });
}).listen(0, "127.0.0.1", () => {
  browser = spawn(process.argv[2] ?? "chromium", [
    "--headless=new",
    "--no-sandbox",
    "--enable-unsafe-webgpu",
    "--use-webgpu-adapter=swiftshader",
    "--enable-features=Vulkan",
    `--user-data-dir=${profile}`, `http://127.0.0.1:${server.address().port}/`,
  ], { stdio: "ignore" });
});
const timer = setTimeout(() => {
  console.error("webgpu: no answer in 3 minutes");
  finish(1);
}, 180_000);

function finish(code) {
  clearTimeout(timer);
  const end = () => {
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    process.exit(code);
  };
  if (browser.exitCode !== null || browser.signalCode !== null) return end(); // it did not even start
  browser.once("exit", end);
  browser.kill();
}
