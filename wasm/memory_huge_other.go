//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package wasm

func adviseHuge([]byte) {}
