// What a person reads above Join, of jobs of every kind: a verdict and two lines in plain words
// that say no more than the job's guarantees do, and ε and δ one step below.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as esbuild from "esbuild";
import { accessible } from "./axe.mjs";
import { names } from "./browsers.mjs";
import { open, openTab, shot, textOf, until } from "./fleet.mjs";
import { protocol, serve } from "./pages.mjs";

const guarantee = (epsilon) => ({ epsilon, epsilon_lower: 0, delta: 1e-6, adjacency: "add/remove", accountant: "tight", sampling: "poisson", rounds: 2, rdp_epsilon: epsilon, rdp_order: 8 });
const usual = { job: "plain", id: "00", task: "classify", labels: ["a", "b"], rounds: 12, private: true, protects: "device", shard_floor: 40, sampling_rate: 0.5,
  base_bytes: 22_900_000, needs_secret: false, protocol, delivered: guarantee(2) };

/** Jobs, and what is said of them one step below, in odds. */
const jobs = {
  strong: [{}, /If the operator keeps its word, nobody gets over 7\.4 times surer that you took part/],
  observed: [{ visible: guarantee(6) }, /over 410 times surer/], // e^6 is 403.4: never said smaller
  providers: [{ protects: "provider" }, /surer that somebody in your file took part/],
  own: [{ untrusted: guarantee(8) }, /Even if the operator lies, nobody gets over 3,000 times surer that you took part/],
  "own, too little": [{ untrusted: guarantee(1e8) }, /If the operator keeps its word/],
  "own, of providers": [{ protects: "provider", untrusted: guarantee(8) }, /surer that somebody in your file took part/],
  weak: [{ delivered: guarantee(1e8) }, /Do not count on noise/],
  simulated: [{ simulated: guarantee(1), simulated_population: 1e6, delivered: guarantee(3) }, /Do not count on noise/],
  none: [{ private: false, delivered: undefined }, /with data that anybody may see/],
};

/** The grade at school by Flesch and Kincaid; seven is twelve years of age. */
function grade(text) {
  const words = text.split(/\s+/), sentences = text.split(/[.;:](?:\s|$)/).filter(Boolean).length;
  const syllables = (w) => /\d/.test(w) ? 1 : Math.max(1, w.toLowerCase().replace(/[^a-z]/g, "").replace(/(?:[^laeiouy]e|ed|[^laeiouy]es)$/, "").match(/[aeiouy]{1,2}/g)?.length ?? 1);
  return 0.39 * words.length / sentences + 11.8 * words.reduce((n, w) => n + syllables(w), 0) / words.length - 15.59;
}

