package model

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// CardFile is the model card, in the form that Hugging Face's hub shows.
const CardFile = "README.md"

// formatCheckpoint is that of a checkpoint's folder which PEFT does not load as it is.
const formatCheckpoint = "checkpoint"

// Card describes the release of an adapter at a rank in a format of `starling
// export`: what it was made from, what of its makers' data it may tell, what it
// cost, and the lines that load it.
func (c *Checkpoint) Card(rank int, format string) []byte {
	var b strings.Builder
	lay := c.Adapter.layout
	library := "peft"
	if format == "merged" {
		library = "transformers"
	}
	pipeline, name := "text-classification", cmp.Or(c.Job, "A classifier")
	if lay.Config.Generates() {
		pipeline, name = "document-question-answering", cmp.Or(c.Job, "A model that answers")
	}
	if lay.Method.Task == TaskSpan {
		pipeline, name = "question-answering", cmp.Or(c.Job, "A model that answers")
		if lay.Method.Boxes() {
			pipeline = "document-question-answering"
		}
	}
	if lay.Method.Task == TaskPretrain {
		pipeline, name = "fill-mask", cmp.Or(c.Job, "A masked language model")
	}
	reads := "text"
	if lay.Config.Sees() {
		pipeline, reads = "image-classification", "image"
	}
	fmt.Fprintf(&b, "---\nlibrary_name: %s\npipeline_tag: %s\ntags: [starling, federated, lora]\n---\n\n", library, pipeline)
	fmt.Fprintf(&b, "# %s\n\n", name)
	what := map[MethodKind]string{MethodHead: "untouched but for its head", MethodBitFit: "with its biases trained (BitFit)", MethodFull: "fine-tuned whole",
		MethodAdapter: "with bottlenecks in its layers (Adapter)", MethodCompacter: "with bottlenecks in its layers (Compacter)"}[lay.Method.Kind]
	if lay.Method.Ranked() {
		what = fmt.Sprintf("with a LoRA adapter at rank %d (alpha %v)", rank, lay.Method.AlphaAt(rank))
	}
	if lay.Method.Also != "" {
		what += ", " + lay.Method.Also + " trained whole"
	}
	of := fmt.Sprintf("%s and a head of %d classes", what, lay.Classes)
	switch {
	case lay.Config.Generates():
		of = what
	case lay.Method.Task == TaskPretrain:
		of = what + " and a head that tells masked words"
	case lay.Method.Task == TaskSpan:
		of = what + " and a head for where answers begin and end"
	}
	tuning := "federated fine-tuning"
	if c.Simulated {
		tuning = "simulated federated fine-tuning"
	}
	fmt.Fprintf(&b, "A %s (%d layers, %d wide) %s, made with Starling in %d rounds of %s.\n\n",
		lay.Config.ModelType, lay.Config.NumHiddenLayers, lay.Config.HiddenSize, of, c.Version, tuning)
	b.WriteString("## Data\n\n" + c.trainedOn(reads))
	if reads == "text" {
		fmt.Fprintf(&b, " A text is read up to %d tokens.", c.Seq)
	} else {
		fmt.Fprintf(&b, " An image is read as %v pixels, height by width.", lay.Config.ViT.ImageSize)
	}
	if len(c.Labels) > 0 {
		fmt.Fprintf(&b, " Classes: %s.", strings.Join(c.Labels, ", "))
	}
	b.WriteString("\n\n")
	b.WriteString("## Privacy\n\n")
	if c.Privacy == "" {
		b.WriteString("No guarantee is recorded.\n\n")
	} else {
		fmt.Fprintf(&b, "%s.\n\n", strings.ToUpper(c.Privacy[:1])+c.Privacy[1:])
	}
	if c.UpdateBytes > 0 {
		fmt.Fprintf(&b, "## Cost\n\nA device sends up to %d bytes a round, masked: the update at rank %d.\n\n", c.UpdateBytes, lay.Method.RMax)
	}
	if len(c.RankAccuracy) > 0 {
		b.WriteString("## Accuracy on public validation data\n\n| rank | accuracy |\n| --- | --- |\n")
		for r := range lay.Method.RMax + 1 {
			if v, ok := c.RankAccuracy[strconv.Itoa(r)]; ok {
				note := ""
				if r == c.BestRank {
					note = ", the best"
				}
				fmt.Fprintf(&b, "| %d%s | %.1f %% |\n", r, note, 100*v)
			}
		}
		scale := "alpha/rank"
		if lay.Method.Scaling == ScaleConstant {
			scale = fmt.Sprintf("%.6g of every rank", lay.Method.Scale(rank))
		}
		fmt.Fprintf(&b, "\nA rank is a cut of the same adapter, with the scale %s. This folder holds rank %d: "+
			"`starling export --rank best` cuts it to the best.\n\n", scale, rank)
	}
	b.WriteString("## Use\n\n```python\n" + c.usage(format) + "```\n")
	return []byte(b.String())
}

// trainedOn says where the texts or images were that it was trained on.
func (c *Checkpoint) trainedOn(reads string) string {
	switch {
	case c.Simulated:
		return fmt.Sprintf("Trained by a simulation, in which no device took part: all %ss were read in one place, by whoever ran it.", reads)
	case c.Devices > 0:
		return fmt.Sprintf("Trained on %ss that never left the devices they lie on: %d devices took part.", reads, c.Devices)
	}
	return fmt.Sprintf("Trained on %ss that never left the devices they lie on.", reads)
}

