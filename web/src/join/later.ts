// What a first visit does without: a part of the script that is fetched where a browser has
// kept something, a job hears, asks for more than its device allows, or has made a round.
import { later } from "../language/en-later.js";
import { add } from "../language/language.js";

export { offerGave } from "./gave.js";
export { isKept, keepPage, outlive } from "./keep.js";
export { paintConsent, paintLimits, reasons } from "./limits.js";
export * as sound from "./sound.js";
export * as writing from "./write.js";
export { offerModel, offerShelf } from "./trained.js";

add(later);
