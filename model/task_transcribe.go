package model

import "fmt"

// TaskTranscribe writes the characters that are spoken in a recording.
const TaskTranscribe TaskKind = "transcribe"

var transcribeTask = taskSpec{
	kind: TaskTranscribe, name: "transcribe", reads: ReadsFrames, loss: LossSpelling, sounds: true,
	head:    oneMap("lm_head"),
	outputs: func(c Config) int { return c.VocabSize },
	fits: func(c Config) error {
		if c.VocabSize < 2 {
			return fmt.Errorf("task is %s, but the base has no characters to write: put a %s into its folder, as a Wav2Vec2CTCTokenizer has it",
				TaskTranscribe, PairsFile)
		}
		return nil
	},
	class: "ForCTC", auto: "AutoModelForCTC", // PEFT's plain class wraps it
	pipeline: "automatic-speech-recognition", title: "A transcriber of recordings",
	made: func(l *Layout) string { return fmt.Sprintf("a head of %d characters", l.Outputs()) },
	usage: func(*Checkpoint) string {
		return "samples = [0.0] * 16000  # a recording of one channel at processor.feature_extractor.sampling_rate\n" +
			"inputs = processor(samples, sampling_rate=processor.feature_extractor.sampling_rate, return_tensors=\"pt\")\n" +
			logitsOf + "print(processor.batch_decode(logits.argmax(-1)))\n"
	},
}