// usage is the lines that load a release.
func (c *Checkpoint) usage(format string) string {
	config := c.Adapter.layout.Config
	if format == formatCheckpoint {
		return "# a checkpoint of Starling's, which trains more than LoRA: starling export --format peft or merged writes what others load\n"
	}
	trust := ""
	if !config.standard() {
		trust = ", trust_remote_code=True" // modeling_starling.py, read it first
	}
	auto := "AutoModelForSequenceClassification"
	if c.Adapter.layout.Method.Task == TaskTag {
		auto = "AutoModelForTokenClassification"
	}
	if c.Adapter.layout.Method.Task == TaskSpan {
		auto = "AutoModelForQuestionAnswering"
		if c.Adapter.layout.Method.Boxes() {
			auto = "AutoModelForDocumentQuestionAnswering"
		}
	}
	if c.Adapter.layout.Method.Task == TaskPretrain {
		auto = "AutoModelForMaskedLM"
	}
	if config.Generates() {
		auto = "AutoModelForSeq2SeqLM"
	}
	if config.Sees() {
		lines := "import torch\nfrom PIL import Image\nfrom transformers import AutoModelForImageClassification, AutoImageProcessor\n"
		path := "folder"
		if format == "peft" {
			lines, path = lines+"from peft import PeftModel\n", "folder + \"/"+CheckpointBase+"\""
		}
		lines += fmt.Sprintf("\nfolder = \".\"  # this one\nprocessor = AutoImageProcessor.from_pretrained(%[1]s)\n"+
			"model = AutoModelForImageClassification.from_pretrained(%[1]s)\n", path)
		if format == "peft" {
			lines += "model = PeftModel.from_pretrained(model, folder)\n"
		}
		mode := map[int]string{1: "L", 3: "RGB"}[config.ViT.Channels]
		return lines + fmt.Sprintf("inputs = processor(Image.open(\"image.png\").convert(%q), return_tensors=\"pt\")\n", mode) +
			"with torch.no_grad():\n    logits = model.eval()(**inputs).logits\nprint(model.config.id2label[int(logits[0].argmax())])\n"
	}
	lines := "import torch\nfrom transformers import " + auto + ", AutoTokenizer\n"
	where := `""`
	if format == "peft" {
		lines += "from peft import PeftModel\n"
		where = `"` + CheckpointBase + `"`
	}
	lines += "\nfolder = \".\"  # this one\n"
	path := "folder"
	if format == "peft" {
		path = "folder + \"/\" + " + where
	}
	lines += fmt.Sprintf("tokenizer = AutoTokenizer.from_pretrained(%s)\n", path)
	lines += fmt.Sprintf("model = %s.from_pretrained(%s%s)", auto, path, trust)
	if trust != "" {
		lines += "  # runs " + modelingFile
	}
	lines += "\n"
	if format == "peft" {
		lines += "model = PeftModel.from_pretrained(model, folder)\n"
	}
	if c.Adapter.layout.Method.Task == TaskSpan {
		return lines + c.spanUsage()
	}
	if config.Generates() {
		lines += fmt.Sprintf("inputs = tokenizer([\"a text\"], truncation=True, max_length=%d, return_tensors=\"pt\")\n", c.Seq)
		if config.T5.Boxes > 0 {
			lines += "# boxes=[[[left, top, right, bottom], ...]], 0 to 1000, beside input_ids say where each token stands\n"
		}
		return lines + "print(tokenizer.batch_decode(model.eval().generate(**inputs, max_new_tokens=32), skip_special_tokens=True))\n"
	}
	if c.Adapter.layout.Method.Task == TaskPretrain {
		return lines + "inputs = tokenizer([\"a text with a \" + tokenizer.mask_token], return_tensors=\"pt\")\n" +
			"with torch.no_grad():\n    logits = model.eval()(**inputs).logits\n" +
			"print(tokenizer.decode(logits[inputs[\"input_ids\"] == tokenizer.mask_token_id].argmax(-1)))\n"
	}
	lines += fmt.Sprintf("inputs = tokenizer([\"a text\"], truncation=True, max_length=%d, padding=True, return_tensors=\"pt\")\n", c.Seq)
	said := "print(model.config.id2label[int(logits[0].argmax())])\n"
	if c.Adapter.layout.Method.Task == TaskTag {
		said = "print([model.config.id2label[int(row.argmax())] for row in logits[0]])\n"
	}
	return lines + "with torch.no_grad():\n    logits = model.eval()(**inputs).logits\n" + said
}

// spanUsage is the lines that answer a question.
func (c *Checkpoint) spanUsage() string {
	lines := fmt.Sprintf("inputs = tokenizer([\"a question\"], [\"a text\"], truncation=\"only_second\", max_length=%d, return_tensors=\"pt\")\n", c.Seq)
	if c.Adapter.layout.Method.Boxes() {
		lines += "# bbox=[[[left, top, right, bottom], ...]], 0 to 1000, says where each token's word stands: zeros but for the text's\n"
	}
	return lines + "with torch.no_grad():\n    out = model.eval()(**inputs)\n" +
		"begin, end = int(out.start_logits[0].argmax()), int(out.end_logits[0].argmax())\n" +
		"print(tokenizer.decode(inputs[\"input_ids\"][0, begin:end + 1]))\n"
}
