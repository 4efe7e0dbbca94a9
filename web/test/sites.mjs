// Servers of other people's sites: folders, each at an origin of its own, with nothing set up for the package.
import { createReadStream, existsSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";

const kinds = { ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".gz": "application/gzip",
  ".svg": "image/svg+xml", ".json": "application/json" };

/** Serves a folder, and files beside it by their paths; ended with the test. Yields the origin. */
export async function site(t, folder, { beside = {}, headers = {} } = {}) {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://x");
    const name = pathname.endsWith("/") ? `${pathname}index.html` : pathname;
    const path = beside[name] ?? join(folder, normalize(name));
    if (!existsSync(path) || !statSync(path).isFile()) return response.writeHead(404, headers).end();
    response.writeHead(200, { "Content-Type": kinds[extname(path)] ?? "application/octet-stream", ...headers });
    createReadStream(path).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}`;
}
