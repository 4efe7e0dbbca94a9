// Generated from the Go structs by make generate. Not to be edited.

/** An Event reports progress. */
export interface Event {
  state: State;
  /** its number, which counts abandoned ones, too */
  round?: number;
  /** of the adapter that the round starts from: committed rounds */
  version?: number;
  rank?: number;
  /** devices in this device's shard */
  shard?: number;
  done?: number;
  total?: number;
  text?: string;
  /** Zeros reports that training failed, as Text says, and that this device sends zeros. Only its owner is told. */
  zeros?: boolean;
  /** bytes of messages sent so far */
  up: number;
  /** bytes of messages and blobs received so far */
  down: number;
  /**
   * Peers is what the log of enrolled keys proves about the shard; nil if it is not known yet, or
   * if the job has no log.
   */
  peers?: Peers;
  /** Limits are the owner's limits that a refused round exceeds. */
  limits?: PolicyError[];
  /** Limited reports that a limit of the owner's own caused a backoff, not a broken connection. */
  limited?: boolean;
}

/**
 * A State is what a device is doing, as shown to its owner.
 *
 * - `preparing`: fetching the base, reading local data
 * - `waiting`: for the next round
 * - `fetching`: a blob; Done of Total bytes
 * - `training`: Done of Total steps
 * - `collecting`: waiting for the shard's other devices
 * - `committed`: the round released a new adapter
 * - `abandoned`: the round released nothing
 * - `dropped`: the round went on without this device
 * - `refused`: this device declined; Text says why
 * - `backoff`: not connected; Text says why
 */
export type State =
  | "connecting"
  | "preparing"
  | "waiting"
  | "keying"
  | "fetching"
  | "training"
  | "uploading"
  | "collecting"
  | "revealing"
  | "committed"
  | "abandoned"
  | "dropped"
  | "refused"
  | "backoff"
  | "finished";

/** Peers is what the log of enrolled keys proves about a shard. */
export interface Peers {
  /** in the shard, this one included; all are in the log */
  devices: number;
  /** the most of them that were enrolled within one minute */
  together: number;
  /** when the last of the others was enrolled, seconds since 1970 */
  newest: number;
  /**
   * Later counts the devices that are missing from a head of the log that this device was shown
   * more than an hour after they are said to have been enrolled. (A head is made at a round's
   * draw: a later enrolment is in the next one.)
   */
  later?: number;
  /** in the log */
  keys: number;
  /**
   * Groups is the number of groups into which the round's devices were dealt by their own keys,
   * the shard being one of them; 0: the coordinator chose who is in it.
   */
  groups?: number;
}

/** A PolicyError is one limit of the owner's policy that a job or a plan exceeds. */
export interface PolicyError {
  /** of the policy file; the flag is the same with dashes */
  key: string;
  /** what is asked for */
  what: string;
  /** what it would mean for the owner */
  why: string;
  /** asked for, as the flag would be given */
  have: string;
  /** the limit */
  want: string;
}
