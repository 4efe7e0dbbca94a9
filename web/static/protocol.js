// What the page and its worker say to each other, and what the edge client
// (cmd/starling-web) offers inside the worker.
export {};
