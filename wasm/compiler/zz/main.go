package main

import (
	"context"
	"os"

	"github.com/tetratelabs/wazero"
)

func main() {
	b, _ := os.ReadFile(os.Args[1])
	rt := wazero.NewRuntimeWithConfig(context.Background(), wazero.NewRuntimeConfigCompiler())
	_, err := rt.CompileModule(context.Background(), b)
	if err != nil {
		panic(err)
	}
}
