// Starts a program with helpers in node's worker threads: startTeam, and what package wasm looks for under GOOS=js.
import { Worker } from "node:worker_threads";
import { Team } from "../../../web/edge/src/threads.js";

const spawn = (workerData) => {
  const worker = new Worker(new URL("helper.mjs", import.meta.url), { workerData });
  worker.unref(); // it waits for work for ever
  return worker;
};

export const startTeam = (program, products, helpers) => Team.start(program, products, helpers, spawn);
globalThis.starlingTeam = startTeam;
