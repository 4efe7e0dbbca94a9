package model

import "fmt"

// TaskSpan finds the answer to a question in a text.
const TaskSpan TaskKind = "span"

var spanTask = taskSpec{
	kind: TaskSpan, name: "span", asks: true, boxes: true, answer: 64, reads: ReadsTokens, loss: LossSpan,
	head:     oneMap("qa_outputs"),
	outputs:  func(Config) int { return 2 }, // begin and end
	class:    "ForQuestionAnswering",        // PEFT's for it forgets token types
	pipeline: "question-answering", title: "A model that answers",
	made: func(*Layout) string { return "a head for where answers begin and end" },
	usage: func(c *Checkpoint) string {
		lines := fmt.Sprintf("inputs = tokenizer([\"a question\"], [\"a text\"], truncation=\"only_second\", max_length=%d, return_tensors=\"pt\")\n", c.Seq)
		if c.Adapter.layout.Method.Boxes() {
			lines += "# bbox=[[[left, top, right, bottom], ...]], 0 to 1000, says where each token's word stands: zeros but for the text's\n"
		}
		return lines + "with torch.no_grad():\n    out = model.eval()(**inputs)\n" +
			"begin, end = int(out.start_logits[0].argmax()), int(out.end_logits[0].argmax())\n" +
			"print(tokenizer.decode(inputs[\"input_ids\"][0, begin:end + 1]))\n"
	},
}
