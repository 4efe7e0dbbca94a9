// Both pages by the keyboard alone: every stop of the Tab key is in sight, outlined and
// further down than the last, and no button that goes takes the focus with it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { names } from "./browsers.mjs";
import { fleet, open, openTab, shot, textOf, until } from "./fleet.mjs";

/** What the keyboard comes to on the way to Join, and the button before it. */
const stays = ["file-name", "sample", "template", "preview"];

/** Notes where these are on the page, frame by frame, from its first one on. */
const watch = (tab) => tab.evaluateOnNewDocument((ids) => {
  globalThis.tops = {};
  const look = () => {
    for (const id of ids) {
      const { top, width } = document.getElementById(id)?.getBoundingClientRect() ?? { width: 0 }, at = Math.round(top + scrollY);
      if (width && !globalThis.tops[id]?.includes(at)) (globalThis.tops[id] ??= []).push(at);
    }
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}, stays);

/** What has the focus: its id, or its text; whether it is outlined and nothing covers it; where it is on the page. */
const look = (tab) => tab.evaluate(() => {
  const at = document.activeElement, seen = at.matches(".picker") ? at.previousElementSibling : at;
  const { left, top, width, height } = seen.getBoundingClientRect(), style = getComputedStyle(seen);
  const first = seen.getClientRects()[0]; // of a link on two lines
  const on = document.elementFromPoint(first.left + first.width / 2, Math.min(first.top + first.height / 2, first.top + 20));
  return { name: at.id || at.getAttribute("aria-label") || at.querySelector("h2")?.id || at.textContent.trim().slice(0, 30), nowhere: at === document.body,
    outlined: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2, covered: on !== seen && !seen.contains(on) && !on?.contains(seen),
    top: top + scrollY, left, width, height, fixed: at.closest(".bar") !== null, where: `at ${Math.round(top)} of ${innerHeight}, below ${on?.id || on?.tagName}` };
});

/** What has the focus, once it is in sight: browsers scroll to it in their own time, and that has an end. */
async function stop(tab) {
  const end = Date.now() + 2000;
  for (;;) {
    const now = await look(tab);
    if (now.nowhere || !now.covered || Date.now() > end) return now;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Presses Tab until something has the focus, or Shift and Tab where it lies before; yields the stops on the way. */
async function to(tab, id, back = false) {
  const way = [];
  let last;
  for (let i = 0; i < 80; i++) {
    if (back) await tab.keyboard.down("Shift");
    await tab.keyboard.press("Tab");
    if (back) await tab.keyboard.up("Shift");
    const now = await stop(tab);
    if (now.nowhere) continue; // the browser's own bar
    way.push(now.name);
    assert.ok(now.outlined, `the focus on ${now.name} is not to be seen`);
    assert.ok(!now.covered, `${now.name} is covered by something: ${now.where}`);
    if (last && !back && !now.fixed) assert.ok(now.top + now.height > last.top, `${now.name} stands above ${last.name}, which comes before it`);
    last = now;
    if (now.name === id) return way;
  }
  throw new Error(`Tab does not come to ${id}: ${way.join(", ")}`);
}

const focused = async (tab) => (await stop(tab)).name;

for (const name of names) {
  test(`${name}: somebody joins, stops, joins again and tries the model by keyboard alone`, { timeout: 400_000 }, async (t) => {
    const job = await fleet(t, { rounds: 12, natives: 3, floor: 4 }); // none is made without the browser
    const browser = await open(t, name);
    const { tab, faults } = await openTab(browser, "about:blank");
    await watch(tab);
    await tab.goto(job.page);
    await until("the promise", async () => /ε/.test(await textOf(tab, "#given")), () => job.story(tab, "body"));
    assert.deepEqual(await to(tab, "sample"), ["language", "What that means, and whom you t", "file", "write", "sample"].map((n) => n.slice(0, 30)));
    await tab.keyboard.press("Enter");
    await until("the sample", async () => !(await tab.$eval("#join", (b) => b.disabled)), () => textOf(tab, "#data-state"));
    assert.equal((await to(tab, "join")).at(-1), "join");
    await until("what a round takes here", async () => /of computing in all/.test(await textOf(tab, "#here")), () => textOf(tab, "#here"));
    const tops = await tab.evaluate(() => globalThis.tops);
    assert.deepEqual(stays.filter((id) => tops[id]?.length !== 1), [], `the page moves while it is painted: ${JSON.stringify(tops)}`);
    job.joinNatives();
    await tab.keyboard.press("Enter");
    assert.equal(await focused(tab), "joining");
    await until("a round", async () => !/^0 /.test(await textOf(tab, "#contributed")), () => job.story(tab, "body"));
    assert.deepEqual(await to(tab, "stop"), ["pause", "stop"]);
    await shot(tab, `${name}-join-keyboard`);
    await tab.keyboard.press("Enter");
    await until("the stop", async () => /^Stopped/.test(await textOf(tab, "#state")), () => job.story(tab));
    assert.equal(await focused(tab), "joining", "the focus went with the button");
    assert.deepEqual(await to(tab, "again"), ["again"]);
    await tab.keyboard.press(" ");
    assert.equal(await focused(tab), "join", "the focus went with the button");
    await tab.keyboard.press("Enter");
    await until("the end", async () => /^Finished/.test(await textOf(tab, "#state")), () => job.story(tab), 200_000);
    await until("the model", () => tab.$eval("#trained", (e) => !e.hidden), () => job.story(tab, "body"));
    // The model stands above what has the focus.
    await to(tab, "try-text", true);
    await tab.keyboard.type("flight to Lisbon");
    await to(tab, "try-button");
    await tab.keyboard.press("Enter");
    await until("a label", async () => /^Most likely \S+/.test(await textOf(tab, "#try-state")), () => textOf(tab, "#try-state"));
    await to(tab, "language", true);
    await tab.keyboard.type("D"); // more letters, slowly typed, would each choose a language
    if (name === "firefox") await tab.keyboard.press("Enter");
    await until("German", async () => (await textOf(tab, "#device-title")) === "Dieses Gerät", () => textOf(tab, "body"));
    assert.equal(await focused(tab), "language");
    assert.deepEqual(faults.filter((f) => !/ERR_CONNECTION|NetworkError|Failed to load/.test(f)), []);
  });

  test(`${name}: an operator pauses a job by keyboard alone`, { timeout: 200_000 }, async (t) => {
    const job = await fleet(t, { rounds: 60, natives: 4, browsers: 0 });
    const browser = await open(t, name);
    const { tab } = await openTab(browser, job.dashboard, { width: 1280, height: 900 });
    await until("the waiting job", async () => (await textOf(tab, "#state")) === "waiting", () => job.story(tab, "body"));
    await until("what an operator may do", () => tab.$eval("#steering", (e) => !e.hidden), () => textOf(tab, "header")); // asked for by itself
    await tab.keyboard.press("Tab");
    assert.equal(await focused(tab), "Skip to the job");
    await tab.keyboard.press("Enter");
    await to(tab, "steer");
    await tab.keyboard.press("Enter");
    await until("the question", () => tab.$eval("#ask", (e) => e.open));
    assert.equal(await focused(tab), "ask-reason");
    // The dialog keeps the keyboard, and gives it back.
    assert.deepEqual(await to(tab, "ask-act"), ["ask-not", "ask-act"]);
    await to(tab, "ask-reason", true);
    await shot(tab, `${name}-dashboard-ask`);
    await tab.keyboard.press("Escape");
    await until("the question to go", () => tab.$eval("#ask", (e) => !e.open));
    assert.equal(await focused(tab), "steer");
    await tab.keyboard.press(" ");
    await until("the question again", () => tab.$eval("#ask", (e) => e.open));
    await tab.keyboard.type("a walk");
    await to(tab, "ask-act");
    await tab.keyboard.press("Enter");
    await until("the pause", async () => (await textOf(tab, "#steer")) === "Let the job go on", () => textOf(tab, "#steer-said"));
    assert.equal(await focused(tab), "steer");
    // All of the page can be walked through, in order.
    assert.ok((await to(tab, "job-title")).includes("fleet-filter"), "the fleet is not on the way");
  });
}
