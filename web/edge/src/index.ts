export { Edge, mostData, PolicyRefusal, sourceOf, tooLarge, type Example, type Joined, type JoinOptions, type LoadOptions } from "./edge.js";
export { Participation, type ParticipationOptions, type Standing, type Totals } from "./participation.js";
export type { Event, PolicyError } from "./event.js";
export type { Given, LabelCount, Picture, Prediction, Preview, Row } from "./client.js";
export type { Accepted, FileSource, Input, LabelledPicture, Model, PictureSource, SampleKind, Source } from "./protocol.js";
export { browserTrust } from "./trust.js";
