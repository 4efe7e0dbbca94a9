// The npm package as npm leaves it in another's project: packed, and unpacked there.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";

const web = fileURLToPath(new URL("..", import.meta.url));

/** Where bundlers, frameworks and other runtimes are, of pinned versions. */
export const workshop = fileURLToPath(new URL("recipes", import.meta.url));

/** Installs what the recipes are tried with, once. */
export function furnish() {
  if (existsSync(join(workshop, "node_modules"))) return;
  execFileSync("npm", ["ci", "--no-fund", "--no-audit", "--silent"], { cwd: workshop });
}

let dir;
after(() => { if (dir) rmSync(dir, { recursive: true, force: true }); });

/** A folder with the package in node_modules, and beside it what the workshop has there. */
export function installed() {
  const there = (at) => ({ dir, at: join(at, "node_modules/@starling-fl/edge") });
  if (dir) return there(dir);
  dir = mkdtempSync(join(tmpdir(), "starling-package-"));
  if (!process.env.PACKAGE_BUILT) execFileSync(process.execPath, ["build.mjs", "package"], { cwd: web });
  const [{ filename }] = JSON.parse(execFileSync("npm", ["pack", "--json", "--pack-destination", dir], { cwd: join(web, "edge"), encoding: "utf8" }));
  const { at } = there(dir);
  mkdirSync(at, { recursive: true });
  execFileSync("tar", ["-xzf", join(dir, filename), "-C", at, "--strip-components=1"]);
  return { dir, at };
}

/** Puts what the workshop has into the folder's node_modules. */
export function furnished() {
  furnish();
  const { dir, at } = installed();
  for (const name of readdirSync(join(workshop, "node_modules"))) {
    const to = join(dir, "node_modules", name);
    if (!name.startsWith(".") && !existsSync(to)) symlinkSync(join(workshop, "node_modules", name), to);
  }
  return { dir, at };
}
