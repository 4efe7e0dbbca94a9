// Generated from package dataset by make generate. Not to be edited.

/** The classes of the built-in samples. */
export const sampleLabels = {
  texts: ["catering", "energy", "freight", "maintenance", "office", "software", "telecom", "travel"],
  pictures: ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"],
  recordings: ["asa", "eha", "hemo", "ima", "misu", "ose", "sami", "sime", "uhi", "umo"],
};
