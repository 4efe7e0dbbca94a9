// Generated from package palette by make generate. Not to be edited.

/** The colours of a chart's series, in their order. */
export const palette = {
  light: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b97a00", "#3b8fc2", "#000000"],
  dark: ["#6cb8f0", "#ff9452", "#4fd6ae", "#e9a9cd", "#f0c04a", "#a9dcff", "#ffffff"],
};

/** Where there are more series than colours these begin anew, with the next pattern of lines: pixels drawn and left out. */
export const dashes: number[][] = [[], [8, 3], [2, 2.5], [9, 2.5, 2, 2.5]];
