// Several workers compute one program: what its manifest calls the parts of a product they do at once, on one shared
// memory, and with the same bits, as parts do not depend on each other. Plain JavaScript: node runs it as it stands.

/**
 * A declared product as its host needs it: its first segment, how many each of its parts has, and the round of a repeat
 * that they are told; segments outside of repeats leave that.
 * @typedef {{ first: number, round: number, parts: number[] }} Product
 * What a helper is told.
 * @typedef {{ module: WebAssembly.Module, memory: WebAssembly.Memory, control: SharedArrayBuffer, products: Product[] }} Help
 */

// Words of the control block. A product is announced by a new number at SEQUENCE; who raises a part's claim to that
// number computes the part. Nothing is announced before all parts of the last one are done, so whoever comes late finds
// nothing left to claim.
const SEQUENCE = 0, DONE = 1, FAILED = 2, PRODUCT = 3, CLAIMS = 4, MAX_PARTS = 16;

const patience = 60_000; // milliseconds for parts that others compute: they take some, a frozen tab's more

/** Whether workers can share a memory here: in browsers only pages that are isolated from other origins may. */
export function canShare() {
  return typeof SharedArrayBuffer === "function" && /** @type {any} */ (globalThis).crossOriginIsolated !== false;
}

/** One instance of a program and the helpers that compute with it. */
export class Team {
  #control = new Int32Array(new SharedArrayBuffer(4 * (CLAIMS + MAX_PARTS)));
  /** @type {(() => void)[][][]} */ #parts;
  /** @type {{ terminate(): unknown }[]} */ #helpers;

  /**
   * @param {WebAssembly.Instance} instance
   * @param {WebAssembly.Memory} memory
   * @param {Product[]} products
   * @param {(control: SharedArrayBuffer) => { terminate(): unknown }[]} spawn
   */
  constructor(instance, memory, products, spawn) {
    this.exports = instance.exports;
    this.buffer = memory.buffer;
    this.#parts = partsOf(this.exports, products);
    this.#helpers = spawn(/** @type {SharedArrayBuffer} */ (this.#control.buffer));
  }

  /**
   * Starts a verified program, and helpers beside it. A helper that never comes up is not waited for.
   * @param {Uint8Array<ArrayBuffer>} program
   * @param {Product[]} products
   * @param {number} helpers
   * @param {(help: Help) => { terminate(): unknown }} spawn makes a worker that calls help with what it is given
   */
  static async start(program, products, helpers, spawn) {
    const pages = memoryPages(program);
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    const [first, other] = await Promise.all([WebAssembly.compile(shared(program, true)), WebAssembly.compile(shared(program, false))]);
    const instance = await WebAssembly.instantiate(first, { host: { memory } });
    return new Team(instance, memory, products, (control) =>
      Array.from({ length: helpers }, () => spawn({ module: other, memory, control, products })));
  }

  /** Computes the i-th product; throws where a part of it traps. @param {number} i */
  run(i) {
    const control = this.#control, n = this.#parts[i].length;
    const sequence = Atomics.load(control, SEQUENCE) + 1 | 0;
    Atomics.store(control, PRODUCT, i);
    Atomics.store(control, DONE, 0);
    for (let p = n; p < MAX_PARTS; p++) Atomics.store(control, CLAIMS + p, sequence);
    Atomics.store(control, SEQUENCE, sequence);
    Atomics.notify(control, SEQUENCE);
    for (let p = 0; p < n; p++) compute(control, this.#parts, p, sequence);
    for (let done; (done = Atomics.load(control, DONE)) < n;) {
      if (Atomics.wait(control, DONE, done, patience) === "timed-out") throw new Error("a worker beside this one does not answer");
    }
    if (Atomics.exchange(control, FAILED, 0)) throw new Error(`a part of product ${i} trapped`);
  }

  close() {
    for (const helper of this.#helpers) helper.terminate();
  }
}

/** Computes parts of what a team announces, until its worker is ended. @param {Help} given */
export function help({ module, memory, control: block, products }) {
  const control = new Int32Array(block);
  const parts = partsOf(new WebAssembly.Instance(module, { host: { memory } }).exports, products);
  for (let seen = 0; ;) {
    Atomics.wait(control, SEQUENCE, seen);
    seen = Atomics.load(control, SEQUENCE);
    // From the last one on: the team's own worker begins with the first.
    for (let p = MAX_PARTS - 1; p >= 0; p--) compute(control, parts, p, seen);
  }
}

/**
 * Computes a part, unless somebody else does.
 * @param {Int32Array} control @param {(() => void)[][][]} parts @param {number} p @param {number} sequence
 */
function compute(control, parts, p, sequence) {
  const before = sequence - 1 | 0;
  if (Atomics.compareExchange(control, CLAIMS + p, before, sequence) !== before) return;
  // Now that a part is claimed, the product stays what it is until the part is done.
  const list = parts[Atomics.load(control, PRODUCT)];
  try {
    for (const segment of list[p]) segment();
  } catch {
    Atomics.store(control, FAILED, 1);
  }
  if (Atomics.add(control, DONE, 1) + 1 === list.length) Atomics.notify(control, DONE);
}

/** The segments of every part of every product. @param {WebAssembly.Exports} exports @param {Product[]} products */
function partsOf(exports, products) {
  return products.map(({ first, round, parts }) => {
    let at = first;
    return parts.map((n) => Array.from({ length: n }, () => {
      const segment = /** @type {(round: number) => void} */ (exports[`s${at++}`]);
      return () => segment(round);
    }));
  });
}

const MEMORY = 5, DATA = 11, DATA_COUNT = 12;

/** The sections of a module: their ids, and where they begin, their content begins, and they end. @param {Uint8Array} code */
function* sections(code) {
  for (let at = 8; at < code.length;) {
    const { value, next } = leb(code, at + 1);
    yield { id: code[at], at, body: next, end: next + value };
    at = next + value;
  }
}

/** @param {Uint8Array} code @param {number} at */
function leb(code, at) {
  let value = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = code[at++];
    value += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80) return { value, next: at };
  }
}

/** @param {number} value */
function toLeb(value) {
  const out = [];
  for (; value >= 0x80; value = Math.floor(value / 128)) out.push(value % 128 | 0x80);
  return [...out, value];
}

/** The pages of a verified program's memory: one, of a fixed size. @param {Uint8Array} program */
function memoryPages(program) {
  for (const { id, body } of sections(program)) if (id === MEMORY) return leb(program, body + 2).value;
  throw new Error("a program without memory");
}

/**
 * A verified program with its memory taken from its host, and shared. Data is written where the first instance is made:
 * another one, later, would write it again.
 * @param {Uint8Array<ArrayBuffer>} program @param {boolean} data
 */
function shared(program, data) {
  const pages = toLeb(memoryPages(program));
  // One import, "host" "memory": a memory, shared and with a maximum.
  const content = [1, 4, ...new TextEncoder().encode("host"), 6, ...new TextEncoder().encode("memory"), 2, 3, ...pages, ...pages];
  const parts = [program.subarray(0, 8)];
  let imported = false;
  for (const { id, at, end } of sections(program)) {
    if (id > 1 && !imported) { // behind the types
      parts.push(Uint8Array.from([2, ...toLeb(content.length), ...content]));
      imported = true;
    }
    if (id !== MEMORY && (data || id !== DATA && id !== DATA_COUNT)) parts.push(program.subarray(at, end));
  }
  const out = new Uint8Array(parts.reduce((n, part) => n + part.length, 0));
  let to = 0;
  for (const part of parts) {
    out.set(part, to);
    to += part.length;
  }
  return out;
}
