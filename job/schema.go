package job

import _ "embed"

//go:generate go run ./schema -out schema.json

// Schema is the JSON Schema (draft 2020-12) of a job file: keys, types, defaults
// and what they mean, for editors and for tools that write job files. What keys
// mean together only Validate checks.
//
//go:embed schema.json
var Schema []byte
