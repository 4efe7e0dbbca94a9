export { Edge, sourceOf, type Example, type JoinOptions, type LoadOptions } from "./edge.js";
export { Participation, type ParticipationOptions, type Standing, type Totals } from "./participation.js";
export type { Event } from "./event.js";
export type { Preview, Source } from "./protocol.js";
