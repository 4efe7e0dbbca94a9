// The package's element: it says who asks and what is asked for beyond a visitor's limits, in their language; only what is
// accepted line by line is joined; and it can be used with a screen reader, and by React.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { accessible } from "./axe.mjs";
import { names } from "./browsers.mjs";
import { fleet, open, openTab, shot, until } from "./fleet.mjs";
import { furnished, workshop } from "./installed.mjs";
import { site } from "./sites.mjs";

/** What of the element matches a selector, through its shadow. */
const inside = (selector) => `starling-consent >>> ${selector}`;
const text = (tab, selector) => tab.$$eval(inside(selector), (es) => es.map((e) => e.textContent).join("\n"));
const status = (tab) => text(tab, "[role=status]");

/** A page of somebody's, with a script that puts the element into main. */
const page = (script) => `<!doctype html><html lang="de"><meta charset="utf-8"><link rel="icon" href="data:,"><title>Unsere Seite</title>
<h1>Unsere Seite</h1><main></main><script type="module" src="./${script}"></script></html>`;

/** What is heard of the element, and where it finds the coordinator. */
const hears = `window.heard = [];
const { searchParams } = new URL(location.href), url = searchParams.get("coordinator"), token = searchParams.get("token");
`;

/** By hand, from the package's own files; and by React, bundled by esbuild. */
const ways = {
  plain: (folder) => writeFileSync(join(folder, "plain.js"), `import "./dist/consent.js";
${hears}const consent = document.createElement("starling-consent");
for (const [name, value] of Object.entries({ url, token, lang: "de" })) consent.setAttribute(name, value);
consent.addEventListener("finished", ({ detail }) => window.heard.push(detail.totals.rounds));
document.querySelector("main").append(consent);`),
  react: (folder) => {
    cpSync(join(workshop, "../../../examples/web/Consent.tsx"), join(folder, "Consent.tsx"));
    writeFileSync(join(folder, "main.tsx"), `import { createRoot } from "react-dom/client";
import { Consent } from "./Consent";
${hears}createRoot(document.querySelector("main")!).render(<Consent url={url!} token={token!} lang="de" onFinished={(p) => (window as any).heard.push(p.totals.rounds)} />);`);
    execFileSync(join(workshop, "../../node_modules/.bin/esbuild"), ["main.tsx", "--bundle", "--format=esm", "--jsx=automatic", "--outfile=dist/react.js"], { cwd: folder });
    writeFileSync(join(folder, "react.js"), 'import "./dist/react.js";');
  },
};

for (const name of names) {
  test(`${name}: the element of the package asks, and takes part`, { timeout: 300_000 }, async (t) => {
    const { dir, at } = furnished();
    const way = name === "chrome" ? "react" : "plain";
    const folder = join(dir, `consent-${name}`);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "index.html"), page(`${way}.js`));
    ways[way](folder);
    const beside = {};
    for (const file of ["consent.js", "index.js", "worker.js", "edge.bin.gz"]) beside[`/dist/${file}`] = join(at, "dist", file);
    const origin = await site(t, folder, { beside });
    const job = await fleet(t, { rounds: 1, natives: 3, floor: 4, serveFlags: ["--allow-origin", origin], extra: "about: {organisation: 'Klinik Nord', purpose: 'Briefe sortieren'}" });
    const there = new URL(job.page);
    const browser = await open(t, name);
    const { tab, faults } = await openTab(browser, `${origin}/?${new URLSearchParams({ coordinator: there.origin, token: there.hash.slice(1) })}`);
    const story = async () => `${await text(tab, "section")} ${faults}\n${await job.story(tab, "head")}`;

    await until("who asks", async () => /^Klinik Nord .*: Briefe sortieren \(Nicht/.test(await text(tab, "#who")), story);
    assert.equal(await tab.$eval(inside("[data-name=join]"), (b) => b.disabled), true, "nothing was chosen");
    await (await tab.$(inside("input[type=file]"))).uploadFile(job.files[3]);
    await until("the button", () => tab.$eval(inside("[data-name=join]"), (b) => !b.disabled), story);
    await accessible(tab, "before joining");
    await tab.$eval(inside("[data-name=join]"), (b) => { b.focus(); b.click(); });

    await until("the limits", async () => (await tab.$$(inside("li"))).length > 0, story);
    assert.match(await text(tab, "li"), /Der Auftrag zählt schon 3 Geräte zusammen. Grenze dieses Geräts: mindestens 8\./);
    assert.equal(await tab.evaluate(() => document.querySelector("starling-consent").shadowRoot.activeElement?.dataset.name), "limits", "the question does not have the focus");
    assert.equal(await tab.$eval(inside("[data-name=accept]"), (b) => b.disabled), true, "accepted unread");
    await accessible(tab, "limits");
    await shot(tab, `${name}-consent-element`);
    const boxes = await tab.$$(inside("li input"));
    for (const box of boxes.slice(1)) await box.evaluate((b) => b.click());
    assert.equal(await tab.$eval(inside("[data-name=accept]"), (b) => b.disabled), true, "one of them was not accepted");
    await boxes[0].evaluate((b) => b.click());
    await tab.$eval(inside("[data-name=accept]"), (b) => b.click());
    job.joinNatives();
    await until("the end", async () => (await tab.evaluate(() => window.heard)).length > 0, story, 200_000);
    assert.deepEqual(await tab.evaluate(() => window.heard), [1], await story());
    assert.match(await status(tab), /^Fertig|1 Runde/);
    assert.deepEqual(faults.filter((f) => !/404/.test(f)), []); // this coordinator keeps no log, for one
  });
}
