// A recording as a WAV file of numbers of 32 bits, in which nothing is rounded.

export function encodeWAV(samples: Float32Array, rate: number): ArrayBuffer {
  const size = 4 * samples.length, out = new DataView(new ArrayBuffer(44 + size));
  const text = (at: number, word: string) => { for (let i = 0; i < word.length; i++) out.setUint8(at + i, word.charCodeAt(i)); };
  text(0, "RIFF");
  out.setUint32(4, 36 + size, true);
  text(8, "WAVEfmt ");
  out.setUint32(16, 16, true);
  out.setUint16(20, 3, true); // numbers
  out.setUint16(22, 1, true); // channel
  out.setUint32(24, rate, true);
  out.setUint32(28, 4 * rate, true);
  out.setUint16(32, 4, true);
  out.setUint16(34, 32, true);
  text(36, "data");
  out.setUint32(40, size, true);
  samples.forEach((v, i) => out.setFloat32(44 + 4 * i, v, true));
  return out.buffer;
}
