import type { Code } from "./client.js";
import type { PolicyError } from "./event.js";

/**
 * Why the package refuses or ends: what a device says ({@link Code}), and what a page meets before there is one.
 *
 * - `unsupported`: this browser has no WebAssembly, no workers, or not what this data needs
 * - `not-loaded`: worker or program cannot be fetched or started, or the program has ended of a fault
 * - `wrong-origin`: the coordinator is there and does not answer pages of this origin
 * - `busy`: this device takes part already
 * - `closed`: it was ended, by close or stop
 * - `no-model`: a prediction was asked for before there is a model
 */
export type ErrorCode = Code | "unsupported" | "not-loaded" | "wrong-origin" | "busy" | "closed" | "no-model";

/** What everything in this package rejects with, but for an AbortSignal's own reason. */
export class StarlingError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "StarlingError";
    this.code = code;
  }
}

/** A job that asks for more than the owner's policy allows; JoinOptions.accept can name each of its limits. */
export class PolicyRefusal extends StarlingError {
  readonly limits: PolicyError[];

  constructor(message: string, limits: PolicyError[]) {
    super("policy", message);
    this.name = "PolicyRefusal";
    this.limits = limits;
  }
}

/** What was thrown, as an error of this package: itself where it is one, else the cause of one with the code `failed`. */
export function asError(thrown: unknown): StarlingError {
  if (thrown instanceof StarlingError) return thrown;
  return new StarlingError("failed", thrown instanceof Error ? thrown.message : String(thrown), { cause: thrown });
}
