package model

// For tests of this folder that import model/peft.
var ZeroBase = zeroBase

// TinyConfigs are small configurations of every architecture, and "own" of what only Starling computes.
func TinyConfigs() map[string]Config {
	all := map[string]Config{"own": tinyConfig()}
	for kind := range architectures {
		all[kind] = huggingConfig(kind)
	}
	return all
}

func (c Config) LinearNames() []string     { return c.linearNames() }
func (c Config) CheckpointPrefix() string  { return c.checkpointPrefix() }
func (m Method) Adapted(c Config) []string { return namesOf(m.adapted(c)) }
