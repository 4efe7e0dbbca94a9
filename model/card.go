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

// Card returns the model card of an adapter at a rank, exported in a format of `starling export`: origin, privacy,
// cost, and the lines that load it.
func (c *Checkpoint) Card(rank int, format string) []byte {
	var b strings.Builder
	lay := c.Adapter.layout
	library := "peft"
	switch format {
	case exportMerged:
		library = "transformers"
	case ExportGGUF, ExportGGUFAdapter:
		library = "gguf"
	}
	task := lay.Method.Task.of()
	pipeline, reads := task.pipeline, "text"
	if lay.Method.Boxes() {
		pipeline = answerTask.pipeline // of documents, too
	}
	switch {
	case lay.Config.Sees():
		reads = "image"
	case lay.Config.Hears():
		reads = "recording"
	}
	fmt.Fprintf(&b, "---\nlibrary_name: %s\npipeline_tag: %s\ntags: [starling, federated, lora]\n---\n\n", library, pipeline)
	fmt.Fprintf(&b, "# %s\n\n", cmp.Or(c.Job, task.title))
	what := lay.Method.of().written
	if lay.Method.Ranked() {
		what = fmt.Sprintf("with a LoRA adapter at rank %d (alpha %v)", rank, lay.Method.AlphaAt(rank))
	}
	if lay.Method.Also != "" {
		what += ", " + lay.Method.Also + " trained whole"
	}
	if task.made != nil {
		what += " and " + task.made(lay)
	}
	tuning := "federated fine-tuning"
	if c.Simulated {
		tuning = "simulated federated fine-tuning"
	}
	fmt.Fprintf(&b, "A %s (%d layers, %d wide) %s, made with Starling in %d rounds of %s.\n\n",
		lay.Config.ModelType, lay.Config.NumHiddenLayers, lay.Config.HiddenSize, what, c.Version, tuning)
	b.WriteString("## Data\n\n" + c.trainedOn(reads))
	switch reads {
	case "recording":
		s := lay.Config.Speech
		fmt.Fprintf(&b, " A recording is read up to %.2f seconds, at %d samples a second.", float64(s.Samples(c.Seq))/float64(s.Rate), s.Rate)
	case "text":
		fmt.Fprintf(&b, " A text is read up to %d tokens.", c.Seq)
	default:
		fmt.Fprintf(&b, " An image is read as %v pixels, height by width.", lay.Config.ViT.ImageSize)
	}
	if len(c.Labels) > 0 {
		fmt.Fprintf(&b, " Classes: %s.", strings.Join(c.Labels, ", "))
	}
	b.WriteString("\n\n")
	if c.FreshHead {
		b.WriteString("**Its head is fresh**: the adapter that was imported brought none, and the base has none. Its answers are guesses until it is trained.\n\n")
	}
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
		return fmt.Sprintf("Trained by a simulation, in which no device took part: all %ss were read in one place, by its operator.", reads)
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
	switch format {
	case ExportGGUF:
		return "from llama_cpp import Llama  # llama-cli -m model.gguf and programs over llama.cpp read it, too\n\nmodel = Llama(\"model.gguf\")\nprint(model(\"Hello\", max_tokens=20))\n"
	case ExportGGUFAdapter:
		return "from llama_cpp import Llama  # llama-cli --lora adapter.gguf reads it, too\n\nmodel = Llama(\"base.gguf\", lora_path=\"adapter.gguf\")\nprint(model(\"Hello\", max_tokens=20))\n"
	}
	trust := ""
	if !config.standard() {
		trust = ", trust_remote_code=True" // modeling_starling.py, read it first
	}
	task, auto := c.Adapter.layout.Method.Task.of(), c.Adapter.layout.Method.Task.of().autoClass()
	if c.Adapter.layout.Method.Boxes() {
		auto = "AutoModelForDocumentQuestionAnswering"
	}
	if config.Textless() {
		processor, image := "AutoFeatureExtractor", ""
		if task.reads == ReadsFrames {
			processor = "AutoProcessor" // with what writes its characters
		}
		if config.Sees() {
			processor, image = "AutoImageProcessor", "from PIL import Image\n"
		}
		lines := "import torch\n" + image + "from transformers import " + auto + ", " + processor + "\n"
		path := "folder"
		if format == ExportPEFT {
			lines, path = lines+"from peft import PeftModel\n", "folder + \"/"+CheckpointBase+"\""
		}
		lines += fmt.Sprintf("\nfolder = \".\"  # this one\nprocessor = %[2]s.from_pretrained(%[1]s)\n"+
			"model = %[3]s.from_pretrained(%[1]s)\n", path, processor, auto)
		if format == ExportPEFT {
			lines += "model = PeftModel.from_pretrained(model, folder)\n"
		}
		return lines + task.usage(c)
	}
	lines := "import torch\nfrom transformers import " + auto + ", AutoTokenizer\n"
	where := `""`
	if format == ExportPEFT {
		lines += "from peft import PeftModel\n"
		where = `"` + CheckpointBase + `"`
	}
	lines += "\nfolder = \".\"  # this one\n"
	path := "folder"
	if format == ExportPEFT {
		path = "folder + \"/\" + " + where
	}
	lines += fmt.Sprintf("tokenizer = AutoTokenizer.from_pretrained(%s)\n", path)
	lines += fmt.Sprintf("model = %s.from_pretrained(%s%s)", auto, path, trust)
	if trust != "" {
		lines += "  # runs " + modelingFile
	}
	lines += "\n"
	if format == ExportPEFT {
		lines += "model = PeftModel.from_pretrained(model, folder)\n"
	}
	return lines + task.usage(c)
}
