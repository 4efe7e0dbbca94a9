//go:build xla && cgo

package xla

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	pjrt "github.com/gomlx/go-xla/compute/xla"
	"golang.org/x/sys/cpu"
)

// Open loads a plugin by its absolute path. TensorFloat-32 is off: a matrix product
// on an accelerator has the precision that it has elsewhere.
func Open(path string) (*Engine, error) {
	switch {
	case path == "":
		return nil, fmt.Errorf("%w: no plugin is named: --pjrt /path/to/plugin.so", ErrPlugin)
	case !filepath.IsAbs(path):
		return nil, fmt.Errorf("%w: %s is not an absolute path: a plugin is never searched for", ErrPlugin, path)
	case strings.Contains(path, ","):
		return nil, fmt.Errorf("%w: %s has a comma, which the loader takes for the end of the path", ErrPlugin, path)
	}
	sum, err := fileSum(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPlugin, err)
	}
	keepMemory()
	pjrt.EnableAutoInstall(false)
	be, err := pjrt.NewWithOptions(path+",tf32=false", nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrPlugin, path, err)
	}
	if be.NumDevices() == 0 {
		return nil, fmt.Errorf("%w: %s has no device", ErrPlugin, path)
	}
	device := be.DeviceDescription(0)
	if strings.Contains(strings.ToUpper(device), "CPU") {
		device = processor()
	}
	return &Engine{Name: fmt.Sprintf("xla %.6x %s", sum, device), Backend: be}, nil
}

// processor names what XLA makes different code for, and cuts sums by.
func processor() string {
	features := "baseline"
	switch {
	case cpu.X86.HasAMXTile:
		features = "amx"
	case cpu.X86.HasAVX512:
		features = "avx512"
	case cpu.X86.HasAVX2:
		features = "avx2"
	}
	return fmt.Sprintf("%s/%s x%d", runtime.GOARCH, features, runtime.NumCPU())
}

func fileSum(path string) (_ []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}
