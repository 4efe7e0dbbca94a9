//go:build !js || full

package task

import "github.com/starling-fl/starling/model"

func init() {
	kinds[model.TaskAnswer] = answerKind
	kinds[model.TaskDenoise] = denoiseKind
	kinds[model.TaskListen] = listenKind
	kinds[model.TaskTranscribe] = transcribeKind
	kinds[model.TaskCausal] = causalKind
}
