// Package starling holds no code: its test keeps the rooms of the house apart.
package starling

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/starling-fl/starling/internal/watchdog"
)

const module = "github.com/starling-fl/starling/"

// mayImport is the table that docs/ARCHITECTURE.md gives the reasons of: for each package the others
// of this project that it may import. A name ending in /... stands for a
// package and what lies below it. Frames are read by internal/sim, which plays
// hostile devices, and by lab/bandwidth, which plays devices that send in the clear.
var mayImport = parseTable(`
audio:
audit: coordinator coordinator/round dp dp/accounting internal/uniform job model secagg
audit/forest:
audit/kmeans:
audit/membership: audit/forest audit/kmeans
audit/memorization: dataset
cmd/starling: internal/command internal/command/device internal/command/operator internal/engine/plugins
cmd/starling-edge: internal/command internal/command/device internal/engine
cmd/starling-web: audio dataset edge internal/wire web/client
coordinator: coordinator/internal/fleet coordinator/internal/link coordinator/internal/timing coordinator/monitor coordinator/optimizer
    coordinator/round coordinator/spans coordinator/store dp dp/accounting evaluate/metric internal/contract internal/wire job log model program quant secagg secagg/strength
coordinator/bucket:
coordinator/internal/fleet: coordinator/internal/link coordinator/round dp
coordinator/internal/link: coordinator/internal/origin coordinator/monitor internal/wire
coordinator/internal/origin:
coordinator/internal/socket: internal/wire
coordinator/internal/timing: coordinator/round
coordinator/jobs: coordinator coordinator/monitor coordinator/store dp dp/accounting job
coordinator/monitor: coordinator/round coordinator/store dp dp/accounting evaluate/metric model
coordinator/optimizer: job
coordinator/natsaccess:
coordinator/relay: coordinator/natsaccess secagg internal/durable internal/strict
coordinator/round:
coordinator/server: coordinator coordinator/internal/... coordinator/jobs coordinator/monitor coordinator/signin coordinator/store dp evaluate/metric
    internal/contentcoding internal/durable internal/qrcode internal/strict internal/wire log model
coordinator/shelf: coordinator coordinator/bucket coordinator/store internal/durable job model
coordinator/signin: coordinator/store
coordinator/spans:
coordinator/store: dp log
dataset: internal/named internal/seeded audio
dataset/calls: dataset internal/seeded
dataset/files: dataset
dataset/partition: dataset internal/seeded
dp: internal/uniform
dp/accounting: dp
edge: internal/named dataset dp internal/contract internal/durable internal/uniform internal/wire job/training log model model/known
    nf4 quant secagg task trainer wasm
internal/allocation:
internal/accounts: dataset edge internal/durable internal/named internal/terminal internal/usage
internal/admin: coordinator/server coordinator/store internal/named job internal/usage internal/wire
internal/attack:
internal/bases: hub internal/named job model model/base model/known internal/usage
internal/bases/start: hub internal/bases internal/named internal/usage job model model/peft task
internal/bench: dataset edge internal/accounts job job/training leak model program task trainer wasm internal/bases internal/usage
internal/cputime:
internal/command: internal/named dataset edge internal/nearest internal/terminal internal/strict job model/known internal/usage
internal/command/device: internal/accounts internal/named dataset edge internal/command internal/engine internal/generation internal/predict leak
    model internal/bench internal/participation internal/bases internal/usage internal/inspection
internal/command/operator: internal/named audit audit/membership coordinator/natsaccess coordinator/relay coordinator/server coordinator/store dataset
    dp dp/accounting hub internal/strict internal/command internal/dossier internal/durable internal/engine internal/engine/plugins
    internal/evaluation internal/exposure internal/fleetdata internal/inspection internal/spent internal/terminal internal/wire job model model/known
    secagg secagg/strength internal/guarantee internal/admin internal/demo internal/sim internal/bases internal/bases/start internal/usage internal/service
    coordinator/jobs
internal/contentcoding:
internal/contract: dp evaluate/metric internal/wire model quant secagg
hub: internal/durable model
evaluate/metric:
evaluate/answer: dataset model model/nn task tokenizer
evaluate: dataset evaluate/answer evaluate/metric model model/nn task
internal/cbor:
internal/demo: coordinator dataset internal/engine internal/evaluation internal/fleetdata internal/outcome internal/progress internal/sim job model
    program task wasm internal/bases internal/bases/start internal/named internal/usage
internal/dossier: internal/durable internal/terminal
internal/durable:
internal/engine: edge job program wasm wasm/compiler internal/usage
internal/engine/plugins: edge internal/engine model/nn/hosted program xla
internal/evaluation: dataset evaluate evaluate/answer internal/engine internal/predict internal/terminal model task coordinator coordinator/monitor
    internal/outcome internal/progress wasm/compiler job internal/usage
internal/exposure: internal/named audit/membership audit/memorization dataset evaluate evaluate/answer internal/engine internal/terminal model audit
    internal/dossier internal/fleetdata internal/bases internal/usage
internal/fleetdata: internal/named dataset dataset/files dataset/partition dataset/calls job model model/base/llama task internal/bases internal/usage
internal/inspection: internal/named wasm internal/bases internal/usage job program
internal/jinja:
internal/l2:
internal/mutant:
internal/outcome: coordinator/monitor dp evaluate internal/sim internal/terminal job model
internal/palette:
internal/pipes:
internal/predict: audio dataset evaluate/answer internal/engine internal/named internal/terminal model model/nn task tokenizer internal/usage
internal/generation: model model/nn task internal/terminal
internal/guarantee: dp dp/accounting internal/terminal job internal/usage
internal/progress: coordinator/monitor evaluate/metric internal/terminal job
internal/qrcode:
internal/seeded:
internal/service: coordinator coordinator/bucket coordinator/jobs coordinator/natsaccess coordinator/relay coordinator/server coordinator/shelf
    coordinator/signin coordinator/spans coordinator/store dataset edge internal/admin internal/bases internal/bases/start internal/durable internal/evaluation
    internal/named internal/outcome internal/progress internal/qrcode internal/terminal internal/usage internal/wire job model program web
internal/spent: coordinator/store dp dp/accounting internal/usage internal/named
internal/named:
internal/nearest:
internal/participation: dataset edge internal/accounts internal/bench internal/terminal leak model model/known hub internal/bases internal/named
    internal/strict internal/usage internal/wire program task
internal/strict: internal/nearest
internal/postgrestest:
internal/realdata:
internal/reference: model/nn trainer
internal/sim: coordinator coordinator/monitor coordinator/server dataset edge internal/wire
internal/tiny: model tokenizer
internal/terminal:
internal/untrained: model
internal/uniform:
internal/usage:
internal/watchdog: internal/cputime
internal/wire: internal/cbor job/training
model: internal/durable nf4
model/base: model
model/base/llama: model
model/known:
model/peft: model
model/nn: job/training model task trainer
model/nn/hosted: model model/nn task trainer
leak: dataset dp edge job/training model quant task tokenizer
job/schema: job
job/training:
job: internal/named dp internal/contract internal/strict internal/uniform internal/wire job/training model quant secagg
mutants: internal/mutant
lab/assembly/...:
lab/bench/...: ...
lab/bandwidth: coordinator dataset dp edge internal/contract internal/l2 internal/palette internal/sim internal/strict internal/wire job job/training lab/canvas
    model program quant secagg task tokenizer trainer
lab/canvas:
lab/federation: internal/named dataset
lab/gateways: coordinator/natsaccess coordinator/relay coordinator/store lab/natsserver
lab/cmd/starling: internal/command internal/command/device internal/command/operator internal/engine/plugins lab/internal/commands lab/internal/plots lab/natsserver
lab/image/...: lab/image
lab/internal/commands: internal/named audit/membership dataset dataset/calls dataset/files dp dp/accounting edge evaluate internal/command internal/durable
    internal/engine internal/engine/plugins internal/exposure internal/fleetdata internal/progress internal/strict internal/terminal internal/wire job
    lab/bandwidth lab/federation lab/internal/paintings lab/pretraining lab/report lab/sweep lab/voices model quant simulate lab/loadtest lab/queue
    task tokenizer tokenizer/unigram wasm internal/bases internal/bases/start internal/usage
lab/internal/paintings: dataset internal/seeded
lab/internal/resident:
lab/internal/plots: audit internal/palette lab/canvas internal/guarantee
lab/report: audit/membership audit/memorization internal/palette internal/durable internal/strict quant simulate lab/canvas lab/sweep
lab/natsserver: coordinator/natsaccess
lab/queue: audio dataset edge coordinator/natsaccess lab/natsserver model quant simulate wasm
lab/loadtest: internal/contract internal/wire log quant secagg
lab/pretraining: dataset internal/seeded internal/strict job/training model model/nn task tokenizer trainer
lab/readers:
lab/sweep: internal/named coordinator dataset dataset/partition dp dp/accounting edge internal/durable internal/nearest internal/strict job model quant simulate task
lab/voices: audio internal/strict
log: internal/cbor vrf
nf4:
program: internal/wire job job/training model model/nn nf4 wasm/compiler
quant: internal/l2 nf4
secagg: internal/cbor internal/uniform secagg/internal/tail
secagg/internal/tail:
secagg/strength: secagg secagg/internal/tail
simulate: coordinator dataset dp dp/accounting edge evaluate/metric internal/contract internal/durable job/training model program task trainer
tokenizer:
tokenizer/unigram: tokenizer
task: dataset internal/jinja internal/uniform model tokenizer
trainer: job/training model task
vrf:
wasm: nf4 wasm/cost wasm/kernel
wasm/compiler/...: nf4 wasm wasm/compiler/... wasm/cost
wasm/cost:
wasm/kernel: nf4
web: internal/contentcoding
web/client:
web/typescript: coordinator coordinator/jobs coordinator/monitor coordinator/server coordinator/store dataset edge internal/palette web/client
xla:
`)

