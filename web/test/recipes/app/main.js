import { start } from "./join.js";

void start(location.href, (text) => { document.title = text; });
