// Generated from package edge by make generate. Not to be edited.

/** Whom a browser's user trusts, to be shown before joining. */
export const browserTrust =
  "In a browser you trust whoever runs this coordinator: it sends this page and the program that trains on your file. The program can reach nothing but your examples, and what it returns is clipped, rounded and hidden in a sum of several devices; but only the starling program on your own machine checks that it is the training that the job promises.";
