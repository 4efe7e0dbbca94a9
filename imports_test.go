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

	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

const module = "github.com/starling-fl/starling/"

// mayImport is the table that docs/ARCHITECTURE.md gives the reasons of: for each package the others
// of this project that it may import. A name ending in /... stands for a
// package and what lies below it. Frames are read by internal/app/sim, which plays
// hostile devices, and by lab/bandwidth, which plays devices that send in the clear.
var mayImport = parseTable(`
data/audio:
dp/audit: coordinator/core coordinator/round dp dp/accounting internal/leaf/uniform job model secagg
dp/audit/forest:
dp/audit/kmeans:
dp/audit/membership: dp/audit/forest dp/audit/kmeans
dp/audit/memorization: data/dataset
cmd/starling: internal/app/command internal/app/command/device internal/app/command/operator internal/app/engine/plugins
cmd/starling-edge: internal/app/command internal/app/command/device internal/app/engine
cmd/starling-web: data/audio data/dataset edge internal/protocol/wire web/client
coordinator: internal/protocol/card job/statement coordinator/core coordinator/internal/fleet coordinator/internal/link coordinator/internal/timing coordinator/monitor
    coordinator/round coordinator/store dp dp/accounting internal/leaf/disk model/evaluate/metric internal/protocol/contract internal/protocol/wire job secagg/log model wasm/program quant secagg secagg/strength
coordinator/bucket:
coordinator/core: coordinator/optimizer dp dp/accounting internal/protocol/contract internal/protocol/wire job model model/evaluate/metric quant wasm/program
coordinator/internal/fleet: coordinator/internal/link coordinator/round dp
coordinator/internal/link: coordinator/internal/origin coordinator/monitor internal/protocol/wire
coordinator/internal/origin:
coordinator/internal/socket: internal/protocol/wire
coordinator/internal/timing: coordinator/round job
coordinator/jobs: coordinator coordinator/monitor coordinator/store dp dp/accounting job
coordinator/monitor: coordinator/round coordinator/store dp dp/accounting model/evaluate/metric model
coordinator/optimizer: job
coordinator/natsaccess:
coordinator/relay: coordinator/natsaccess internal/leaf/durable internal/leaf/strict
coordinator/round:
coordinator/server: internal/protocol/card job/statement job/statement/wellknown coordinator coordinator/internal/... coordinator/jobs coordinator/monitor coordinator/signin coordinator/store dp model/evaluate/metric
    internal/protocol/contentcoding internal/leaf/certificate internal/leaf/durable internal/leaf/qrcode internal/leaf/strict internal/protocol/wire secagg/log model
coordinator/shelf: coordinator coordinator/bucket coordinator/store internal/leaf/durable job model
coordinator/signin: coordinator/store
coordinator/store: dp secagg/log
data/columnar:
data/dataset: internal/leaf/named internal/leaf/seeded data/audio data/columnar
data/dataset/calls: data/dataset internal/leaf/seeded
data/dataset/files: data/dataset
data/dataset/partition: data/dataset internal/leaf/seeded
dp: internal/leaf/uniform
dp/accounting: dp
edge: internal/leaf/named data/dataset dp internal/protocol/contract internal/leaf/durable internal/leaf/uniform internal/protocol/wire job/training secagg/log model model/known
    quant/nf4 quant secagg data/task model/trainer wasm
internal/testkit/allocation:
internal/app/accounts: data/dataset edge internal/leaf/durable internal/leaf/named internal/leaf/terminal internal/app/usage
internal/app/backup: coordinator/store internal/leaf/durable model
internal/app/admin: coordinator coordinator/monitor coordinator/server coordinator/store internal/app/backup internal/app/checkup internal/leaf/disk internal/leaf/named internal/leaf/terminal job internal/app/secretfile internal/app/usage internal/protocol/wire
internal/testkit/attack:
internal/app/bases: model/hub internal/leaf/named job model model/base model/known internal/app/usage
internal/app/bases/start: model/hub internal/app/bases internal/leaf/named internal/app/usage job model model/peft data/task
internal/app/rehearsal: coordinator edge internal/app/bench job model
internal/app/bench: internal/leaf/l2 internal/protocol/contract internal/protocol/wire data/dataset edge internal/app/accounts job job/training edge/leak model wasm/program data/task model/trainer wasm internal/app/bases internal/app/usage
internal/leaf/cputime:
internal/app/checkup: data/dataset edge internal/app/accounts internal/leaf/disk internal/leaf/terminal internal/protocol/wire wasm
internal/app/command: internal/app/checkup internal/leaf/named data/dataset edge internal/leaf/nearest internal/leaf/terminal internal/leaf/strict job model model/known internal/app/usage
internal/app/command/device: internal/app/accounts internal/app/checkup internal/leaf/named data/dataset edge internal/app/command internal/app/completions internal/app/engine internal/app/generation internal/app/predict edge/leak
    model internal/app/bench internal/app/participation internal/app/bases internal/app/usage internal/app/inspection internal/app/idle internal/app/unattended
internal/app/command/operator: coordinator internal/protocol/card job/statement internal/leaf/named dp/audit dp/audit/membership coordinator/natsaccess coordinator/relay coordinator/server coordinator/store data/dataset
    dp dp/accounting model/hub internal/leaf/strict internal/app/command internal/app/dossier internal/leaf/durable internal/app/engine internal/app/engine/plugins
    internal/app/rehearsal internal/app/evaluation internal/app/exposure internal/app/fleetdata internal/app/inspection internal/app/spent internal/leaf/terminal internal/protocol/wire job model model/gguf
    model/known
    secagg secagg/strength coordinator/core internal/app/guarantee internal/app/checkup internal/app/admin internal/app/backup internal/app/demo internal/app/sim internal/app/bases internal/app/bases/start internal/app/usage internal/app/service
    coordinator/jobs
internal/protocol/contentcoding:
internal/protocol/contract: dp internal/leaf/l2 model/evaluate/metric internal/protocol/wire model quant secagg
model/hub: internal/leaf/durable model
model/evaluate/metric: model
model/evaluate/answer: data/dataset model model/nn data/task data/tokenizer
model/evaluate/linear: data/dataset data/task
model/evaluate: data/dataset model/evaluate/answer model/evaluate/metric model model/nn data/task
internal/protocol/card: dp internal/protocol/wire job/statement
internal/protocol/cbor:
job/statement:
job/statement/wellknown: job/statement
internal/app/demo: coordinator data/dataset internal/app/engine internal/app/evaluation internal/app/fleetdata internal/app/outcome internal/app/progress internal/app/sim job model
    wasm/program data/task wasm internal/app/bases internal/app/bases/start internal/leaf/named internal/app/usage
internal/app/dossier: internal/leaf/durable internal/leaf/terminal
internal/leaf/certificate:
internal/leaf/disk:
internal/leaf/durable:
internal/app/engine: edge job wasm/program wasm wasm/compiler internal/app/usage
internal/app/engine/plugins: edge internal/app/engine model/nn/hosted wasm/program model/xla
internal/app/evaluation: internal/app/bases data/dataset model/evaluate model/evaluate/answer internal/app/engine internal/app/predict internal/leaf/terminal model data/task coordinator coordinator/monitor
    internal/app/outcome internal/app/progress wasm/compiler job internal/app/usage
internal/app/exposure: internal/leaf/named dp/audit/membership dp/audit/memorization data/dataset model/evaluate model/evaluate/answer internal/app/engine internal/leaf/terminal model dp/audit
    internal/app/dossier internal/app/fleetdata internal/app/bases internal/app/usage
internal/app/fleetdata: internal/leaf/named data/dataset data/dataset/files data/dataset/partition data/dataset/calls job model model/base/llama data/task internal/app/bases internal/app/usage
internal/app/inspection: internal/leaf/named wasm internal/app/bases internal/app/usage job wasm/program
internal/leaf/jinja:
internal/leaf/pattern:
internal/leaf/l2:
internal/testkit/mutant: internal/testkit/nightly
internal/testkit/nightly:
internal/app/outcome: coordinator/monitor dp data/dataset model/evaluate model/evaluate/linear internal/app/sim internal/leaf/terminal job model
internal/leaf/palette:
internal/leaf/pipes:
internal/app/predict: data/audio data/dataset model/evaluate/answer internal/app/engine internal/leaf/named internal/leaf/terminal model model/nn data/task data/tokenizer internal/app/usage
internal/app/completions: internal/app/generation internal/app/secretfile internal/app/usage internal/leaf/certificate internal/leaf/nearest
internal/app/generation: model model/nn data/task data/tokenizer internal/leaf/terminal
internal/app/guarantee: dp dp/accounting internal/leaf/terminal job internal/app/usage
internal/app/progress: coordinator/monitor model/evaluate/metric internal/leaf/terminal job
internal/leaf/qrcode:
internal/leaf/seeded:
internal/app/service: coordinator coordinator/bucket coordinator/jobs coordinator/natsaccess coordinator/relay coordinator/server coordinator/shelf
    internal/app/rehearsal coordinator/signin coordinator/store data/dataset edge internal/app/bases internal/app/bases/start internal/leaf/durable internal/app/evaluation
    internal/leaf/named internal/app/outcome internal/app/progress internal/leaf/qrcode internal/leaf/terminal internal/app/secretfile internal/app/usage internal/protocol/wire job model wasm/program web
internal/app/secretfile: internal/app/usage internal/leaf/named
internal/app/spent: coordinator/store dp dp/accounting internal/app/usage internal/leaf/named
internal/leaf/named:
internal/leaf/nearest:
internal/app/idle:
internal/app/unattended: internal/app/usage internal/leaf/durable
internal/app/participation: internal/protocol/card internal/app/idle job/statement job/statement/wellknown internal/protocol/wire data/dataset edge internal/app/accounts internal/app/bench internal/leaf/terminal edge/leak model model/known model/hub internal/app/bases internal/leaf/named
    internal/leaf/strict internal/app/usage internal/protocol/wire wasm/program data/task
internal/leaf/strict: internal/leaf/nearest
internal/testkit/authority:
internal/testkit/pets: data/dataset data/task internal/testkit/tiny job/training model model/nn
internal/testkit/postgrestest:
internal/testkit/realdata:
internal/testkit/reference: model/nn model/trainer
internal/app/sim: coordinator coordinator/monitor coordinator/server data/dataset edge internal/protocol/wire
internal/testkit/tiny: model data/tokenizer
internal/leaf/terminal:
internal/leaf/untrained: model
internal/leaf/uniform:
internal/app/usage:
internal/testkit/watchdog: internal/leaf/cputime
internal/protocol/wire: internal/protocol/cbor job/training
model: internal/leaf/durable quant/nf4
model/base: model
model/base/llama: model
model/known:
model/gguf: model data/tokenizer
model/peft: model
model/nn: job/training model data/task model/trainer
model/nn/hosted: model model/nn data/task model/trainer
edge/leak: data/dataset dp edge internal/leaf/l2 job/training model quant data/task data/tokenizer
job/schema: job
job/training:
job: job/statement internal/leaf/named dp internal/protocol/contract internal/leaf/strict internal/leaf/uniform internal/protocol/wire job/training model quant secagg
internal/tools/mutants: internal/testkit/mutant
lab/assembly/...:
lab/bench/...: ...
lab/bandwidth: coordinator data/dataset dp edge internal/protocol/contract internal/leaf/l2 internal/leaf/palette internal/app/sim internal/leaf/strict internal/protocol/wire job job/training lab/canvas
    model wasm/program quant secagg data/task data/tokenizer model/trainer
lab/canvas:
lab/federation: internal/leaf/named data/dataset
lab/gateways: coordinator/natsaccess coordinator/relay coordinator/store lab/natsserver
lab/cmd/starling: internal/app/command internal/app/command/device internal/app/command/operator internal/app/engine/plugins lab/internal/commands lab/internal/plots lab/natsserver
lab/image/...: lab/image
lab/release/...: lab/release
lab/internal/commands: internal/leaf/named dp/audit/membership data/dataset data/dataset/calls data/dataset/files dp dp/accounting edge model/evaluate internal/app/command internal/leaf/durable
    internal/app/engine internal/app/engine/plugins internal/app/exposure internal/app/fleetdata internal/app/progress internal/leaf/strict internal/leaf/terminal internal/protocol/wire job
    lab/bandwidth lab/federation lab/internal/paintings lab/pretraining lab/prospect lab/report lab/sweep lab/voices model quant simulate lab/loadtest lab/queue
    data/task data/tokenizer data/tokenizer/unigram wasm internal/app/bases internal/app/bases/start internal/app/usage
lab/internal/paintings: data/dataset internal/leaf/seeded
lab/internal/resident:
lab/internal/plots: dp/audit internal/leaf/palette lab/canvas internal/app/guarantee
lab/report: dp/audit/membership dp/audit/memorization internal/leaf/palette internal/leaf/durable internal/leaf/strict quant simulate lab/canvas lab/sweep
lab/natsserver: coordinator/natsaccess
lab/queue: data/audio data/dataset edge coordinator/natsaccess lab/natsserver model quant simulate wasm
lab/loadtest: internal/protocol/contract internal/protocol/wire secagg/log quant secagg
lab/prospect: coordinator/core data/dataset data/task internal/app/fleetdata internal/app/guarantee internal/app/usage job model lab/sweep
lab/pretraining: data/dataset internal/leaf/seeded internal/leaf/strict job/training model model/nn data/task data/tokenizer model/trainer
lab/readers:
lab/sweep: internal/leaf/named internal/app/progress coordinator/core model/evaluate/linear model/evaluate/metric wasm/program data/dataset data/dataset/partition dp dp/accounting edge internal/leaf/durable internal/leaf/nearest internal/leaf/strict job model quant simulate data/task
lab/voices: data/audio internal/leaf/strict
secagg/log: internal/protocol/cbor secagg/log/vrf
quant/nf4:
wasm/program: internal/protocol/wire job job/training model model/nn quant/nf4 wasm/compiler
quant: internal/leaf/l2 quant/nf4
secagg: internal/protocol/cbor internal/leaf/uniform secagg/internal/tail
secagg/internal/tail:
secagg/strength: secagg secagg/internal/tail
simulate: coordinator/core data/dataset dp dp/accounting edge model/evaluate/metric internal/protocol/contract internal/leaf/durable job job/training model wasm/program data/task model/trainer
data/tokenizer: internal/leaf/pattern
data/tokenizer/unigram: data/tokenizer
data/task: data/dataset internal/leaf/jinja internal/leaf/uniform model data/tokenizer
model/trainer: job/training model data/task
secagg/log/vrf:
wasm: internal/protocol/cbor quant/nf4 wasm/cost wasm/kernel
wasm/compiler/...: quant/nf4 wasm wasm/compiler/... wasm/cost
wasm/cost:
wasm/kernel: quant/nf4
web: internal/protocol/contentcoding
web/client:
web/typescript: coordinator coordinator/jobs coordinator/monitor coordinator/server coordinator/store data/dataset edge internal/leaf/palette web/client
model/xla:
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
var noGoMLX = []string{"edge", "wasm", "secagg/log/vrf", "model", "quant/nf4", "job", "job/training", "model/trainer", "data/task", "quant", "dp", "secagg", "data/tokenizer", "data/audio", "data/dataset", "internal/protocol/wire", "cmd/starling-web"}

type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

// lists are what list has found, by environment.
var lists = map[string]map[string]listed{}

func list(t *testing.T, env ...string) map[string]listed {
	t.Helper()
	if found, ok := lists[strings.Join(env, " ")]; ok {
		return found
	}
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
	lists[strings.Join(env, " ")] = found
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

// What a page loads first is for most jobs, which have texts: what a few need is in the full build, which pages of those load.
func TestThePageLoadsLittle(t *testing.T) {
	not := []string{module + "internal/leaf/pattern", module + "internal/leaf/jinja", "golang.org/x/text/", "image/", "compress/",
		"net/http", "encoding/xml", "encoding/gob", "github.com/fxamacker/", "text/template", "archive/", "crypto/x509"}
	deps := list(t, "GOOS=js", "GOARCH=wasm")["cmd/starling-web"].Deps
	if len(deps) == 0 {
		t.Fatal("no package is linked")
	}
	for _, dep := range deps {
		for _, prefix := range not {
			if strings.HasPrefix(dep, prefix) {
				t.Errorf("cmd/starling-web without the tag full links %s", dep)
			}
		}
	}
}

// onlyLaboratory are modules that the laboratory draws, queues, generates and reads back with.
var onlyLaboratory = []string{"github.com/nats-io/nats-server", "github.com/nats-io/jwt", "gonum.org/v1/plot", "codeberg.org/", "git.sr.ht/", "github.com/mmcloughlin/avo",
	"github.com/makiuchi-d/gozxing", "github.com/santhosh-tekuri/jsonschema", "github.com/rogpeppe/go-internal", "github.com/johannesboyne/gofakes3", "github.com/zitadel/", "github.com/google/go-containerregistry", "golang.org/x/crypto/x509roots", "k8s.io/api", "sigs.k8s.io/"}

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

// A simulation and a service draw and release through one type, core.Core. What keeps that apart from the engine around
// it: it reaches no network, clock, file or store, and starts nothing.
func TestTheArithmeticHasNoIO(t *testing.T) {
	without := []string{"context", "database/sql", "log/slog", "net", "net/http", "os", "path/filepath", "sync", "sync/atomic", "time",
		module + "coordinator/round", module + "coordinator/store"}
	files, err := filepath.Glob("coordinator/core/*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
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
	if found < 5 {
		t.Errorf("%d files with the arithmetic of a job", found)
	}
}

// A simulation and an audit compute what a service would: they link no engine, no database and no metrics.
func TestSimulationsLinkNoService(t *testing.T) {
	packages := list(t)
	for _, name := range []string{"coordinator/core", "simulate", "dp/audit"} {
		deps := packages[name].Deps
		if !slices.Contains(deps, module+"dp") {
			t.Errorf("%s links %d packages, and not dp", name, len(deps))
		}
		for _, dep := range deps {
			for _, not := range []string{module + "coordinator/store", module + "coordinator/monitor", module + "coordinator/server", "database/sql", "github.com/jackc/",
				"modernc.org/", "github.com/prometheus/", "github.com/nats-io/"} {
				if dep == strings.TrimSuffix(module, "/") || dep == module+"coordinator" || strings.HasPrefix(dep, not) {
					t.Errorf("%s links %s", name, dep)
				}
			}
		}
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
			if readers++; filepath.ToSlash(filepath.Dir(path)) != "internal/leaf/strict" {
				t.Errorf("%s imports %s: YAML is read and written by internal/leaf/strict", path, imp.Path.Value)
			}
		}
		return nil
	})
	if readers == 0 {
		t.Error("nothing imports a YAML library")
	}
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