// parseTable reads "package: imports"; a line that begins with a space goes on.
func parseTable(text string) map[string][]string {
	table := map[string][]string{}
	name := ""
	for line := range strings.Lines(text) {
		if head, rest, ok := strings.Cut(line, ":"); ok {
			name, line = head, rest
			table[name] = []string{}
		}
		if name != "" {
			table[name] = append(table[name], strings.Fields(line)...)
		}
	}
	return table
}

// noGoMLX must stay small enough for a browser.
var noGoMLX = []string{"edge", "wasm", "vrf", "model", "nf4", "job", "job/training", "trainer", "task", "quant", "dp", "secagg", "tokenizer", "audio", "dataset", "internal/wire", "cmd/starling-web"}

type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func list(t *testing.T, env ...string) map[string]listed {
	t.Helper()
	found := map[string]listed{}
	for _, folder := range []string{".", "lab"} { // a module each
		cmd := exec.CommandContext(watchdog.Context(t), "go", "list", "-e", "-json=ImportPath,Imports,Deps", "./...")
		cmd.Dir = folder
		cmd.Env = append(cmd.Environ(), env...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list in %s: %v", folder, err)
		}
		for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
			var p listed
			if err := dec.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if name, ok := strings.CutPrefix(p.ImportPath, module); ok {
				found[name] = p
			}
		}
	}
	return found
}

