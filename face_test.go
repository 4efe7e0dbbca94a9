package starling

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPublicFace: whoever imports one of our packages can name every type that its exported
// names show; one of internal/ could be received, but neither declared nor written down.
func TestPublicFace(t *testing.T) {
	out, err := exec.Command("git", "ls-files", "*.go").Output()
	if err != nil {
		t.Skip("not a checkout: ", err)
	}
	files, packages := token.NewFileSet(), map[string]bool{}
	for _, name := range strings.Fields(string(out)) {
		dir := filepath.ToSlash(filepath.Dir(name))
		if strings.HasSuffix(name, "_test.go") || dir == "." || strings.HasPrefix(dir, "lab/bench") || strings.HasPrefix(dir, "cmd/") ||
			strings.Contains(dir+"/", "internal/") || strings.HasPrefix(dir, "lab/assembly") ||
			dir == "coordinator/core" { // whose Terms and vectors package coordinator alone reads
			continue
		}
		parsed, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted and not committed
		}
		if err != nil {
			t.Fatal(err)
		}
		packages[dir] = true
		hidden := map[string]bool{} // names of this file's internal imports
		for _, imp := range parsed.Imports {
			path := strings.Trim(imp.Path.Value, `"`)
			if !strings.HasPrefix(path, module) || !strings.Contains(path, "/internal/") {
				continue
			}
			local := path[strings.LastIndex(path, "/")+1:]
			if imp.Name != nil {
				local = imp.Name.Name
			}
			hidden[local] = true
		}
		if len(hidden) == 0 {
			continue
		}
		for _, shown := range face(parsed) {
			ast.Inspect(shown, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && hidden[x.Name] {
						t.Errorf("%s shows %s.%s, which no importer can name", files.Position(s.Pos()), x.Name, s.Sel.Name)
					}
				}
				return true
			})
		}
	}
	if len(packages) < 20 {
		t.Errorf("%d public packages", len(packages))
	}
}

// face is what a file's exported names show of types.
func face(f *ast.File) (shown []ast.Node) {
	add := func(n ast.Node) {
		if n != nil {
			shown = append(shown, n)
		}
	}
	fields := func(list *ast.FieldList, all bool) {
		if list == nil {
			return
		}
		for _, field := range list.List {
			exported := all || len(field.Names) == 0 && ast.IsExported(embedded(field.Type))
			for _, n := range field.Names {
				exported = exported || n.IsExported()
			}
			if exported {
				add(field.Type)
			}
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if !d.Name.IsExported() || d.Recv != nil && !ast.IsExported(embedded(d.Recv.List[0].Type)) {
				continue
			}
			fields(d.Type.Params, true)
			fields(d.Type.Results, true)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if !spec.Name.IsExported() {
						continue
					}
					if s, ok := spec.Type.(*ast.StructType); ok {
						fields(s.Fields, false)
					} else {
						add(spec.Type)
					}
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						if n.IsExported() && spec.Type != nil {
							add(spec.Type)
						}
					}
				}
			}
		}
	}
	return shown
}

// embedded is the name of a receiver's or an embedded field's type.
func embedded(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			return x.Sel.Name
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// TestPackagesShowTheirUse: an importable package opens with a sentence that says what it is, and shows one use, as an
// example or in its comment. What the comment's code names is there.
func TestPackagesShowTheirUse(t *testing.T) {
	out, err := exec.Command("git", "ls-files", "*.go").Output()
	if err != nil {
		t.Skip("not a checkout: ", err)
	}
	type shown struct {
		name, doc string
		example   bool
		names     map[string]bool
	}
	packages := map[string]*shown{}
	example := regexp.MustCompile(`(?m)^func Example`)
	for _, name := range strings.Fields(string(out)) {
		dir := filepath.ToSlash(filepath.Dir(name))
		if dir == "." || strings.HasPrefix(dir, "lab") || strings.HasPrefix(dir, "cmd/") || strings.Contains(dir+"/", "internal/") ||
			strings.Contains(dir, "testdata") {
			continue
		}
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted and not committed
		}
		if err != nil {
			t.Fatal(err)
		}
		p := packages[dir]
		if p == nil {
			p = &shown{names: map[string]bool{}}
			packages[dir] = p
		}
		if strings.HasSuffix(name, "_test.go") {
			p.example = p.example || example.Match(text)
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		p.name = parsed.Name.Name
		if parsed.Doc != nil && parsed.Doc.Text() != "" {
			p.doc += parsed.Doc.Text()
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && id.IsExported() {
				p.names[id.Name] = true
			}
			return true
		})
	}
	if len(packages) < 50 {
		t.Fatalf("%d packages", len(packages))
	}
	for dir, p := range packages {
		if p.name == "main" || p.name == "" {
			continue
		}
		if !strings.HasPrefix(p.doc, "Package "+p.name+" ") {
			t.Errorf("%s: the comment does not begin with Package %s", dir, p.name)
		}
		code := false
		uses := regexp.MustCompile(`\b` + p.name + `\.([A-Z]\w*)`)
		for line := range strings.Lines(p.doc) {
			if !strings.HasPrefix(line, "\t") {
				continue
			}
			code = true
			for _, m := range uses.FindAllStringSubmatch(line, -1) {
				if !p.names[m[1]] {
					t.Errorf("%s: the comment uses %s, which is not there", dir, m[0])
				}
			}
		}
		if !code && !p.example {
			t.Errorf("%s shows no use: an Example, or indented code in the package's comment", dir)
		}
	}
}
