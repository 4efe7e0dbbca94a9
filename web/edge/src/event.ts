// Generated from the Go structs by make generate. Not to be edited.

export interface Event {
  state: string;
  round?: number;
  step?: number;
  rank?: number;
  shard?: number;
  done?: number;
  total?: number;
  text?: string;
  up: number;
  down: number;
  limits?: PolicyError[];
}

export interface PolicyError {
  key: string;
  what: string;
  why: string;
  have: string;
  want: string;
}