func covers(pattern, name string) bool {
	if below, ok := strings.CutSuffix(pattern, "..."); ok {
		return strings.HasPrefix(name+"/", below) || below == ""
	}
	return pattern == name
}

// rule is the row of the table that a package stands in; its own before one that covers it.
func rule(name string) (row string, ok bool) {
	for pattern := range mayImport {
		if covers(pattern, name) && (!ok || pattern == name) {
			row, ok = pattern, true
		}
	}
	return row, ok
}

// A permission that nobody uses lets in what nobody meant: it goes with the import that it was for.
func TestImportTable(t *testing.T) {
	used := map[string]map[string]bool{} // by row and permission; a row that stands for a package has an entry
	for _, env := range [][]string{{"GOOS=linux", "GOARCH=amd64"}, {"GOOS=js", "GOARCH=wasm"},
		{"GOOS=js", "GOARCH=wasm", "GOFLAGS=-tags=full"}} { // the last is the page's full build
		packages := list(t, env...)
		if len(packages) == 0 {
			t.Fatal("no packages listed")
		}
		for name, p := range packages {
			row, ok := rule(name)
			if !ok {
				t.Errorf("%s has no row in the import table", name)
				continue
			}
			if used[row] == nil {
				used[row] = map[string]bool{}
			}
			for _, imp := range p.Imports {
				target, own := strings.CutPrefix(imp, module)
				if !own {
					continue
				}
				may := false
				for _, pattern := range mayImport[row] {
					if covers(pattern, target) {
						may, used[row][pattern] = true, true
					}
				}
				if !may {
					t.Errorf("%s: %s may not import %s", env, name, target)
				}
			}
			if slices.Contains(noGoMLX, name) {
				for _, dep := range p.Deps {
					if strings.HasPrefix(dep, "github.com/gomlx/") {
						t.Errorf("%s: %s reaches %s, which does not belong in a browser", env, name, dep)
					}
				}
			}
		}
	}
	for row, allowed := range mayImport {
		if used[row] == nil {
			t.Errorf("the import table has a row %q, and no package is there", row)
			continue
		}
		for _, pattern := range allowed {
			if !used[row][pattern] {
				t.Errorf("%s may import %s and does not: take the permission from the table", row, pattern)
			}
		}
	}
}

