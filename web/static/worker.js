const scope = globalThis;
async function start() {
    const runtime = await fetch("wasm_exec.js");
    if (!runtime.ok) {
        throw new Error("this coordinator was built without the browser's edge: run `make web`, then build it again");
    }
    // wasm_exec.js is a classic script and this worker a module.
    await import(new URL("wasm_exec.js", import.meta.url).href);
    const go = new Go();
    const ready = new Promise((resolve) => { scope.starlingReady = resolve; });
    const { instance } = await WebAssembly.instantiateStreaming(fetch("starling.wasm"), go.importObject);
    const ended = go.run(instance).then(() => { throw new Error("the edge client ended before it was ready"); });
    await Promise.race([ready, ended]);
    if (!scope.starling)
        throw new Error("the edge client did not announce itself");
    return scope.starling;
}
scope.onmessage = async (message) => {
    try {
        const edge = await start();
        const summary = await edge.join(message.data.options, (event) => scope.postMessage({ kind: "event", event }));
        scope.postMessage({ kind: "finished", summary });
    }
    catch (error) {
        scope.postMessage({ kind: "failed", reason: error instanceof Error ? error.message : String(error) });
    }
};
export {};
