// Package peft reads adapters that PEFT, Hugging Face's library, or others have trained: what a job
// may begin with. model writes them.
//
//	a, err := peft.Load(os.DirFS("adapter"), base, model.TaskClassify, len(labels), nil)
package peft
