// The built pages, served beside a coordinator that a test plays.
import { createServer } from "node:http";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const dist = fileURLToPath(new URL("../dist/", import.meta.url));
const kinds = { html: "text/html; charset=utf-8", js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8", svg: "image/svg+xml", json: "application/json" };

export const { protocol } = JSON.parse(readFileSync(`${dist}built.json`, "utf8"));

/** Serves what answer(request, response, path) does not, and the same below a/: true says that it did. Yields the address, which ends in a slash. */
export async function serve(t, answer) {
  const server = createServer((request, response) => {
    const pathname = new URL(request.url, "http://x").pathname.replace(/^\/a\//, "/");
    if (answer(request, response, pathname)) return;
    const name = { "/": "index.html", "/dashboard": "dashboard.html" }[pathname] ?? pathname.slice(1);
    const path = [`${dist}${name}.br`, `${dist}${name}`].find((p) => /^[\w./-]+$/.test(name) && existsSync(p));
    if (!path) return response.writeHead(404).end();
    response.writeHead(200, { "Content-Type": kinds[name.split(".").at(-1)] ?? "application/octet-stream", ...(path.endsWith(".br") ? { "Content-Encoding": "br" } : {}) });
    response.end(readFileSync(path));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}/`;
}