/** What the page says of a job, in English. */
async function says() {
  const built = await esbuild.build({ stdin: { contents: 'export * from "./plain.js"; export * from "./given.js"; export * from "./verdict.js";', resolveDir: new URL("../src/join", import.meta.url).pathname },
    bundle: true, format: "esm", write: false, define: { LANGUAGES: "[]" } });
  return import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].contents).toString("base64")}`);
}

const words = (text) => text.split(/\s+/).length;

test("the verdict and the lines below it stay short and plain, and never say less than is so", async () => {
  const { plain, here, verdict, ofLine, given, known } = await says();
  const round = { batch: 8, steps: 100, epochs: 2, down: 1_200_000, up: 150_000 };
  const beyond = (...keys) => keys.map((key) => ({ key, what: "", why: "", have: "0", want: "" }));
  for (const [kind, [of, odds]] of Object.entries(jobs)) {
    const about = { ...usual, ...of, round };
    assert.match(String(given(about)[0]), odds, kind);
    const lines = plain(about).map(String);
    assert.deepEqual(lines, ["Loads 24.1 MB (8 photos) once, then 1.4 MB (less than a photo) each round.", "Stop anytime; what you sent stays in the model."], kind);
    for (const [limits, local, groups, light, title, text] of [
      [{ beyond: [], example_bits: 6.2213, bits: 500 }, false, 0, "good", /^Within your device's limits$/, /at most 6\.3 bits about any one example can leave this device, whoever lies; that is about 7 characters\.$/],
      [{ beyond: [], example_bits: 0.1, bits: 1 }, false, 0, "good", /^Within/, /at most 0\.1 bits .* about 1 character\.$/],
      [{ beyond: [] }, true, 0, "good", /^Your own coordinator/, /^It could read your files anyway/],
      [{ beyond: beyond("uplinks"), example_bits: 57, bits: 500 }, false, 1, "ask", /^1 thing needs your yes$/, /at most 57 bits/],
      [{ beyond: beyond("uplinks", "shard") }, true, 2, "ask", /^2 things need your yes$/, /^It could read your files anyway/],
      [{ beyond: beyond("own_noise", "example_bits", "bits") }, false, 1, "bad", /^Only the operator's honesty/, /^Nothing else bounds/],
      [{ beyond: [] }, false, 0, "bad", /^Only the operator's honesty/, /^Nothing else bounds/],
      [undefined, false, 0, "", /checking/, /./],
      [null, false, 0, "", /^Not checked yet$/, /asks you then\.$/],
    ]) {
      const v = verdict(about, limits, local, groups), all = [v.title, v.text, ...lines].join(" ");
      if (about.private) {
        assert.equal(v.light, light, `${kind}: ${all}`);
        assert.match(String(v.title), title, kind);
        assert.match(String(v.text), text, kind);
      } else {
        assert.equal(v.light, "bad", "what is not private is never called anything else");
      }
      assert.ok(words(all) <= 60, `${kind}: ${words(all)} words: ${all}`);
      assert.ok(grade(`${v.title}. ${v.text} ${lines.join(" ")}`) <= 8, `${kind}: reads like grade ${grade(all).toFixed(1)}: ${all}`);
      assert.doesNotMatch(all, /[εδ]|epsilon|delta|shard|10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]/, kind);
    }
  }
  // What bits say is never said smaller: over many amounts.
  for (let bits = 0.001; bits < 1e6; bits *= 1.37) {
    const said = String(verdict({ ...usual }, { beyond: [], example_bits: bits, bits }, false, 0).text).replaceAll(",", "");
    const [, up, n] = /at most ([\d.]+) bits .* about (\d+) character/.exec(said) ?? [];
    assert.equal(ofLine({ light: "good", bits }), Math.min(80, Number(n)), `${bits}: ${said}`);
    assert.ok(Number(up) >= bits * (1 - 1e-6) && Number(up) <= bits * 1.11 && Number(n) >= bits * (1 - 1e-6), `${bits}: ${said}`);
  }
  assert.deepEqual(["bad", "good", "ask", ""].map((light) => ofLine({ light })), [80, undefined, undefined, undefined]);
  assert.match(String(verdict({ ...usual, task: "image" }, { beyond: [], example_bits: 6.2, bits: 9 }, false, 0).text), /as much as 7 yes-or-no answers\.$/);
  assert.deepEqual([1e5, 3e6, 24e6, 95e6, 5e9].map((n) => String(known(n))), ["less than a photo", "1 photo", "8 photos", "24 songs", "5 hours of video"]);
  const quote = { step_seconds: 0.25, start_seconds: 1, memory_bytes: 95_000_000 };
  const takes = (of, tried) => String(here({ ...usual, round: of }, { quote, examples: 60, ...tried }));
  // Two passes over 60 examples are 16 steps of 8; half of 12 rounds have this device.
  assert.equal(takes(round), "On this device: about 24 seconds of computing in all, and 95.0 MB (24 songs) of memory.");
  assert.match(takes({ ...round, epochs: 0 }), /3 minutes of computing in all/, "steps that do not depend on the data");
  assert.match(takes({ ...round, epochs: 0 }, { pace: 86_400 / 4 }), /50 seconds of computing a day/, "four rounds a day");
});

test("what a job asks for beyond the policy is told once for each reason", async () => {
  const built = await esbuild.build({ entryPoints: ["src/join/limits.ts"], bundle: true, format: "esm", write: false, define: { LANGUAGES: "[]" },
    absWorkingDir: new URL("..", import.meta.url).pathname });
  globalThis.document ??= { getElementById: () => new EventTarget() };
  const { reasons } = await import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].contents).toString("base64")}`);
  const limits = (of) => Object.entries(of).map(([key, have]) => ({ key, have, what: "", why: "", want: "" }));
  const told = (of) => [...reasons(limits(of))].map(([reason, all]) => `${reason}: ${all.map((l) => l.key).join()}`);
  assert.deepEqual(told({ unheard_of: "1", shard: "3", corrupt: "0", breach_bits: "0", own_noise: "0", example_bits: "0", bits: "0" }),
    ["honest: own_noise", "forged: corrupt,breach_bits", "shard: shard", "unheard_of: unheard_of"]);
  assert.deepEqual(told({ example_bits: "63", bits: "20000", uplinks: "fixed16", not_private: "true" }), ["private: not_private", "honest: example_bits,bits", "large: uplinks"]);
  // Nothing that is asked for is left out but what no noise says already.
  assert.deepEqual(told({ own_noise: "0.05", example_bits: "63" }), ["honest: own_noise,example_bits"]);
});

