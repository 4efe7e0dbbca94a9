package wasm

import "syscall"

// adviseHuge asks for large pages: a matrix product walks more memory than small
// pages' translations can be kept for. It is advice; a refusal changes nothing.
func adviseHuge(b []byte) { _ = syscall.Madvise(b, syscall.MADV_HUGEPAGE) }
