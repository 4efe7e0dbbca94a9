// Generated from the Go structs by make generate. Not to be edited.

/** Preview describes a source, for its owner to look at before joining. */
export interface Preview {
  /**
   * Kind is "texts", "lists" (texts, each with any number of labels), "unlabelled" (texts too), "prompts" (with completions), "words" (each with a label), "questions"
   * (about documents), "pictures", "recordings" or "transcripts" (recordings, each with what is said in it).
   */
  kind: string;
  examples: number;
  /** Labels has the most frequent first: those of words where these have them, none of questions. */
  labels: LabelCount[];
  /** Rows are the first of the file; of pictures one of each label. */
  rows: Row[];
  /** Groups is the number of users or providers that the source names; 0 if it names none. */
  groups: number;
  /**
   * Shortest and Longest are the recordings that last the least and the most; left out of
   * other data.
   */
  shortest?: Lasting;
  longest?: Lasting;
}

/** LabelCount is the number of times that a label occurs. */
export interface LabelCount {
  name: string;
  count: number;
}

/** Row is an example to look at. */
export interface Row {
  /** Label is the answer of a question; empty for words, and if there is none. */
  label: string;
  /** Text is cut: a question is before its document, a label behind its word. */
  text: string;
  /** in place of a text */
  picture?: Picture;
  /** in place of a text */
  sound?: Sound;
}

/** Picture is a picture to look at, of its own proportions. */
export interface Picture {
  width: number;
  height: number;
  /** Pixels are red, green, blue and 255 of each, row by row, in base64. */
  pixels: string;
}

/** Sound is a recording to look at. */
export interface Sound {
  seconds: number;
  /** Peaks are how loud it is from one moment to the next, of its loudest 255, in base64. */
  peaks: string;
}

/** Lasting is the length of a recording of the source. */
export interface Lasting {
  /** its place in the source, from 0 */
  at: number;
  seconds: number;
}

/** Given has the contributions of the data to one job, as seen from this device. */
export interface Given {
  /**
   * ID is what the job is known by, its TaskID in hexadecimal; the name may be another's,
   * too, and is escaped.
   */
  id: string;
  name: string;
  /** Promised is the rounds that the job announced; beyond them the device stops. */
  promised: number;
  /** Contributed is the rounds in which an update was handed over. */
  contributed: number;
  /** Committed is of these what the coordinator said it released. */
  committed: number;
  /** Last is when, in seconds since 1970. */
  last: number;
  /**
   * Epsilon and Delta are what all of it costs if the noise is as announced; left out
   * where none is.
   */
  epsilon?: number;
  delta?: number;
  /**
   * Untrusted is Epsilon if everybody else lies, by the noise that this device added itself,
   * Bits the most that could then be told of the data, and ExampleBits about any one example of it;
   * left out where it added none.
   */
  untrusted?: number;
  bits?: number;
  example_bits?: number;
  /** Up and Down are bytes sent and received. */
  up?: number;
  down?: number;
  /** History has the contributions over time, the oldest first. */
  history?: GivenBy[];
  /** Forgotten tells that its owner has had the job forgotten: its name and history are gone. */
  forgotten?: boolean;
}

/** GivenBy has the contributions to a job up to a moment. */
export interface GivenBy {
  /** seconds since 1970 */
  at: number;
  /** in which an update was handed over */
  rounds: number;
  /** bytes sent */
  up: number;
  /** bytes received */
  down: number;
}

/**
 * Prediction is one thing that a model says of an example: of each label, the likeliest
 * first; of each word its likeliest label; or the likeliest answer.
 */
export interface Prediction {
  /** whose label it is */
  word?: string;
  /** Label is empty for an answer that is not in the document. */
  label: string;
  /** Probability is a softmax, not calibrated. */
  probability: number;
}

/** Quote is the cost of a round of a job on this device, tried before joining with made-up weights and examples. */
export interface Quote {
  /** of one batch */
  step_seconds: number;
  /** once */
  start_seconds: number;
  /** of the training program, the base's weights included */
  memory_bytes: number;
}

/** Limits is what the device says of a job before its owner has joined, see edge.Verdict. */
export interface Limits {
  /** Beyond are the limits of the policy that the job is beyond, which accept takes by key and have. */
  beyond: Limit[];
  /** Granted tells that the owner has accepted all of them before, for this data and coordinator. */
  granted?: boolean;
  /**
   * ExampleBits bounds what all rounds of the job could tell about any one example, and Bits
   * about all of the data, although everybody else lies; left out where nothing does.
   */
  example_bits?: number;
  bits?: number;
}

/** Limit is one limit of the policy, see edge.PolicyError. */
export interface Limit {
  /** of the policy */
  key: string;
  /** what is asked for */
  what: string;
  /** what it would mean for the owner */
  why: string;
  /** asked for, as accept takes it */
  have: string;
  /** the limit */
  want: string;
}

/**
 * Code says why taking part has ended, for programs: sentences change, codes do not.
 *
 * - `unreachable`: no coordinator answers there
 * - `version`: it speaks another version of the protocol
 * - `secret`: the enrolment secret, or the invitation, is not one of its
 * - `duplicate`: this identity is connected already
 * - `excluded`: the coordinator refuses this device
 * - `job`: the job cannot be joined: it is not private, changed, or needs what this device does not have
 * - `policy`: it asks for more than the device's owner allows: limits say what
 * - `data`: the data cannot be read, or do not fit the job
 * - `account`: the account of what the data has given cannot be read or kept
 * - `promise`: the coordinator asks for more rounds, or another program, than it announced
 * - `protocol`: the coordinator breaks the protocol, or somebody stands in between
 * - `options`: what was asked of the package makes no sense
 * - `failed`: anything else; the message says what
 */
export type Code =
  | "unreachable"
  | "version"
  | "secret"
  | "duplicate"
  | "excluded"
  | "job"
  | "policy"
  | "data"
  | "account"
  | "promise"
  | "protocol"
  | "options"
  | "failed";