test("the device's own limit is said where it is an amount", async () => {
  const built = await esbuild.build({ entryPoints: ["edge/src/words.ts"], bundle: true, format: "esm", write: false, absWorkingDir: new URL("..", import.meta.url).pathname });
  const { ownLimit, visible } = await import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].contents).toString("base64")}`);
  for (const [key, want, said] of [
    ["shard", "at least 8", { message: "limit.least", limit: "8" }], ["bits", "at most 10000 (in the job ...)", { message: "limit.most", limit: "10000" }],
    ["breach_bits", "at least 40", { message: "limit.chance", limit: "40" }], ["uplinks", "nf4 or int4", "nf4 or int4"],
    ["unlogged", "false", undefined], ["semi_honest", "false", undefined], ["not_private", "false", undefined],
  ]) assert.deepEqual(ownLimit({ key, want }), said, key);
  assert.equal(visible("a\u202eb\u0000c\nd"), "a\ufffdb\ufffdc\nd");
});

for (const name of names) {
  test(`${name} says above Join what leaves, what it costs and how to stop`, { timeout: 240_000 }, async (t) => {
    let about = usual;
    let status = { private: true, state: "waiting", round: 0, version: 0, rounds: 12 };
    let away = false;
    const address = await serve(t, (_, response, path) => {
      if (path === "/v1/job") return response.end(JSON.stringify(about)), true;
      if (path !== "/v1/status") return false;
      if (away) response.destroy();
      else response.end(JSON.stringify(status));
      return true;
    });
    const browser = await open(t, name);
    for (const [kind, [of, odds]] of Object.entries(jobs)) {
      about = { ...usual, ...of };
      const { tab } = await openTab(browser, address);
      await until("the lines", async () => (await tab.$$("#plain li")).length === 2, () => textOf(tab, "body"));
      const lines = await tab.$$eval("#plain li", (all) => all.map((li) => li.textContent));
      assert.match(lines[0], /Loads about 24\.1 MB \(8 photos\) once, then more each round/, kind);
      assert.match(lines[1], /Stop anytime; what you sent stays/, kind);
      assert.match(await textOf(tab, "#given-lines"), odds, kind);
      // This coordinator announces no job to anybody: that is said, and its visitors are asked when they join.
      const title = of.private === false ? "Not private: a demonstration" : "Not checked yet";
      await until("the verdict", async () => await textOf(tab, "#verdict-title") === title, () => textOf(tab, "#given"));
      assert.deepEqual(await tab.$$eval(".line", (all) => all.map((e) => e.style.getPropertyValue("--of"))), of.private === false ? ["80"] : [], kind);
      // Nothing above the details needs more than words: the details are closed.
      const open = await tab.evaluate(() => [...document.querySelectorAll("main details")].filter((d) => d.open && !d.closest("[hidden]")).map((d) => d.textContent));
      assert.deepEqual(open, []);
      const seen = await tab.$eval("main", (e) => e.innerText);
      assert.doesNotMatch(seen, /[εδ]|epsilon|delta|shard|10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]/, kind);
      if (of.private !== false) assert.match(await textOf(tab, "#given-details"), /ε \S+ \(δ 10⁻⁶\)/, kind);
      await accessible(tab, kind);
      if (kind === "own") await shot(tab, `${name}-join-plain-words`, { fullPage: true });
      await tab.close();
    }

    about = usual;
    const { tab } = await openTab(browser, address, { width: 1280, height: 900 });
    await until("the lines", async () => (await tab.$$("#plain li")).length === 2);
    await shot(tab, `${name}-join-plain-wide`, { fullPage: true });
    // How long it takes is said once two rounds were seen to be made, by their pace.
    for (const version of [1, 2, 3]) {
      assert.equal(await textOf(tab, "#time-left"), "");
      status = { ...status, version, round: version + 1 };
      await until(`round ${version}`, async () => (await textOf(tab, "#rounds-text")) === `${version} of 12 rounds made`, () => textOf(tab, "#rounds-text"));
    }
    await until("the time left", async () => /^, about \d+ (seconds?|minutes?) left$/.test(await textOf(tab, "#time-left")), () => textOf(tab, "#time-left"));
    // A server that is away is said to be, in no browser's own words.
    away = true;
    await until("the silence", async () => /^No word from the coordinator\./.test(await textOf(tab, "#connection")), () => textOf(tab, "#connection"));
    assert.doesNotMatch(await textOf(tab, "#connection"), /fetch|NetworkError|TypeError|\d/);
    assert.equal(await textOf(tab, "#time-left"), "");
    away = false;
    await until("the word", async () => (await textOf(tab, "#connection")) === "", () => textOf(tab, "#connection"));
  });
}
