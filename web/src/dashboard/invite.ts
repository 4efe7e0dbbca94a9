// How devices are led here: shown when it is asked for, since who sees it can join.
import type { Invitation } from "../api.js";
import { byId, message, say, show } from "../dom.js";
import type { Call } from "./call.js";

export function offerInvitation(call: Call): void {
  byId("invite-show").addEventListener("click", () => void reveal(call));
  byId("invite-copy").addEventListener("click", () => void copy());
}

async function reveal(call: Call): Promise<void> {
  const button = byId("invite-show");
  if (!byId("invite").hidden) {
    show("invite", false);
    button.textContent = "Show the join link";
    button.setAttribute("aria-expanded", "false");
    return;
  }
  try {
    const { link, local, svg } = (await (await call("invitation.json")).json()) as Invitation;
    if (!link) throw new Error("no link has been made yet");
    byId<HTMLInputElement>("invite-link").value = link;
    show("invite-code", svg !== "");
    // An image, not markup: nothing in it can run.
    byId<HTMLImageElement>("invite-code").src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
    show("invite-local", local);
    show("invite", true);
    button.textContent = "Hide the join link";
    button.setAttribute("aria-expanded", "true");
    say("invite-said", "");
  } catch (error) {
    say("invite-said", `The join link is not here: ${message(error)}`);
  }
}

async function copy(): Promise<void> {
  const input = byId<HTMLInputElement>("invite-link");
  try {
    await navigator.clipboard.writeText(input.value);
    say("invite-said", "The link is copied.");
  } catch {
    input.select(); // the browser keeps the clipboard to itself
    say("invite-said", "The link is selected: copy it.");
  }
}
