export { join, type Data, type StartOptions } from "./start.js";
export { PolicyRefusal, StarlingError, type ErrorCode } from "./errors.js";
export { type Listener, type TypedTarget } from "./events.js";
export { Edge, mostData, sourceOf, tooLarge, type Example, type Joined, type JoinOptions, type LoadOptions } from "./edge.js";
export { Participation, type ParticipationEvents, type ParticipationOptions, type Standing, type Totals } from "./participation.js";
export type { Event, Peers, PolicyError, State } from "./event.js";
export type { Code, Given, GivenBy, LabelCount, Limit, Limits, Picture, Prediction, Preview, Quote, Row, Lasting, Sound } from "./client.js";
export type { Accepted, FileSource, Input, LabelledPicture, LabelledRecording, Model, PictureSource, RecordingSource, SampleKind, Source, Trial } from "./protocol.js";
export { browserTrust } from "./trust.js";
