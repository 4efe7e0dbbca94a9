// Package jinja runs the part of the Jinja template language that templates of conversations
// are written in, as transformers runs it: trim_blocks and lstrip_blocks, tojson, namespace,
// raise_exception, strftime_now, break and continue, raw, with, call and filter blocks, strings' methods, and the spans that
// generation blocks mark.
//
// A template is a stranger's program on its owner's machine. It sees the values that it is
// given and reaches nothing else, and everything that it does is counted: steps, bytes that it
// reads and makes, and how deep it nests. Every filter, test, operator, method and lookup is charged
// before it works, by the bytes that it touches. What goes beyond is an error, so that neither a loop, a string
// that doubles nor a macro that calls itself takes a machine's time or memory. That is why the
// language is here and not a library's: those at hand bound none of the three.
package jinja

import "errors"

// Bounds of a template and of a run.
const (
	maxSource = 256 << 10 // bytes of a template
	maxDepth  = 100       // of nested blocks, expressions and calls
	maxSteps  = 500_000   // of a run
	maxBytes  = 32 << 20  // that a run reads and makes
	maxName   = 256       // bytes of a name
	maxChain  = 1000      // operators of one strength in a row
)

// Errors that a template or a run ends with; what is wrong is in the error around them.
var (
	ErrSyntax = errors.New("jinja: not understood")
	ErrRun    = errors.New("jinja: stopped")
	ErrLimit  = errors.New("jinja: beyond what a template may take")
)
