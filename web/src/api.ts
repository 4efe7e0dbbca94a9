// Generated from the Go structs by make generate. Not to be edited.

export interface About {
  job: string;
  id: string;
  task: string;
  labels: string[];
  rounds: number;
  asks?: Statement;
  verified?: boolean;
  private: boolean;
  protects: string;
  providers?: number;
  simulated_population?: number;
  simulated?: Guarantee;
  delivered?: Guarantee;
  public?: Guarantee;
  coalition?: Guarantee;
  visible?: Guarantee;
  untrusted?: Guarantee;
  shard_floor: number;
  sampling_rate: number;
  base_bytes: number;
  round: RoundSize;
  full?: boolean;
  sound?: Sound;
  sample?: string;
  protocol: string;
  needs_secret: boolean;
}

export interface Statement {
  organisation?: string;
  purpose?: string;
  receives?: string;
  contact?: string;
  terms?: string;
  until?: string;
  domain?: string;
  address?: string;
  signature?: string;
}

export interface Guarantee {
  epsilon: number;
  epsilon_lower: number;
  delta: number;
  floor_delta?: number;
  adjacency: string;
  accountant: string;
  sampling: string;
  rounds: number;
  observer: string;
  coalition_share?: number;
  assumes?: string;
  leaving_delta?: number;
  rdp_epsilon: number;
  rdp_order: number;
  simulated?: boolean;
}

export interface RoundSize {
  batch: number;
  steps: number;
  epochs?: number;
  down: number;
  up: number;
}

export interface Sound {
  rate: number;
  samples: number;
  least: number;
}

export interface Status {
  job: string;
  labels: string[];
  rounds: number;
  private: boolean;
  state: string;
  round: number;
  version: number;
  rank: number;
  clip_norm: number;
  validation?: RankAccuracy[];
  validation_version?: number;
  simulated?: Guarantee;
  delivered?: Guarantee;
  public?: Guarantee;
  coalition?: Guarantee;
  visible?: Guarantee;
  untrusted?: Guarantee;
  elapsed_ns: number;
  enrolled: number;
  connected: number;
  cohort: number;
  dropped: number;
  absent: number;
  answered: number;
  declined?: number;
  stopped?: number;
  refused?: number;
  bytes_up: number;
  bytes_down: number;
  parts: Parts;
  reason?: string;
  beginning?: Beginning;
}

export interface RankAccuracy {
  rank: number;
  accuracy: number;
  loss?: number;
  of?: number;
}

export interface Parts {
  page: Bytes;
  base: Bytes;
  programs: Bytes;
  model: Bytes;
  slices: Bytes;
  turns: Bytes;
  updates: Bytes;
  rest: Bytes;
}

export interface Bytes {
  up: number;
  down: number;
}

export interface Beginning {
  enrolled: number;
  with: number;
  least: number;
  by_word?: boolean;
  due?: number;
  by?: string;
  open?: number;
  awaited?: string[];
}

export interface PublicStatus {
  job: string;
  labels: string[];
  rounds: number;
  private: boolean;
  state: string;
  round: number;
  version: number;
  rank: number;
  clip_norm: number;
  validation?: RankAccuracy[];
  validation_version?: number;
  simulated?: Guarantee;
  delivered?: Guarantee;
  public?: Guarantee;
  coalition?: Guarantee;
  visible?: Guarantee;
  untrusted?: Guarantee;
  elapsed_ns: number;
}

export interface Overview {
  progress: Status;
  state_left_ms: number;
  cohort: string;
  browsers: string;
}

export interface RoundRecord {
  round: number;
  version: number;
  rank: number;
  clip_norm: number;
  cohort: number;
  dropped: number;
  absent: number;
  answered: number;
  declined?: number;
  stopped?: number;
  refused?: number;
  released: boolean;
  reason?: string;
  seconds: number;
  ended?: number;
  accuracy?: RankAccuracy[];
  fleet?: Fleet;
  simulated?: Guarantee;
  delivered?: Guarantee;
  public?: Guarantee;
  coalition?: Guarantee;
  visible?: Guarantee;
  untrusted?: Guarantee;
  bytes_up: number;
  bytes_down: number;
  parts: Parts;
  sessions_refused?: number;
}

export interface Fleet {
  rank: number;
  version: number;
  units: Noisy;
  loss: Noisy;
  silent?: Noisy;
  accuracy?: Noisy;
  steps_per_second?: Noisy;
}

export interface Noisy {
  mean: number;
  noise: number;
}

export interface Occurrence {
  time: string;
  level: string;
  what: string;
  details?: string[];
}

export interface Invitation {
  link: string;
  local: boolean;
  svg: string;
}

export interface FleetPage {
  enrolled: number;
  excluded: number;
  struck: number;
  declining: number;
  programs: Group[];
  platforms: Group[];
  seen: Group[];
  found: number;
  devices: Device[];
}

export interface Group {
  name: string;
  devices: number;
}

export interface Device {
  identity: string;
  enrolled: string;
  seen: string;
  invitation?: number;
  strikes?: number;
  excluded?: string;
  declined?: number;
  declined_round?: number;
  declined_rounds?: number;
  agent?: string;
}

export interface Paused {
  pause: Pause | null;
}

export interface Pause {
  by: string;
  reason: string;
}

export interface Begun {
  enrolled: number;
  least: number;
  pause: Pause | null;
  says: string;
}

export interface Acts {
  acts: Act[];
  head: string;
}

export interface Act {
  seq: number;
  at: string;
  by: string;
  act: string;
  subject: string;
}

export interface Added {
  name: string;
  role: string;
  job?: string;
  made: string;
  expires: string;
  revoked?: boolean;
  token: string;
}

export interface Invited {
  id: number;
  note?: string;
  uses: number;
  used: number;
  expires: string;
  revoked?: boolean;
  secret: string;
  link?: string;
  svg?: string;
}

export interface JobLine {
  name: string;
  folder: string;
  pool: string;
  priority: number;
  want: string;
  state: string;
  reason?: string;
  paused?: Pause;
  submitted: string;
  version?: number;
  rounds?: number;
  token?: string;
}

export interface Total {
  pool: string;
  jobs: number;
  rounds: number;
  guarantee?: Guarantee;
  why?: string;
}

export interface Invitation {
  id: number;
  note?: string;
  uses: number;
  used: number;
  expires: string;
  revoked?: boolean;
}

export interface Operator {
  name: string;
  role: string;
  job?: string;
  made: string;
  expires: string;
  revoked?: boolean;
}

export interface Forecast {
  epsilon: number;
  delta: number;
  bound: string;
  charged: number;
  left: number;
  affords: number;
  points: ForecastPoint[];
}

export interface ForecastPoint {
  rounds: number;
  simulated?: Guarantee;
  delivered?: Guarantee;
  public?: Guarantee;
  coalition?: Guarantee;
  visible?: Guarantee;
  untrusted?: Guarantee;
}

export interface Check {
  name: string;
  ok: boolean;
  detail: string;
}
