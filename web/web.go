// Package web holds the coordinator's pages: a dashboard of the running job
// and "join from this browser". They are written in TypeScript (src/),
// compiled by make generate into static/, and embedded here. The browser's
// edge client itself, starling.wasm, is cmd/starling-web built by make web;
// a binary built without it serves a page that says so.
//
// The page trusts its coordinator for the code it runs, as any web page must:
// docs/PROTOCOL.md says what that leaves unprotected.
package web

import (
	"embed"
	"io/fs"
)

//go:generate sh build.sh pages

//go:embed static
var files embed.FS

// Static returns the pages, index.html at the top.
func Static() fs.FS {
	sub, err := fs.Sub(files, "static")
	if err != nil {
		panic(err) // the directory is embedded above
	}
	return sub
}
