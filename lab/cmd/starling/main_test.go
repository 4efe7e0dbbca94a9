package main

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	program := func() {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	testscript.Main(tests{m}, map[string]func(){"starling": program, "starling-edge": program})
}

// tests runs several at a time also on few processors, since most wait for processes and deadlines, and removes what they
// share.
type tests struct{ *testing.M }

func (m tests) Run() int {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(max(4, runtime.GOMAXPROCS(0))))
	}
	defer func() {
		if folderOfBuilt != "" {
			os.RemoveAll(folderOfBuilt)
		}
	}()
	return m.M.Run()
}

// The scripts say what a person sees of each command: output, refusals, exit
// codes.
func TestScripts(t *testing.T) {
	bases, err := filepath.Abs("../../../model/base")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{Dir: "testdata", Setup: func(e *testscript.Env) error {
		e.Setenv("DOCUMENTS", filepath.Join(bases, "documents")) // embedded bases, as folders
		e.Setenv("DEFAULT", filepath.Join(bases, "default"))
		return nil
	}})
}
