// What a person reads above Join, of jobs of every kind: three lines in plain words that
// say no more than the job's guarantees do, and ε and δ one step below.
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

/** Jobs, and what the first line must say of them. */
const jobs = {
  strong: [{}, /40 or more devices\. If the operator keeps its word, nobody gets over 7\.4 times surer that you took part/],
  observed: [{ visible: guarantee(6) }, /over 410 times surer/], // e^6 is 403.4: never said smaller
  providers: [{ protects: "provider" }, /surer that somebody in your file took part/],
  own: [{ untrusted: guarantee(8) }, /Even if the operator lies, nobody gets over 3,000 times surer that you took part/],
  "own, too little": [{ untrusted: guarantee(1e8) }, /If the operator keeps its word/],
  "own, of providers": [{ protects: "provider", untrusted: guarantee(8) }, /surer that somebody in your file took part/],
  weak: [{ delivered: guarantee(1e8) }, /Do not count on noise/],
  simulated: [{ simulated: guarantee(1), simulated_population: 1e6, delivered: guarantee(3) }, /Do not count on noise/],
  none: [{ private: false, delivered: undefined }, /Choose data that anybody may see/],
};

/** The grade at school by Flesch and Kincaid; seven is twelve years of age. */
function grade(text) {
  const words = text.split(/\s+/), sentences = text.split(/[.;:](?:\s|$)/).filter(Boolean).length;
  const syllables = (w) => /\d/.test(w) ? 1 : Math.max(1, w.toLowerCase().replace(/[^a-z]/g, "").replace(/(?:[^laeiouy]e|ed|[^laeiouy]es)$/, "").match(/[aeiouy]{1,2}/g)?.length ?? 1);
  return 0.39 * words.length / sentences + 11.8 * words.reduce((n, w) => n + syllables(w), 0) / words.length - 15.59;
}

/** What the page says of a job, in English. */
async function says() {
  const built = await esbuild.build({ entryPoints: ["src/join/plain.ts"], bundle: true, format: "esm", write: false, define: { LANGUAGES: "[]" },
    absWorkingDir: new URL("..", import.meta.url).pathname });
  return import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].contents).toString("base64")}`);
}

test("the lines stay short and plain, and what a round takes here has a line of its own", async () => {
  const { plain, here } = await says();
  const round = { batch: 8, steps: 100, epochs: 2, down: 1_200_000, up: 150_000 };
  const quote = { step_seconds: 0.25, start_seconds: 1, memory_bytes: 95_000_000 };
  for (const [kind, [of, first]] of Object.entries(jobs)) {
    const lines = plain({ ...usual, ...of, round }).map(String);
    assert.match(lines[0], first, kind);
    assert.equal(lines[1], "Loads 24.1 MB, then 1.4 MB each round; training takes power and memory.", kind);
    const all = lines.join(" ");
    assert.ok(all.split(/\s+/).length <= 60, `${kind}: ${all.split(/\s+/).length} words`);
    assert.ok(grade(all) <= 7, `${kind}: reads like grade ${grade(all).toFixed(1)}: ${all}`);
  }
  const takes = (of) => String(here({ ...usual, round: of }, { quote, examples: 60 }));
  // Two passes over 60 examples are 16 steps of 8.
  assert.equal(takes(round), "On this device each round takes 4 seconds, 95.0 MB of memory and battery.");
  assert.ok(grade(takes(round)) <= 7, takes(round));
  assert.match(takes({ ...round, epochs: 0 }), /25 seconds/, "steps that do not depend on the data");
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
    for (const [kind, [of, first]] of Object.entries(jobs)) {
      about = { ...usual, ...of };
      const { tab } = await openTab(browser, address);
      await until("the lines", async () => (await tab.$$("#plain li")).length === 3, () => textOf(tab, "body"));
      const lines = await tab.$$eval("#plain li", (all) => all.map((li) => li.textContent));
      assert.match(lines[0], first, kind);
      assert.match(lines[1], /Loads about 24\.1 MB, then more each round/, kind);
      assert.match(lines[2], /Stop anytime; what you sent stays/, kind);
      const all = lines.join(" ");
      assert.ok(all.split(/\s+/).length <= 60, `${kind}: ${all.split(/\s+/).length} words`);
      assert.ok(grade(all) <= 7, `${kind}: reads like grade ${grade(all).toFixed(1)}: ${all}`);
      assert.doesNotMatch(all + await textOf(tab, "#given-title"), /[εδ]|epsilon|delta/, kind);
      if (of.private !== false) assert.match(await textOf(tab, "#given-details"), /ε \S+ \(δ 10⁻⁶\)/, kind);
      await accessible(tab, kind);
      if (kind === "own") await shot(tab, `${name}-join-plain-words`, { fullPage: true });
      await tab.close();
    }

    about = usual;
    const { tab } = await openTab(browser, address, { width: 1280, height: 900 });
    await until("the lines", async () => (await tab.$$("#plain li")).length === 3);
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
