// Generated from the Go structs by make generate. Not to be edited.

/** An Event is one line of progress. */
export interface Event {
  state: string;
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
  /** bytes of messages sent so far */
  up: number;
  /** bytes of messages and blobs received so far */
  down: number;
  /** Limits are what of the owner's policy a refused round was outside of. */
  limits?: PolicyError[];
}

/**
 * A PolicyError is one thing that a job or a plan asks for beyond the owner's
 * limit.
 */
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
