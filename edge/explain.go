package edge

import "strings"

// packages are the names that errors of this project's packages start with.
const packages = " accounting attack audio audit bandwidth card codegen columnar compiler contentcoding contract coordinator core dataset demo dossier dp edge gateways generation gguf hosted hub jinja jobs kernel kmeans known leak linear log model natsserver nf4 nn optimizer partition pattern plan pretraining program qrcode " +
	"quant queue reference relay report round secagg server signin sim simulate spans starling store strict sweep task tokenizer uniform voices vrf wasm web wire "

// Explain is an error's text for the owner of a device: without the names of packages that errors
// of Go programs begin with.
func Explain(err error) string {
	if err == nil {
		return ""
	}
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		var kept []string
		for _, part := range strings.Split(line, ": ") {
			if part == "" || strings.Contains(part, " ") || !strings.Contains(packages, " "+part+" ") {
				kept = append(kept, part)
			}
		}
		lines[i] = strings.Join(kept, ": ")
	}
	return Escape(strings.Join(lines, "\n"), true)
}
