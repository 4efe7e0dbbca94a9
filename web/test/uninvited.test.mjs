// A link whose invitation does not open the job any more: the page says whom to ask.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible } from "./axe.mjs";
import { choose, fleet, open, openTab, shot, textOf, until } from "./fleet.mjs";

test("an invitation that does not open the job says whom to ask", { timeout: 120_000 }, async (t) => {
  const job = await fleet(t, { extra: "enrolment: {secret: a secret of sixteen bytes}\n" });
  const link = new URL(job.page);
  const [prefix, body] = link.hash.slice(1).split(/_(.*)/s);
  const bytes = Buffer.from(body, "base64url"), at = bytes.indexOf("a secret of");
  assert.ok(at > 0, "the token holds its secret");
  bytes.write("no", at);
  link.hash = `${prefix}_${bytes.toString("base64url")}`;
  const browser = await open(t, "chrome");
  const { tab } = await openTab(browser, link.href);
  await until("the promise", async () => /ε/.test(await textOf(tab, "#given")), () => job.story(tab, "body"));
  await choose(tab, job.own);
  await tab.click("#join");
  await until("the refusal", async () => /did not work/.test(await textOf(tab, "#state")), () => job.story(tab));
  assert.match(await textOf(tab, "#state"), /^This did not work: your invitation was used, .*Ask whoever sent it for a new one\.$/);
  assert.ok(await tab.$eval("#again", (b) => !b.hidden));
  await accessible(tab, "uninvited");
  await shot(tab, "chrome-join-uninvited");
});
