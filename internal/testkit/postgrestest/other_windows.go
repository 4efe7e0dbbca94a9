package postgrestest

import "os/exec"

func asOther(*exec.Cmd) error { return nil }

func owned(string) error { return nil }
