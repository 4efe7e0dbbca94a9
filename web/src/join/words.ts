// What this device is doing, in words.
import type { Participation } from "../../edge/src/index.js";
import type { About } from "../api.js";
import { bytes, count, duration, power, significant } from "../format.js";

/** From here on an epsilon limits nothing that anybody could conclude. */
const useless = 14;

/** What the file has given to this job, and to others, as seen from this device. */
export function givenText(p: Participation, about: About | undefined): { rounds: string; epsilon: string } {
  if (!p.given || !about) {
    return { rounds: p.unread ? `its account cannot be read: ${p.unread}` : "…", epsilon: p.unread ? "not known" : "…" };
  }
  // By what the job is known by, not by its name: another may have that, and an account shows names escaped.
  const own = p.given.find((g) => g.id === about.id);
  const others = p.given.filter((g) => g !== own && g.contributed > 0);
  const elsewhere = others.reduce((n, g) => n + g.contributed, 0);
  return {
    rounds: `${own?.contributed ?? 0} of ${count(own?.promised ?? about.rounds, "round")} promised` +
      (elsewhere ? `; ${count(elsewhere, "round")} to ${count(others.length, "other job")}` : "") + (p.kept ? "" : "; this browser forgets it"),
    epsilon: own?.epsilon && own.delta
      ? `ε ${significant(own.epsilon)} (δ ${power(own.delta)}) if the noise is as announced${own.epsilon > useless ? ": no useful limit" : ""}`
      : own?.contributed ? "no bound: the job announces no noise" : "nothing yet",
  };
}

export function stateText(p: Participation, hindered: boolean): string {
  switch (p.standing) {
    case "starting":
      return "Starting.";
    case "paused":
      return hindered && p.reason ? `Paused: ${p.reason}.` : "Paused. The job goes on without this device.";
    case "stopped":
      return `Stopped after ${count(p.totals.rounds, "round")}. What was sent stays in the sums it is part of.`;
    case "finished":
      return `Finished: this browser took part in ${count(p.totals.rounds, "round")}. Thank you.`;
    case "refused":
      return "Not joined: this job asks for more than this device allows.";
    case "failed":
      return failure(p.reason);
  }
  const doing = eventText(p);
  return p.standing === "pausing" ? `${doing} It pauses after this round.` : doing;
}

/** A refusal at the door, as the coordinator writes it (door.go, handshake.go). */
const uninvited = /\binvitation (?:that )?is spent, expired or revoked/;

/** Why it ended, and whom to ask where an invitation does not open the job. */
const failure = (reason: string) => uninvited.test(reason)
  ? "This did not work: your invitation was used, has ended, was taken back, or its link is not whole. Ask whoever sent it for a new one."
  : `This did not work: ${reason}`;

/** What a socket says of its own end, to its programmer: a person reads that there is no connection. */
const technical = /\b(?:code|status|errno) -?\d|\bdial|websocket|\b(?:wss?|https?|tcp|udp):|\btcp\b|\bEOF\b|i\/o|deadline exceeded|\bsocket\b/i;

/** Whether this device has no connection now. */
export const offline = (p: Participation) => (p.standing === "running" || p.standing === "pausing") && p.event?.state === "backoff";

function eventText(p: Participation): string {
  const e = p.event;
  if (!e) return "Connecting.";
  const round = e.round ? ` (round ${e.round})` : "";
  switch (e.state) {
    case "connecting":
      return "Connecting.";
    case "preparing":
      return "Reading your data.";
    case "waiting":
      return "Waiting for the next round.";
    case "keying":
      return `Agreeing on keys with the other devices${round}.`;
    case "fetching":
      return e.text === "base" ? `Fetching the model: ${bytes(e.done ?? 0)} of ${bytes(e.total ?? 0)}.` : `Fetching the round's model${round}.`;
    case "training":
      return e.total ? `Training, step ${e.done ?? 0} of ${e.total}${round}.` : `Training${round}.`;
    case "uploading":
      return `Sending the masked update${round}.`;
    case "collecting":
      return `Waiting for the other devices${round}.`;
    case "revealing":
      return `Helping to unmask the sum${round}.`;
    case "committed":
      return `Round ${e.round} is made.`;
    case "abandoned":
      return `The round was abandoned${e.text ? `: ${e.text}` : ""}. The next one is tried.`;
    case "dropped":
      return `The round went on without this device${e.text ? `: ${e.text}` : ""}. It joins the next one.`;
    case "refused":
      return `This device declined${e.text ? `: ${e.text}` : ""}.`;
    case "backoff": {
      const why = e.text && !technical.test(e.text) ? ` (${e.text})` : "";
      return `No connection; trying again in ${duration((e.total ?? 0) / 1000)}${why}.`;
    }
    case "finished":
      return "The job is over.";
  }
  return e.state;
}
