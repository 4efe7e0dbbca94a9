// A question before something is done that is not taken back easily: the browser's own
// dialog, which keeps the keyboard inside and gives the focus back.
import { byId, say, show } from "../dom.js";

export interface Question {
  title: string;
  text: string;
  /** The button that does it. */
  act: string;
  /** Asks for a reason, which is kept with the act. */
  reason?: string;
}

/** Who waits for the answer to the question that was put last. */
let waiting: ((reason: string | undefined) => void) | undefined;

/** Answers who waits by what the dialog was closed with. */
function answered(): void {
  const dialog = byId<HTMLDialogElement>("ask");
  waiting?.(dialog.returnValue === "do" ? byId<HTMLInputElement>("ask-reason").value.trim() : undefined);
  waiting = undefined;
}

/** Yields the reason ("" where none is asked for or given); undefined where it is not to be done. */
export function ask(q: Question): Promise<string | undefined> {
  const dialog = byId<HTMLDialogElement>("ask"), reason = byId<HTMLInputElement>("ask-reason");
  answered(); // a dialog's closing is told later, which may be now: that of the question before is none to this one
  say("ask-title", q.title);
  say("ask-text", q.text);
  say("ask-act", q.act);
  show("ask-why", q.reason !== undefined);
  say("ask-reason-name", q.reason ?? "");
  reason.value = "";
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => { waiting = resolve; });
}

/** Wires the dialog's buttons: a policy without inline scripts and forms leaves that to us. */
export function readyToAsk(): void {
  const dialog = byId<HTMLDialogElement>("ask");
  dialog.addEventListener("close", () => { if (!dialog.open) answered(); });
  byId("ask-act").addEventListener("click", () => dialog.close("do"));
  byId("ask-not").addEventListener("click", () => dialog.close(""));
  byId("ask-reason").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    dialog.close("do");
  });
}
