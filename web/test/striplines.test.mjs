// Leaving out the tables of files and lines must change nothing that runs: a Go
// program made for this panics, recovers, grows its stack, collects garbage and
// reads its own callers, with and without them.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { mergeData } from "../mergedata.mjs";
import { stripLines } from "../striplines.mjs";

const program = `package main

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
)

//go:noinline
func deep(n int) int {
	var pad [64]int
	pad[n%64] = n
	if n == 0 {
		runtime.GC()
		pc := make([]uintptr, 8)
		frame, _ := runtime.CallersFrames(pc[:runtime.Callers(1, pc)]).Next()
		fmt.Println(frame.Function, strings.HasSuffix(frame.File, "main.go") && frame.Line > 0)
		return 0
	}
	return deep(n-1) + pad[n%64] - n + 1
}

func main() {
	func() {
		defer func() { fmt.Println("recovered:", recover()) }()
		var none []int
		_ = none[deep(1000)]
	}()
	done := make(chan error)
	go func() {
		defer close(done)
		defer func() { done <- fmt.Errorf("wrapped: %w", recover().(error)) }()
		panic(errors.New("of another goroutine"))
	}()
	fmt.Println(<-done)
	var nowhere map[string]int
	nowhere["x"] = 1 // ends the program with a trace
}
`;

test("a module without lines runs as before, and says ? for them", (t) => {
  const dir = mkdtempSync(join(tmpdir(), "starling-lines-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  writeFileSync(join(dir, "main.go"), program);
  const built = join(dir, "main.wasm"), stripped = join(dir, "stripped.wasm");
  execFileSync("go", ["build", "-o", built, "main.go"], { cwd: dir, env: { ...process.env, GOOS: "js", GOARCH: "wasm", GO111MODULE: "off" } });
  const merged = mergeData(readFileSync(built));
  const small = stripLines(merged);
  assert.equal(small.length, merged.length, "something moved");
  assert.ok(small.filter((b) => b === 0).length > merged.filter((b) => b === 0).length + 20_000, "little was left out");
  writeFileSync(stripped, small);
  const runner = join(execFileSync("go", ["env", "GOROOT"], { encoding: "utf8" }).trim(), "lib/wasm/wasm_exec_node.js");
  const run = (file) => spawnSync(process.execPath, ["--stack-size=8192", runner, file], { encoding: "utf8", timeout: 60_000 });
  const before = run(built), after = run(stripped);
  assert.match(before.stdout, /^main\.deep true\nrecovered: .*index out of range \[1000\].*\nwrapped: of another goroutine\n$/);
  assert.equal(after.stdout, before.stdout.replace("main.deep true", "main.deep false"));
  assert.equal(after.status, before.status);
  assert.match(before.stderr, /assignment to entry in nil map[^]*main\.main\(\)\n.*main\.go:\d+/);
  assert.match(after.stderr, /assignment to entry in nil map[^]*main\.main\(\)\n\t\?:0/);
});

test("what is no Go module is refused", () => {
  assert.throws(() => stripLines(Buffer.alloc(1000)), /no Go function table/);
  const head = Buffer.from([0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8]);
  assert.throws(() => stripLines(Buffer.concat([head, Buffer.alloc(200)])), /do not follow/);
  assert.throws(() => stripLines(Buffer.concat([head, Buffer.alloc(200), head])), /more than one/);
});
