// Command lint finds errors that vanish: unchecked ones, ones replaced by nil,
// ones compared or formatted so that their cause is lost, and ones of other
// people's packages that leave a function without a word about what was done.
//
//	go build -C internal/tools/lint -o ../../../bin/lint . && go vet -vettool=bin/lint ./...
//
// It is a module of its own, so that what the checks need is not a dependency of
// Starling. What is left out, below, has its reason beside it.
package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"github.com/gostaticanalysis/nilerr"
	"github.com/kisielk/errcheck/errcheck"
	"github.com/polyfloyd/go-errorlint/errorlint"
	"github.com/tomarrell/wrapcheck/v2/wrapcheck"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/multichecker"
)

// unchecked are calls whose error tells nothing that is not told elsewhere.
var unchecked = []string{
	// What is printed for a person: where the terminal or pipe is gone, there is
	// nobody to tell. Files are written by other functions.
	"fmt.Fprint", "fmt.Fprintf", "fmt.Fprintln",
	"(*text/tabwriter.Writer).Flush",
	// An answer to a browser that may have left.
	"(net/http.ResponseWriter).Write", "(*net/http.Server).Close",
	// What was only read: what Close could say, reading has said. See reading.
	"(io.ReadCloser).Close", "(io/fs.File).Close",
	// The end of a connection that is over in any case.
	"(net.Conn).Close", "(*github.com/coder/websocket.Conn).Close", "(*github.com/coder/websocket.Conn).CloseNow",
	"(github.com/starling-fl/starling/edge.Conn).Close",
	// Deadlines of a connection that is about to be used fail with its use.
	"(net.Conn).SetDeadline", "(net.Conn).SetReadDeadline", "(net.Conn).SetWriteDeadline",
	// After Commit it does nothing; before, the transaction's own error is returned.
	"(*database/sql.Tx).Rollback", "(*database/sql.Rows).Close",
	// Temporary files: one that stays is never read.
	"os.Remove", "os.RemoveAll",
	// Memory handed back to GoMLX's pool.
	"(github.com/gomlx/compute.Buffer).Finalize",
}

// speaking are packages whose errors say by themselves what was done to what.
var speaking = []string{
	"github.com/starling-fl/starling/*",               // with the package's name, or the field's
	"os", "io/fs", "path/filepath", "net", "net/http", // *PathError, *OpError, *url.Error
	"context",                              // a cause, which whoever cancelled has worded
	"database/sql",                         // package store words the whole transaction
	"crypto/*", "filippo.io/edwards25519*", // names itself; fails on programming errors only
	"github.com/gomlx/*", "gonum.org/v1/plot*", // name the operation
}

// passing are methods that hand on an error that their caller compares, such as
// io.EOF, or that the writer below has worded, and functions whose arguments here
// cannot make them fail.
var passing = []string{
	".Read(", ".Peek(", ".Discard(", ".Write(", ".Handle(", ".Close(", ".CloseNow(", ".Flush(", ".WriteTo(", ".Parse(arguments", ".CallWithStack(",
	"io.WriteString(", "io.ReadFull(", "io.Copy(", "fmt.Fprint",
	"(*encoding/csv.Writer).Error(", "(*encoding/json.Encoder).Encode(",
	"encoding/json.Marshal(", "encoding/json.MarshalIndent(", ".MarshalJSON(", ".AppendBinary(", ".UnmarshalBinary(",
}

func main() { multichecker.Main(analyzers()...) }

func analyzers() []*analysis.Analyzer {
	errcheck.DefaultExcludedSymbols = append(errcheck.DefaultExcludedSymbols, unchecked...)
	causes := errorlint.NewAnalyzer()
	if err := causes.Flags.Set("errorf", "true"); err != nil {
		panic(err)
	}
	cfg := wrapcheck.NewDefaultConfig()
	cfg.IgnorePackageGlobs = speaking
	cfg.ExtraIgnoreSigs = passing
	return []*analysis.Analyzer{
		outsideTests(reading(errcheck.Analyzer)), nilerr.Analyzer, causes, outsideTests(wrapcheck.NewAnalyzer(cfg)),
	}
}

// outsideTests leaves tests and measurements alone: they close what they opened
// without looking, and their helpers return errors for t.Fatal, or for whoever
// started the measurement.
func outsideTests(a *analysis.Analyzer) *analysis.Analyzer {
	run, out := a.Run, *a
	out.Run = func(pass *analysis.Pass) (any, error) {
		report := pass.Report
		pass.Report = func(d analysis.Diagnostic) {
			if !strings.HasSuffix(pass.Fset.File(d.Pos).Name(), "_test.go") && !strings.Contains(pass.Pkg.Path(), "/bench/") {
				report(d)
			}
		}
		return run(pass)
	}
	return &out
}

// reading leaves out the deferred Close of what the same function opened to read.
func reading(a *analysis.Analyzer) *analysis.Analyzer {
	run, out := a.Run, *a
	out.Run = func(pass *analysis.Pass) (any, error) {
		opened := map[types.Object]bool{}
		closed := map[int]bool{} // lines, by the position of their first byte
		line := func(p token.Pos) int {
			f := pass.Fset.File(p)
			return int(f.LineStart(f.Line(p)))
		}
		for _, f := range pass.Files {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.AssignStmt:
					if call, ok := n.Rhs[0].(*ast.CallExpr); ok {
						switch types.ExprString(call.Fun) {
						case "os.Open", "named.Open", "named.OpenAny", "named.Once", "gzip.NewReader":
							if id, ok := n.Lhs[0].(*ast.Ident); ok {
								opened[pass.TypesInfo.ObjectOf(id)] = true
							}
						}
					}
				case *ast.DeferStmt:
					if sel, ok := n.Call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Close" {
						if id, ok := sel.X.(*ast.Ident); ok && opened[pass.TypesInfo.ObjectOf(id)] {
							closed[line(n.Pos())] = true
						}
					}
				}
				return true
			})
		}
		report := pass.Report
		pass.Report = func(d analysis.Diagnostic) {
			if !closed[line(d.Pos)] {
				report(d)
			}
		}
		return run(pass)
	}
	return &out
}
