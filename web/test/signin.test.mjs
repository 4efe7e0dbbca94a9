// Somebody signs in by an OpenID provider, in the browser's own terms of cookies, redirects and origins:
// from a job's dashboard to which they come back, with the address's token taken out of it, and out again.
import assert from "node:assert/strict";
import { createHash, createSign, generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { accessible } from "./axe.mjs";
import { inDark, names } from "./browsers.mjs";
import { open, openTab, shot, start, textOf, until } from "./fleet.mjs";

const base64url = (o) => Buffer.from(typeof o === "string" ? o : JSON.stringify(o)).toString("base64url");

/** A provider with one person, who is asked on a page of its own, so that a real navigation leads back. */
async function provider(t) {
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const begun = new Map();
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, issuer), json = (o) => response.setHeader("Content-Type", "application/json").end(JSON.stringify(o));
    switch (url.pathname) {
      case "/.well-known/openid-configuration":
        return json({ issuer, authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token`, jwks_uri: `${issuer}/keys` });
      case "/keys":
        return json({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "one", use: "sig", alg: "RS256" }] });
      case "/authorize": {
        const back = new URL(url.searchParams.get("redirect_uri"));
        back.searchParams.set("code", String(begun.size));
        back.searchParams.set("state", url.searchParams.get("state"));
        begun.set(String(begun.size), url.searchParams);
        response.setHeader("Content-Type", "text/html");
        return response.end(`<form method="post" action="${issuer}/consent?to=${encodeURIComponent(back.href)}"><button id="yes">I am Ada</button></form>`);
      }
      case "/consent":
        return response.writeHead(303, { Location: url.searchParams.get("to") }).end();
      case "/token": {
        let body = "";
        for await (const piece of request) body += piece;
        const form = new URLSearchParams(body), of = begun.get(form.get("code"));
        assert.equal(createHash("sha256").update(form.get("code_verifier")).digest("base64url"), of.get("code_challenge"));
        const now = Math.floor(Date.now() / 1000);
        const signed = `${base64url({ alg: "RS256", kid: "one" })}.${base64url({ iss: issuer, aud: "starling", sub: "1", nonce: of.get("nonce"), iat: now, exp: now + 600,
          email: "ada@example.org", email_verified: true, groups: ["staff"] })}`;
        return json({ access_token: "a", token_type: "Bearer", id_token: `${signed}.${createSign("RSA-SHA256").update(signed).sign(privateKey, "base64url")}` });
      }
    }
    response.writeHead(url.pathname === "/favicon.ico" ? 204 : 404).end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => { server.closeAllConnections(); server.close(); });
  const issuer = `http://localhost:${server.address().port}`; // another site than 127.0.0.1
  return issuer;
}

for (const name of names) {
  test(`${name} signs in by an OpenID provider, and out`, { timeout: 240_000 }, async (t) => {
    const dir = mkdtempSync(join(tmpdir(), "starling-signin-")), state = join(dir, "state"), issuer = await provider(t);
    writeFileSync(join(dir, "invoices.yaml"), `
name: invoices
labels: [a, b]
rounds: 2
cohort: {population: 4, floor: 3}
shard: {size: 8, floor: 3, corrupt: 0, breach_bits: 0}
privacy: {simulated_population: 1000000, simulated_cohort: 10000}
`);
    assert.equal(await start(["job", "submit", "--dir", state, join(dir, "invoices.yaml")]).done, 0);
    const server = start(["serve", "--dir", state, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
      "--oidc-issuer-url", issuer, "--oidc-client-id", "starling", "--oidc-operator", "staff"]);
    t.after(async () => {
      server.child.kill("SIGKILL");
      await server.done;
      rmSync(dir, { recursive: true, force: true });
    });
    const address = (await until("the page", () => /in a browser: (\S+)#/.exec(server.err)?.[1], () => server.err));
    await until("the issuer", () => /operators sign in by/.test(server.err), () => server.err);
    await until("the job", () => /job invoices: join/.test(server.err), () => server.err);
    const dashboard = address.replace("/dashboard", "/jobs/invoices/dashboard");
    const { tab, faults } = await openTab(await open(t, name), dashboard, { width: 1280, height: 900 });
    const offered = () => tab.$eval("#sign-in-link", (a) => a.offsetParent !== null && a.textContent);
    assert.equal(await until("the offer", offered, () => textOf(tab, "main")), `Sign in with ${new URL(issuer).host}`);
    await accessible(tab, "who is there");
    await inDark(tab, () => accessible(tab, "who is there, dark"));
    await shot(tab, `${name}-signin`);
    const leave = async (selector) => { await Promise.all([tab.waitForNavigation(), tab.click(selector)]); };
    await leave("#sign-in-link");
    await tab.waitForSelector("#yes");
    await leave("#yes");
    await until("the dashboard", async () => await textOf(tab, "#who").catch(() => "") === `for ada@example.org (${new URL(issuer).host}), operator`, () => tab.url());
    assert.equal(tab.url(), dashboard, "the token is out of the address, and the page is the one that was left");
    assert.deepEqual(await tab.evaluate(() => document.cookie), "");
    await accessible(tab, "signed in");
    await shot(tab, `${name}-signedin`);
    await tab.reload();
    await until("the session after a reload", () => tab.$eval("#sign-out", (b) => !b.hidden), () => textOf(tab, "main"));
    const session = await tab.evaluate(() => sessionStorage.getItem("starling-admin"));
    await tab.click("#sign-out");
    assert.match(await until("the question", offered, () => textOf(tab, "main")), /^Sign in with/);
    const after = await tab.evaluate(async (token) => (await fetch("v1/admin/who.json", { headers: { Authorization: `Bearer ${token}` } })).status, session);
    assert.equal(after, 401, "the session is over at the coordinator, too");
    // A link of somebody else's session opens nothing.
    await tab.goto("about:blank");
    await tab.goto(`${dashboard}#${session}`);
    assert.match(await until("the question", offered, () => textOf(tab, "main")), /^Sign in with/);
    assert.equal(await tab.evaluate(() => sessionStorage.getItem("starling-admin") ?? ""), "");
    assert.deepEqual(faults.filter((f) => !/401/.test(f)), []);
  });
}
