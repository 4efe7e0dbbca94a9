package command

import (
	"fmt"
	"io"

	"github.com/starling-fl/starling/model"
)

// SayTask says which task a job has that names none, where the base decides it.
func SayTask(w io.Writer, named bool, b *model.Base) {
	if task := b.Config.DefaultTask(); !named && task != model.TaskClassify {
		fmt.Fprintf(w, "task: %s, the only one of a %s\n", task, b.Config.ModelType)
	}
}
