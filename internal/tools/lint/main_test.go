package main

import (
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
)

// TestVanishingErrorsAreFound runs all checks as one over a file that says which
// lines they must find, and no other.
func TestVanishingErrorsAreFound(t *testing.T) {
	all := &analysis.Analyzer{Name: "all", Doc: "all checks", Run: func(pass *analysis.Pass) (any, error) {
		for _, a := range analyzers() {
			if _, err := a.Run(pass); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}}
	for _, a := range analyzers() {
		all.Requires = append(all.Requires, a.Requires...)
	}
	analysistest.Run(t, analysistest.TestData(), all, "vanish")
}
