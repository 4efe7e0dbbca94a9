// A helper's worker in node; see web/edge/src/threads.js.
import { workerData } from "node:worker_threads";
import { help } from "../../../web/edge/src/threads.js";

help(workerData);