// A device's program is small: it links no coordinator or simulation, no store, queue or plots.
func TestTheEdgeLinksNoServer(t *testing.T) {
	not := []string{module + "coordinator", module + "simulate", module + "lab", module + "web", "github.com/nats-io/",
		"modernc.org/", "github.com/jackc/", "database/sql", "gonum.org/v1/plot", "codeberg.org/go-fonts/", "github.com/gomlx/go-xla", "net/http/pprof",
		"github.com/minio/", "github.com/coreos/", "golang.org/x/oauth2"}
	for _, dep := range list(t)["cmd/starling-edge"].Deps {
		for _, prefix := range not {
			if strings.HasPrefix(dep, prefix) {
				t.Errorf("cmd/starling-edge links %s", dep)
			}
		}
	}
}

// onlyLaboratory are modules that the laboratory draws, queues, generates and reads back with.
var onlyLaboratory = []string{"github.com/nats-io/nats-server", "github.com/nats-io/jwt", "gonum.org/v1/plot", "codeberg.org/", "git.sr.ht/", "github.com/mmcloughlin/avo",
	"github.com/makiuchi-d/gozxing", "github.com/santhosh-tekuri/jsonschema", "github.com/rogpeppe/go-internal", "github.com/johannesboyne/gofakes3", "go.opentelemetry.io/", "github.com/zitadel/", "github.com/google/go-containerregistry", "golang.org/x/crypto/x509roots", "k8s.io/api", "sigs.k8s.io/"}

// What trains and predicts is what devices run: GoMLX's Go backend is for tests to compare with.
func TestCommandsLinkOneEngine(t *testing.T) {
	packages := list(t)
	for _, name := range []string{"cmd/starling", "cmd/starling-edge", "lab/cmd/starling"} {
		if slices.Contains(packages[name].Deps, "github.com/gomlx/compute/gobackend") || len(packages[name].Deps) == 0 {
			t.Errorf("%s links %d packages, and the Go backend", name, len(packages[name].Deps))
		}
	}
}

// A template calls methods by names that it reads: the linker then keeps every exported method of every library, which made
// starling 7.4 MB larger. Pages are made of gomponents, scripts of strings.
func TestNobodyCallsMethodsByName(t *testing.T) {
	for name, p := range list(t) {
		for _, imp := range p.Imports {
			if imp == "text/template" || imp == "html/template" {
				t.Errorf("%s imports %s", name, imp)
			}
		}
	}
}

// The laboratory stands apart: nothing outside of lab, and no program but its own, links it, nor
// what it draws and queues with.
func TestTheCoreLinksNoLaboratory(t *testing.T) {
	packages := list(t)
	for name, p := range packages {
		for _, imp := range p.Imports {
			if strings.HasPrefix(imp, module+"lab/") && !strings.HasPrefix(name, "lab/") {
				t.Errorf("%s imports %s", name, imp)
			}
		}
	}
	for _, dep := range packages["cmd/starling"].Deps {
		for _, prefix := range append([]string{module + "lab/"}, onlyLaboratory...) {
			if strings.HasPrefix(dep, prefix) {
				t.Errorf("cmd/starling links %s", dep)
			}
		}
	}
}

