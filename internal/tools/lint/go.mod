module github.com/starling-fl/starling/internal/tools/lint

go 1.26.5

require (
	github.com/gostaticanalysis/nilerr v0.1.2
	github.com/kisielk/errcheck v1.30.0
	github.com/polyfloyd/go-errorlint v1.8.0
	github.com/tomarrell/wrapcheck/v2 v2.13.0
	golang.org/x/tools v0.51.0
)

require (
	github.com/gobwas/glob v0.2.3 // indirect
	github.com/gostaticanalysis/comment v1.5.0 // indirect
	golang.org/x/mod v0.41.0 // indirect
	golang.org/x/sync v0.23.0 // indirect
)
