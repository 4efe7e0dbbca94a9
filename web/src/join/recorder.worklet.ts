// Hands what the microphone hears to the page, in blocks: one channel, the mean of those
// that there are, as recordings in files are brought to one. It runs on the browser's
// thread for sound.

declare class AudioWorkletProcessor { // which the DOM's types leave out
  readonly port: MessagePort;
}
declare function registerProcessor(name: string, processor: new () => AudioWorkletProcessor): void;

const block = 1024; // samples

class Recorder extends AudioWorkletProcessor {
  #samples = new Float32Array(block);
  #n = 0;

  process([channels]: Float32Array[][]): boolean {
    const [first, ...others] = channels ?? [];
    if (!first) return true; // nothing is connected yet
    for (const [i, sample] of first.entries()) {
      this.#samples[this.#n++] = others.reduce((sum, c) => sum + (c[i] ?? 0), sample) / (1 + others.length);
      if (this.#n === block) {
        this.port.postMessage(this.#samples, [this.#samples.buffer]);
        this.#samples = new Float32Array(block);
        this.#n = 0;
      }
    }
    return true;
  }
}

registerProcessor("recorder", Recorder);
