// Go's WebAssembly, rewritten so that a compressor finds what is alike in it: brotli leaves a quarter less. Go has every
// call leave its address on the stack, and that names the function it stands in; a branch says how many blocks it leaves,
// which grows with every call before it. Here an address is told by its distance from the last one of its function, and
// a branch by the block it leaves for, counted from outside, so that the same call is the same bytes wherever it stands.
// Executables are packed in this way elsewhere (BCJ filters). It is undone exactly, whatever made the module. Plain
// JavaScript: the build and the worker run it as it stands.

/** What a filtered module begins with; its length as it was follows, 4 bytes, the lowest first. */
const magic = [0x00, 0x73, 0x74, 0x66, 0x01, 0x00, 0x00, 0x00];
const head = 8; // bytes of a module's own magic number and version
const longest = 1 << 26; // bytes of a module
const longestNumber = 10; // bytes of one in LEB128: an i64

const firstFunction = 0x1000; // Go's number of a module's first own function; an address is the number, then 16 bits of place
const codeSection = 10;

/** Two numbers that no instruction has: an address of the function it stands in, and a place to go to in it. */
const address = 0xf0, place = 0xf1;
const block = 0x02, loop = 0x03, condition = 0x04, end = 0x0b, branch = 0x0c, branchIf = 0x0d, branchTable = 0x0e;
const i32const = 0x41, i64const = 0x42, localSet = 0x21;

/** Reads one sequence of bytes and writes another. */
class Rewriter {
  at = 0;
  to = 0;

  /**
   * @param {Uint8Array} bytes
   * @param {Uint8Array} out
   */
  constructor(bytes, out) {
    this.bytes = bytes;
    this.out = out;
  }

  /** An unsigned LEB128 number. */
  unsigned() {
    return this.leb(false);
  }

  /** A signed LEB128 number, exact up to 7 bytes. */
  signed() {
    return this.leb(true);
  }

  /** @param {boolean} sign whether the last byte has one */
  leb(sign) {
    let value = 0, scale = 1;
    for (const start = this.at; this.at < start + longestNumber;) {
      if (this.at >= this.bytes.length) throw short();
      const byte = this.bytes[this.at++];
      value += (byte & 127) * scale;
      scale *= 128;
      if (!(byte & 128)) return sign && byte & 64 ? value - scale : value;
    }
    throw new Error(`a number of the WebAssembly module is longer than ${longestNumber} bytes`);
  }

  /** @param {number} value */
  writeUnsigned(value) {
    for (; value >= 128; value = Math.floor(value / 128)) this.out[this.to++] = value % 128 | 128;
    this.out[this.to++] = value;
  }

  /** @param {number} value */
  writeSigned(value) {
    for (; value < -64 || value >= 64; value = Math.floor(value / 128)) this.out[this.to++] = value & 127 | 128;
    this.out[this.to++] = value & 127;
  }

  /** Copies a LEB128 number. */
  number() {
    while (this.bytes[this.at] & 128) this.out[this.to++] = this.bytes[this.at++];
    this.copy(1);
  }

  /** @param {number} count */
  copy(count) {
    if (this.at + count > this.bytes.length) throw short();
    for (; count > 0; count--) this.out[this.to++] = this.bytes[this.at++];
  }

  /**
   * Rewrites a function's body, without its size, to its last end.
   * @param {number} self the function's number
   * @param {boolean} undo
   */
  body(self, undo) {
    const groups = this.unsigned();
    this.writeUnsigned(groups);
    for (let i = 0; i < groups; i++) {
      this.number();
      this.copy(1);
    }
    const own = (firstFunction + self) * 0x10000;
    let last = 0; // place of the last address
    for (let depth = 1; depth > 0;) {
      const op = this.bytes[this.at++];
      switch (op) {
        case i64const: {
          const start = this.at;
          const from = this.signed() - own;
          if (this.at - start <= 5 && from >= 0 && from < 0x10000) {
            this.out[this.to++] = address;
            this.writeSigned(from - last);
            last = from;
          } else {
            this.out[this.to++] = op;
            this.at = start;
            this.number();
          }
          break;
        }
        case i32const: {
          const start = this.at;
          const value = this.signed();
          if (value >= 0 && value < 0x10000 && this.bytes[this.at] === localSet && this.bytes[this.at + 1] === 0) {
            this.out[this.to++] = place;
            this.writeSigned(value - last);
          } else {
            this.out[this.to++] = op;
            this.at = start;
            this.number();
          }
          break;
        }
        case address:
          if (!undo) throw unknown(op);
          last += this.signed();
          this.out[this.to++] = i64const;
          this.writeSigned(own + last);
          break;
        case place:
          if (!undo) throw unknown(op);
          this.out[this.to++] = i32const;
          this.writeSigned(last + this.signed());
          break;
        case block: case loop: case condition:
          depth++;
          this.out[this.to++] = op;
          this.number();
          break;
        case end:
          depth--;
          this.out[this.to++] = op;
          break;
        case branch: case branchIf:
          this.out[this.to++] = op;
          this.writeUnsigned(depth - 1 - this.unsigned());
          break;
        case branchTable: {
          this.out[this.to++] = op;
          const count = this.unsigned();
          this.writeUnsigned(count);
          for (let i = 0, before = -1; i <= count; i++) {
            if (undo) this.writeUnsigned(before += this.signed());
            else {
              const label = this.unsigned();
              this.writeSigned(label - before);
              before = label;
            }
          }
          break;
        }
        default:
          this.out[this.to++] = op;
          this.operands(op);
      }
    }
  }

