// Debian's nginx in front of a coordinator, below a path, as an operator would have it.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "./fleet.mjs";

const program = process.env.NGINX ?? "/usr/sbin/nginx";

export const present = spawnSync(program, ["-v"]).status === 0;

/** A port of this machine that nobody has now. */
export async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Serves http://127.0.0.1:port/path/ from the coordinator at upstream, host:port; lines go into its location. */
export async function nginx(t, { port, path, upstream, lines = "" }) {
  const dir = mkdtempSync(join(tmpdir(), "starling-nginx-"));
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((n) => `${n}_temp_path ${dir}/${n};`).join(" ");
  writeFileSync(join(dir, "nginx.conf"), `
daemon off; master_process off; pid ${dir}/pid; error_log stderr warn;
events {}
http {
  access_log ${dir}/access.log; ${temporary}
  server {
    listen 127.0.0.1:${port};
    location /${path}/ {
      proxy_pass http://${upstream}/;
      proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $http_connection;
      proxy_read_timeout 1h;
      ${lines}
    }
  }
}`);
  const child = spawn(program, ["-c", join(dir, "nginx.conf"), "-p", dir, "-e", "stderr"], { stdio: ["ignore", "ignore", "pipe"] });
  let err = "";
  child.stderr.on("data", (d) => { err += d; });
  const done = new Promise((resolve) => child.on("close", resolve));
  t.after(async () => {
    child.kill("SIGTERM");
    await done;
    rmSync(dir, { recursive: true, force: true });
  });
  await until("nginx", async () => {
    if (child.exitCode !== null) throw new Error(`nginx ended: ${err}`);
    return fetch(`http://127.0.0.1:${port}/${path}/healthz`).then((r) => r.ok, () => false);
  }, () => err, 20_000);
  return { said: () => err };
}
