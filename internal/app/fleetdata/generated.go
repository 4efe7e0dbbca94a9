package fleetdata

import (
	"github.com/starling-fl/starling/data/dataset"

	"github.com/starling-fl/starling/data/dataset/calls"
)

// Sizes of the generated task of images.
const (
	digitsPerClient = 96
	digitWriters    = 3 // of each client
	validationDigit = 500
	testDigits      = 1000
)

// Digits makes the task of images for a number of clients: each has writers
// of its own.
func Digits(seed uint64, clients int) (*Data, error) {
	train, err := dataset.Digits(seed, "train", clients*digitWriters, clients*digitsPerClient)
	if err != nil {
		return nil, err
	}
	d := &Data{Name: train.Name, Labels: train.Labels}
	if err := d.deal(train, clients, seed); err != nil {
		return nil, err
	}
	if d.Validation, err = dataset.Digits(seed, "validation", 50, validationDigit); err != nil {
		return nil, err
	}
	d.Test, err = dataset.Digits(seed, "test", 100, testDigits)
	return d, err
}

// Sizes of the generated questions about documents.
const (
	questionsPerClient  = 64
	sendersPerClient    = 8
	validationQuestions = 160
	testQuestions       = 400
	questionsPerSender  = 4 // of the two public parts: many senders, few documents each
)

// Questions makes the questions for a number of clients, with pictures of the documents' pages if they are wanted.
func Questions(seed uint64, clients int, pages bool) (*Data, error) {
	d := &Data{Name: "questions about documents"}
	train, err := dataset.Documents(dataset.DocumentConfig{Seed: seed, Split: "train", Clients: clients,
		PerClient: questionsPerClient, Providers: sendersPerClient, Pages: pages})
	if err != nil {
		return nil, err
	}
	if err := d.deal(train, clients, seed); err != nil {
		return nil, err
	}
	public := func(split string, n int) (*dataset.Set, error) {
		return dataset.Documents(dataset.DocumentConfig{Seed: seed, Split: split, Clients: n / questionsPerSender,
			PerClient: questionsPerSender, Providers: 1, Pages: pages})
	}
	if d.Validation, err = public("validation", validationQuestions); err != nil {
		return nil, err
	}
	d.Test, err = public("test", testQuestions)
	return d, err
}

// Sizes of the generated commands.
const (
	commandsPerClient  = 96
	validationCommands = 200
	testCommands       = 400
	commandsPerCaller  = 4 // of the two public parts: many callers, few commands each
)

// Commands makes the task of commands that come to calls of functions, for a number of clients:
// each is a caller with words of its own.
func Commands(seed uint64, clients int) (*Data, error) {
	train, err := calls.Generate(calls.Config{Seed: seed, Split: "train", Clients: clients, PerClient: commandsPerClient})
	if err != nil {
		return nil, err
	}
	d := &Data{Name: train.Name}
	if err := d.deal(train, clients, seed); err != nil {
		return nil, err
	}
	public := func(split string, n int) (*dataset.Set, error) {
		return calls.Generate(calls.Config{Seed: seed, Split: split, Clients: n / commandsPerCaller, PerClient: commandsPerCaller})
	}
	if d.Validation, err = public("validation", validationCommands); err != nil {
		return nil, err
	}
	d.Test, err = public("test", testCommands)
	return d, err
}

// Sizes of the generated task of recordings.
const (
	wordsPerClient    = 96
	speakersPerClient = 4
	validationWords   = 300
	testWords         = 600
	wordsPerSpeaker   = 6 // of the two public parts: many speakers, few words each
)

// SpokenWords makes the task of recordings for a number of clients: each has speakers of its own,
// and those of the public parts are heard nowhere else.
func SpokenWords(seed uint64, clients int) (*Data, error) {
	train, err := dataset.Spoken(seed, "train", clients*speakersPerClient, clients*wordsPerClient)
	if err != nil {
		return nil, err
	}
	d := &Data{Name: train.Name, Labels: train.Labels}
	if err := d.deal(train, clients, seed); err != nil {
		return nil, err
	}
	if d.Validation, err = dataset.Spoken(seed, "validation", validationWords/wordsPerSpeaker, validationWords); err != nil {
		return nil, err
	}
	d.Test, err = dataset.Spoken(seed, "test", testWords/wordsPerSpeaker, testWords)
	return d, err
}
