// What of Node's own modules the entry for Node, Deno and Bun uses.
declare module "node:worker_threads" {
  export class Worker {
    constructor(address: URL, options?: { workerData?: unknown; name?: string });
    postMessage(message: unknown): void;
    terminate(): Promise<number>;
    on(event: "message", listener: (message: unknown) => void): this;
    on(event: "error", listener: (error: Error) => void): this;
    unref(): void;
  }
  export const parentPort: { postMessage(message: unknown): void; on(event: "message", listener: (message: unknown) => void): void };
  export const workerData: unknown;
}
declare module "node:fs/promises" {
  export function readFile(path: string | URL): Promise<Uint8Array<ArrayBuffer>>;
  export function mkdir(path: string, options: { recursive: true; mode: number }): Promise<unknown>;
  export function rename(from: string, to: string): Promise<void>;
  export function open(path: string, flags: string, mode?: number): Promise<{ writeFile(data: Uint8Array): Promise<void>; sync(): Promise<void>; close(): Promise<void> }>;
}
