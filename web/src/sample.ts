// Generated from package dataset by make generate. Not to be edited.

/** The classes of the built-in sample. */
export const sampleLabels = ["catering", "energy", "freight", "maintenance", "office", "software", "telecom", "travel"];
