// Exits with 0 where this node's f32x4.relaxed_madd rounds once: f() is (1 + 2^-12)^2 - (1 + 2^-11), which is 2^-24,
// and 0 where the product is rounded by itself.
import process from "node:process";

const code = Uint8Array.from([
  0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 5, 1, 0x60, 0, 1, 0x7d, 3, 2, 1, 0, 7, 5, 1, 1, 0x66, 0, 0, 10, 31, 1, 29, 0,
  0x43, 0, 8, 128, 63, 0xfd, 19, 0x43, 0, 8, 128, 63, 0xfd, 19, 0x43, 0, 16, 128, 191, 0xfd, 19, 0xfd, 0x85, 2, 0xfd, 31, 0, 11,
]);
process.exit(new WebAssembly.Instance(new WebAssembly.Module(code)).exports.f() === 2 ** -24 ? 0 : 1);