// The laboratory is a module of its own, so that the core's users download none of what it draws, queues and generates
// with; it is built with the core beside it, and with the same version of whatever both depend on.
func TestTheLaboratoryIsAModule(t *testing.T) {
	read := func(name string) *modfile.File {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := modfile.Parse(name, b, nil)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	core, lab := read("go.mod"), read("lab/go.mod")
	if len(core.Replace) > 0 {
		t.Errorf("go.mod replaces %s: what a user builds is not what is tested here", core.Replace[0].Old.Path)
	}
	if len(lab.Replace) != 1 || lab.Replace[0].Old.Path != core.Module.Mod.Path || filepath.Clean(lab.Replace[0].New.Path) != ".." {
		t.Errorf("lab/go.mod replaces %d modules; want the core alone, by the folder above", len(lab.Replace))
	}
	versions := map[string]string{}
	for _, r := range core.Require {
		versions[r.Mod.Path] = r.Mod.Version
		for _, only := range onlyLaboratory {
			if strings.HasPrefix(r.Mod.Path, only) {
				t.Errorf("go.mod requires %s, which the laboratory alone uses", r.Mod.Path)
			}
		}
	}
	for _, r := range lab.Require {
		if v, both := versions[r.Mod.Path]; both && v != r.Mod.Version {
			t.Errorf("%s is %s in go.mod and %s in lab/go.mod", r.Mod.Path, v, r.Mod.Version)
		}
	}
}

// The engine hears devices through coordinator.Conn, and nothing else of a network.
func TestTheEngineHasNoSockets(t *testing.T) {
	packages := list(t)
	for _, name := range []string{"coordinator", "coordinator/internal/fleet", "coordinator/internal/link", "coordinator/internal/timing", "coordinator/monitor", "coordinator/round", "coordinator/store", "coordinator/optimizer"} {
		for _, imp := range packages[name].Imports {
			if strings.HasPrefix(imp, "github.com/nats-io/") || imp == "net" || imp == "net/http" || imp == "crypto/tls" || strings.HasSuffix(imp, "/websocket") {
				t.Errorf("%s imports %s", name, imp)
			}
		}
	}
}

// A simulation and a service draw and release through one type, coordinator.Core. What
// keeps that apart from the engine around it: it reaches no network, clock, file or store,
// and starts nothing.
func TestTheArithmeticHasNoIO(t *testing.T) {
	without := []string{"context", "database/sql", "log/slog", "net", "net/http", "os", "path/filepath", "sync", "sync/atomic", "time",
		module + "coordinator/round", module + "coordinator/store"}
	files, err := filepath.Glob("coordinator/*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") || !slices.ContainsFunc(parsed.Decls, isArithmetic) {
			continue
		}
		found++
		for _, imp := range parsed.Imports {
			if path := strings.Trim(imp.Path.Value, `"`); slices.Contains(without, path) {
				t.Errorf("%s imports %s", file, path)
			}
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if _, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s starts a goroutine", file)
			}
			return true
		})
	}
	if found < 3 {
		t.Errorf("%d files with the arithmetic of a job", found)
	}
}

// eachSource calls each with every file of Go here, tests among them, but in folders of some names.
func eachSource(t *testing.T, each func(path string) error, without ...string) {
	t.Helper()
	without = append(without, "node_modules", ".git")
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(without, d.Name()):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		return each(path)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What starts a goroutine runs under the race detector, too.
func TestRaceDetectorIsNotForgotten(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(strings.ReplaceAll(string(makefile), "\\\n", ""), "\nRACE :=")
	list, _, _ = strings.Cut(list, "\n")
	raced := strings.Fields(list)
	found := 0
	eachSource(t, func(path string) error {
		if strings.HasSuffix(path, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		starts := false
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				starts = true
			case *ast.SelectorExpr: // WaitGroup.Go
				starts = starts || n.Sel.Name == "Go"
			}
			return true
		})
		if !starts {
			return nil
		}
		found++
		dir := "./" + filepath.ToSlash(filepath.Dir(path))
		for _, p := range raced {
			if above, all := strings.CutSuffix(p, "/..."); p == dir || all && strings.HasPrefix(dir+"/", above+"/") {
				return nil
			}
		}
		t.Errorf("%s starts a goroutine: RACE in the Makefile lacks %s", path, dir)
		return nil
	}, "lab", "cmd", "mutants")
	if found < 20 {
		t.Errorf("%d files start goroutines", found)
	}
}

// A YAML file comes from anywhere, and its parsers have no bound of their own: one package
// has them, and asks them nothing before it has looked.
func TestOneReaderOfYAML(t *testing.T) {
	readers := 0
	eachSource(t, func(path string) error {
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imp := range parsed.Imports {
			if !strings.Contains(strings.ToLower(imp.Path.Value), "yaml") {
				continue
			}
			if readers++; filepath.ToSlash(filepath.Dir(path)) != "internal/strict" {
				t.Errorf("%s imports %s: YAML is read and written by internal/strict", path, imp.Path.Value)
			}
		}
		return nil
	})
	if readers == 0 {
		t.Error("nothing imports a YAML library")
	}
}

// isArithmetic says whether a declaration is of Core or of what it is made of.
func isArithmetic(d ast.Decl) bool {
	f, ok := d.(*ast.FuncDecl)
	if !ok || f.Recv == nil {
		return ok && f.Name.Name == "newTerms"
	}
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	name, ok := of.(*ast.Ident)
	return ok && slices.Contains([]string{"Core", "Draw", "randomness"}, name.Name)
}

// Randomness that protects somebody never comes from math/rand.
func TestNoMathRandWhereSecretsAre(t *testing.T) {
	packages := list(t)
	for _, name := range []string{"secagg", "quant", "nf4", "dp"} {
		for _, imp := range packages[name].Imports {
			if strings.HasPrefix(imp, "math/rand") {
				t.Errorf("%s imports %s", name, imp)
			}
		}
	}
}
