// Command make packs what deploy/release.sh has built: see package release.
//
//	go run ./release/make VERSION FOLDER SOURCE MANUAL    everything
//	go run ./release/make VERSION FOLDER SOURCE           Python wheels alone
package main

import (
	"fmt"
	"os"

	"github.com/starling-fl/starling/lab/release"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "make:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 && len(args) != 4 {
		return fmt.Errorf("want a version, the folder of its programs, the repository and, for more than wheels, the folder of its manual")
	}
	r, err := release.Open(args[0], args[1], args[2])
	if err != nil {
		return err
	}
	if len(args) == 3 {
		return r.Wheels()
	}
	return r.Make(args[3])
}
