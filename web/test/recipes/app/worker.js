// The same in a worker of the page's: the package starts its own from there.
import { start } from "./join.js";

onmessage = ({ data }) => start(data, (text) => postMessage(text));
