// Debian's nginx and Caddy in front of a coordinator, below a path, as an operator would have them.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "./fleet.mjs";

const programs = { nginx: process.env.NGINX ?? "/usr/sbin/nginx", caddy: process.env.CADDY ?? "/usr/bin/caddy" };

export const present = (name) => spawnSync(programs[name], [name === "nginx" ? "-v" : "version"]).status === 0;

/** A port of this machine that nobody has now, below those (from 32768 on) that the system gives away until it is used. */
export async function freePort() {
  for (let i = 0; i < 100; i++) {
    const server = createServer(), port = 20_000 + Math.floor(12_000 * Math.random());
    const free = await new Promise((resolve) => server.once("error", () => resolve(false)).listen(port, "127.0.0.1", () => resolve(true)));
    if (!free) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
  throw new Error("no port is free");
}

// What an operator would write, of each: docs/OPERATE.md has the same lines.
const settings = {
  nginx: ({ dir, port, path, upstream, lines }) => `
daemon off; master_process off; pid ${dir}/pid; error_log stderr warn;
events {}
http {
  access_log ${dir}/access.log; ${["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((n) => `${n}_temp_path ${dir}/${n};`).join(" ")}
  server {
    listen 127.0.0.1:${port};
    location /${path}/ {
      proxy_pass http://${upstream}/;
      proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $http_connection;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_read_timeout 1h;
      ${lines}
    }
  }
}`,
  caddy: ({ port, path, upstream }) => `
{
  admin off
  auto_https off
  log {
    level WARN
  }
}
http://127.0.0.1:${port} {
  redir /${path} /${path}/
  handle_path /${path}/* {
    reverse_proxy ${upstream}
  }
}`,
};

const commands = {
  nginx: (dir, file) => ["-c", file, "-p", dir, "-e", "stderr"],
  caddy: (dir, file) => ["run", "--adapter", "caddyfile", "--config", file],
};

/** Serves http://127.0.0.1:port/path/ from the coordinator at upstream, host:port; lines go into nginx's location. */
export async function proxy(t, name, { port, path, upstream, lines = "" }) {
  const dir = mkdtempSync(join(tmpdir(), `starling-${name}-`)), file = join(dir, "configuration");
  writeFileSync(file, settings[name]({ dir, port, path, upstream, lines }));
  const child = spawn(programs[name], commands[name](dir, file),
    { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, XDG_DATA_HOME: dir, XDG_CONFIG_HOME: dir } });
  let err = "";
  child.stderr.on("data", (d) => { err += d; });
  const done = new Promise((resolve) => child.on("close", resolve));
  t.after(async () => {
    child.kill("SIGTERM");
    await done;
    rmSync(dir, { recursive: true, force: true });
  });
  await until(name, async () => {
    if (child.exitCode !== null) throw new Error(`${name} ended: ${err}`);
    return fetch(`http://127.0.0.1:${port}/${path}/healthz`).then((r) => r.ok, () => false);
  }, () => err);
  return { said: () => err };
}
