// Command pack makes an OCI image of what deploy/release.sh has built: one file, for all of its
// architectures of Linux. It prints the image's digest.
//
//	go run ./image/pack VERSION FOLDER
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/starling-fl/starling/lab/image"
)

func main() {
	if err := pack(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func pack(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("want a version and the folder of its programs")
	}
	version, folder := args[0], args[1]
	var programs []image.Program
	for _, arch := range []string{"amd64", "arm64"} {
		file := filepath.Join(folder, fmt.Sprintf("starling_%s_linux_%s", version, arch))
		if _, err := os.Stat(file); err != nil {
			continue
		}
		programs = append(programs, image.Program{Arch: arch, Path: file, Made: file + ".cdx.json"})
	}
	if len(programs) == 0 {
		return fmt.Errorf("%s has no starling_%s_linux_amd64 or _arm64", folder, version)
	}
	index, err := image.Index(version, programs)
	if err != nil {
		return err
	}
	file := filepath.Join(folder, fmt.Sprintf("starling_%s_image.tar", version))
	digest, err := image.Write(index, version, file)
	if err != nil {
		return err
	}
	fmt.Printf("%s is %s:%s, %s\n", file, image.Name, version, digest)
	return nil
}
