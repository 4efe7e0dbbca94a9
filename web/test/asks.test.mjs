// Who asks, and the picture of what leaves: at the top, confirmed by a domain or said not to be.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible } from "./axe.mjs";
import { names } from "./browsers.mjs";
import { open, openTab, shot, textOf, until } from "./fleet.mjs";
import { protocol, serve } from "./pages.mjs";

const guarantee = (epsilon) => ({ epsilon, epsilon_lower: 0, delta: 1e-6, adjacency: "add/remove", accountant: "tight", sampling: "poisson", rounds: 2, rdp_epsilon: epsilon, rdp_order: 8 });
const usual = { job: "triage", id: "00", task: "classify", labels: ["urgent", "other"], rounds: 12, private: true, protects: "device", shard_floor: 40, sampling_rate: 0.5,
  base_bytes: 22_900_000, needs_secret: false, protocol, delivered: guarantee(2), untrusted: guarantee(8) };
const said = (address) => ({ organisation: "Riverside Clinics", purpose: "Nurses see urgent messages first.", receives: "our six clinics, nobody else",
  contact: "privacy@clinic.example", terms: "https://clinic.example/terms", until: "2099-01-31", domain: "clinic.example", address, signature: "AA" });

for (const name of names) {
  test(`${name} says who asks and whether their domain confirms it`, { timeout: 240_000 }, async (t) => {
    let about = usual;
    const address = await serve(t, (_, response, path) => {
      if (path === "/v1/job") return response.end(JSON.stringify(about)), true;
      if (path === "/v1/status") return response.end(JSON.stringify({ private: true, state: "waiting", round: 0, version: 0, rounds: 12 })), true;
      return false;
    });
    const browser = await open(t, name), host = new URL(address).host;
    const cases = {
      confirmed: [{ verified: true }, {}, "clinic.example confirms this."],
      refuted: [{ verified: false }, {}, `Not confirmed: clinic.example did not sign this for ${host}.`],
      // What a domain signed for another address is shown as not its own, though this coordinator says otherwise.
      copied: [{ verified: true }, { address: "https://learn.clinic.example" }, `Not confirmed: clinic.example did not sign this for ${host}.`],
      "beside it": [{ verified: true }, { address: address.replace(/\/$/, "").slice(0, -1) }, `Not confirmed: clinic.example did not sign this for ${host}.`],
      unsigned: [{}, { domain: undefined, signature: undefined, address: undefined }, "Not confirmed: anybody can write this."],
      hostile: [{ verified: true }, { organisation: "<img src=x onerror=alert(1)>".repeat(40), terms: "javascript:alert(1)", domain: undefined, until: "never" }, "Not confirmed: anybody can write this."],
    };
    for (const [kind, [of, change, confirmed]] of Object.entries(cases)) {
      about = { ...usual, ...of, asks: { ...said(address), ...change } };
      const { tab } = await openTab(browser, address, { width: 1280, height: 900 });
      await until(kind, async () => await textOf(tab, "#asks-confirmed") === confirmed, () => textOf(tab, "#asks"));
      const who = await textOf(tab, "#asks-title");
      if (kind === "hostile") {
        assert.ok(who.startsWith("<img src=x") && who.length < 400, who);
        assert.equal(await tab.$("#asks a, #asks img"), null);
        assert.doesNotMatch(await textOf(tab, "#asks-lines"), /never|Terms/);
      } else {
        assert.equal(who, "Riverside Clinics asks for your help");
        assert.equal(await textOf(tab, "#asks-purpose"), "Nurses see urgent messages first.");
        assert.match(await textOf(tab, "#asks-lines"), /Gets the model\s*our six clinics, nobody else\s*Until\s*(31 Jan|Jan 31,) 2099\s*Questions\s*privacy@clinic.example\s*Terms\s*clinic.example\/terms/);
      }
      assert.match(await textOf(tab, ".flow"), /Stays here\s*your data\s*Leaves\s*a masked update\s*Can be read\s*the sum of 40 or more devices/);
      // It stands above what the job gives, and before it for those who listen.
      assert.ok(await tab.evaluate(() => document.getElementById("asks").compareDocumentPosition(document.getElementById("given")) & Node.DOCUMENT_POSITION_FOLLOWING), "it comes first");
      await accessible(tab, kind);
      if (kind === "confirmed") await shot(tab, `${name}-join-asks`, { fullPage: true });
      if (kind === "hostile") {
        await tab.setViewport({ width: 390, height: 844 });
        assert.ok(await tab.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing is wider than a phone");
      }
      await tab.close();
    }
    // A job that says nothing is said to; one that is over is said to be; what anybody can unmask is called that.
    about = { ...usual, private: false, delivered: undefined, untrusted: undefined, asks: undefined };
    const { tab } = await openTab(browser, address, { width: 390, height: 844 });
    await until("nobody", async () => await textOf(tab, "#asks-title") === `${host} does not say who asks`, () => textOf(tab, "#asks"));
    assert.match(await textOf(tab, ".flow"), /an update that anybody can unmask\s*Can be read\s*each update/);
    await accessible(tab, "nobody");
    about = { ...usual, asks: { ...said(address), until: "2020-01-31" }, verified: true };
    await tab.reload();
    await until("the end", async () => /2020: over\. Ask before you join\./.test(await textOf(tab, "#asks-lines")), () => textOf(tab, "#asks"));
    await accessible(tab, "over");
    await shot(tab, `${name}-join-asks-phone`, { fullPage: true });
  });
}