  /**
   * Copies what follows an instruction that stays as it is.
   * @param {number} op
   */
  operands(op) {
    if (op >= 0x45 && op <= 0xc4 || op <= 0x05 || op === 0x0f || op === 0x1a || op === 0x1b) return; // of the stack alone
    if (op === 0x10 || op >= 0x20 && op <= 0x24) return this.number(); // call, variables
    if (op === 0x11 || op >= 0x28 && op <= 0x3e) return this.number(), this.number(); // call of a table's, loads and stores
    if (op === 0x3f || op === 0x40) return this.copy(1); // the memory's size
    if (op === 0x43) return this.copy(4);
    if (op === 0x44) return this.copy(8);
    if (op !== 0xfc) throw unknown(op);
    const more = this.bytes[this.at];
    this.copy(1);
    if (more <= 7) return; // conversions
    if (more === 10) return this.copy(2); // memory.copy
    if (more === 11) return this.copy(1); // memory.fill
    throw unknown(op * 256 + more);
  }
}

/** @param {number | undefined} op undefined behind the end */
const unknown = (op) => op === undefined ? short() : new Error(`a WebAssembly instruction that the filter does not know: 0x${op.toString(16)}`);
/** @param {number} length */
const longer = (length) => new Error(`the WebAssembly module is longer than the ${length} bytes that it says`);
const short = () => new Error("the WebAssembly module ends too soon");

/**
 * Rewrites a module whose numbers have their shortest form; what is undone is the module again.
 * @param {Uint8Array} module
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function filter(module) {
  const r = new Rewriter(module, new Uint8Array(2 * module.length + 64));
  r.out.set(magic);
  new DataView(r.out.buffer).setUint32(head, module.length, true);
  r.to = head + 4;
  for (r.at = head; r.at < module.length;) {
    const kind = module[r.at];
    r.copy(1);
    const length = r.unsigned(), start = r.at;
    if (kind !== codeSection) {
      r.writeUnsigned(length);
      r.copy(length);
      continue;
    }
    const count = r.unsigned();
    r.writeUnsigned(count);
    for (let i = 0; i < count; i++) {
      const size = r.unsigned(), begin = r.at;
      r.body(i, false);
      if (r.at !== begin + size) throw new Error(`function ${i} of the module has ${size} bytes and ends after ${r.at - begin}`);
    }
    if (r.at !== start + length) throw new Error("the module's code does not end with its functions");
  }
  const made = r.out.slice(0, r.to);
  const again = unfilter(made);
  if (!again.every((byte, i) => byte === module[i])) throw new Error("the module is written in a way that the filter does not restore");
  return made;
}

/**
 * Restores a module.
 * @param {Uint8Array} filtered
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function unfilter(filtered) {
  if (magic.some((byte, i) => filtered[i] !== byte) || filtered.length < head + 4) throw new Error("this is no filtered WebAssembly module");
  const length = new DataView(filtered.buffer, filtered.byteOffset).getUint32(head, true);
  if (length > longest) throw new Error(`a module of ${length} bytes, at most ${longest} are read`);
  if (length < head) throw longer(length);
  const module = new Uint8Array(length);
  const r = new Rewriter(filtered, module);
  module.set([0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00]);
  r.at = head + 4;
  r.to = head;
  for (let codes = 0; r.at < filtered.length;) {
    const kind = filtered[r.at];
    r.copy(1);
    if (kind === codeSection && ++codes > 1) throw new Error("the WebAssembly module has its code twice, which is not known"); // each costs room
    if (kind !== codeSection) {
      const size = r.unsigned();
      r.writeUnsigned(size);
      r.copy(size);
      continue;
    }
    // A size is known when what it is of is written: functions go beside the module first.
    const code = new Uint8Array(length), scratch = new Uint8Array(length);
    const count = r.unsigned();
    r.out = code;
    const begin = r.to;
    r.to = 0;
    r.writeUnsigned(count);
    for (let i = 0; i < count; i++) {
      const to = r.to;
      r.out = scratch;
      r.to = 0;
      r.body(i, true);
      const size = r.to;
      if (to + size > length) throw longer(length);
      r.out = code;
      r.to = to;
      r.writeUnsigned(size);
      code.set(scratch.subarray(0, size), r.to);
      r.to += size;
    }
    const size = r.to;
    r.out = module;
    r.to = begin;
    r.writeUnsigned(size);
    if (r.to + size > length) throw longer(length);
    module.set(code.subarray(0, size), r.to);
    r.to += size;
  }
  if (r.to > length) throw longer(length);
  if (r.to < length) throw short();
  return module;
}
