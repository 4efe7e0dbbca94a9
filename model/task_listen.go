package model

// TaskListen is one label for a recording.
const TaskListen TaskKind = "listen"

var listenTask = taskSpec{
	kind: TaskListen, name: "listen", labelled: true, sounds: true,
	problem: "single_label_classification",
	// transformers maps each frame by the first and takes the mean; the mean of the frames,
	// mapped, is the same.
	head: func(c Config) []Dense {
		return []Dense{{Name: "projector", Out: c.Speech.Projector, Trained: true}, {Name: "classifier", Trained: true}}
	},
	class: "ForSequenceClassification", auto: "AutoModelForAudioClassification", peftType: "SEQ_CLS",
	pipeline: "audio-classification", title: "A classifier of recordings", made: ofLabels,
	usage: func(*Checkpoint) string {
		return "samples = [0.0] * 16000  # a recording of one channel at processor.sampling_rate\n" +
			"inputs = processor(samples, sampling_rate=processor.sampling_rate, return_tensors=\"pt\")\n" +
			logitsOf + "print(model.config.id2label[int(logits[0].argmax())])\n"
	},
}
