package main

import (
	"fmt"
	"strings"
)

// A question is what a reader decides by, with its answer: words with a %s for each figure, which is read from the tables
// below it. So the page that opens the document cannot say what no table says.
type question struct {
	asked, answer string
	figures       []figureOf
	section       string // where the rest is
}

// A figureOf is one cell of a section's tables: of the first row that begins with row, below the text after, in the
// column of that heading. Without a column it is what follows row on a line of plain text.
type figureOf struct{ section, after, row, column string }

var decisions = []struct {
	title     string
	questions []question
}{
	{"Is it accurate enough", []question{
		{"A published encoder (MiniLM) on news in 8 classes, epsilon 2", "%s of unseen texts right; %s with next to no noise",
			[]figureOf{{"r8", "", "DP-DyLoRA, ranks 1 to 8", "test accuracy"}, {"r8", "", "LoRA, rank 8, next to no noise", "test accuracy"}}, "r8"},
		{"The small base that is built in, invoices on 24 devices (`make demo`)", "%s; %s where the head alone is trained",
			[]figureOf{{"demo", "", "invoices", "accuracy"}, {"demo", "", "invoices", "head only"}}, "demo"},
		{"The same, where it is hidden that a provider takes part at all", "%s",
			[]figureOf{{"demo", "", "invoices, a provider's presence hidden", "accuracy"}}, "demo"},
		{"Fields of scanned receipts, of senders nobody trained on", "ANLS %s, centrally and without noise; not measured: federated",
			[]figureOf{{"sroie", "", "true", "ANLS"}}, "sroie"},
		{"Answers about generated documents", "ANLS %s federated at epsilon 2, %s centrally without noise",
			[]figureOf{{"documents", "", "lora", "ANLS"}, {"documents", "", "full", "ANLS"}}, "documents"},
	}},
	{"What it costs a device", []question{
		{"Bytes a round, up and down", "%s in the demo; %s kB both ways with MiniLM",
			[]figureOf{{"demo", "", "invoices", "up, down a device and round"}, {"r8", "", "DP-DyLoRA, ranks 1 to 8", "kB a device-round"}}, "demo"},
		{"The base, fetched once", "MiniLM %s MB, %s as NF4; 110 million parameters %s MB as NF4",
			[]figureOf{{"bases", "", "minilm | stored", "on the wire MB"}, {"bases", "", "minilm | nf4", "on the wire MB"},
				{"bases", "", "bert-base | nf4", "on the wire MB"}}, "bases"},
		{"Memory at most", "MiniLM %s MB, %s as NF4; 110 million parameters %s MB as NF4, %s one example at a time",
			[]figureOf{{"bases", "", "minilm | stored", "device MB"}, {"bases", "", "minilm | nf4", "device MB"},
				{"bases", "", "bert-base | nf4 | -", "device MB"}, {"bases", "", "bert-base | nf4 | 1", "device MB"}}, "bases"},
		{"Time of a training step, of PyTorch's on the same core", "%s exact, %s fused (BERT-small, a quarter of it padding)",
			[]figureOf{{"programs", "", "BERT-small, exact: of PyTorch's time", "reached"}, {"programs", "", "BERT-small, fused: of PyTorch's time", "reached"}}, "programs"},
		{"What secure aggregation adds, all five turns", "%s natively, %s in WebAssembly, and %s beyond the update itself",
			[]figureOf{{"secagg", "", "client: all five turns, native", "ours"}, {"secagg", "", "client: all five turns, wasm", "ours"},
				{"secagg", "", "upload beyond the packed vector", "ours"}}, "secagg"},
		{"A browser's first visit up to its first round, without the base; a second visit", "%s bytes; %s",
			[]figureOf{{"browser", "", "all of it", "bytes"}, {"browser", "", "a second visit", "bytes"}}, "browser"},
	}},
	{"What it costs a coordinator", []question{
		{"A round of 1,000 devices, of which a tenth hangs up", "%s s of processor, %s MB",
			[]figureOf{{"fleet", "1000 devices, 10 %", "1 |", "coordinator cpu s"}, {"fleet", "1000 devices, 10 %", "1 |", "coordinator MB"}}, "fleet"},
		{"A round of 10,000 devices, of which none hangs up, without gateways", "%s s of processor, %s MB",
			[]figureOf{{"fleet", "10000 devices, 0 %", "1 |", "coordinator cpu s"}, {"fleet", "10000 devices, 0 %", "1 |", "coordinator MB"}}, "fleet"},
		{"A round of 10,000 devices, of which a twentieth hangs up, over two gateways", "%s s of processor of all servers, %s of it the coordinator's; " +
			"the goal of 12 is not reached",
			[]figureOf{{"between", "Processor seconds of all servers", "", "all"}, {"between", "10000 devices, 5 %", "1 |", "coordinator cpu s"}}, "between"},
		{"Killed every five minutes for an hour, 200 devices that come and go", "%s",
			[]figureOf{{"soak", "", "ledger: ", ""}}, "soak"},
		{"Accounting: how far above the best proven bound, and how long it takes", "%s; Google's library %s (q = 0.01, z = 1, 2,000 rounds)",
			[]figureOf{{"privacy", "", "0.01, 1, 2000, 1e-06", "starling tight"}, {"privacy", "", "0.01, 1, 2000, 1e-06", "google pld"}}, "privacy"},
	}},
	{"What it costs to simulate", []question{
		{"Processor time a client, clipped, quantized and noised", "%s ms; pfl-research %s and Flower %s without these, in an older run that flatters starling",
			[]figureOf{{"peers", "", "starling |", "processor ms a client"}, {"peers", "", "pfl-research", "processor ms a client"},
				{"peers", "", "flower", "processor ms a client"}}, "peers"},
		{"Memory of that at most", "%s; %s and %s",
			[]figureOf{{"peers", "", "starling |", "peak memory"}, {"peers", "", "pfl-research", "peak memory"}, {"peers", "", "flower", "peak memory"}}, "peers"},
	}},
}

// notMeasured stands where no table has the figure.
const notMeasured = "**not measured**"

// opening is the page that opens the document.
func opening(results map[string]result) string {
	var b strings.Builder
	b.WriteString("\n## What to decide by\n\nEvery figure here is a cell of a table below, on two shared processors; the last column leads to it, and to what\n" +
		"was not measured.\n")
	for _, group := range decisions {
		fmt.Fprintf(&b, "\n| %s | | more |\n| --- | --- | --- |\n", group.title)
		for _, q := range group.questions {
			cells := make([]any, len(q.figures))
			for i, f := range q.figures {
				cells[i] = notMeasured
				if v, ok := f.find(results[f.section].table); ok {
					cells[i] = v
				}
			}
			title := titleOf(q.section)
			fmt.Fprintf(&b, "| %s | %s | [%s](#%s) |\n", q.asked, fmt.Sprintf(q.answer, cells...), title, anchor(title))
		}
	}
	return b.String()
}

// find reads the figure from a section's tables.
func (f figureOf) find(tables string) (string, bool) {
	_, below, ok := strings.Cut(tables, f.after)
	if !ok {
		return "", false
	}
	var heading []string
	for line := range strings.Lines(below) {
		line = strings.TrimSpace(line)
		if f.column == "" {
			if rest, ok := strings.CutPrefix(line, f.row); ok {
				return rest, true
			}
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			heading = nil
		case heading == nil:
			heading = cells
		case strings.HasPrefix(cells[0], "---"): // the line below a heading
		case begins(cells, f.row):
			for i, h := range heading {
				if h == f.column && i < len(cells) {
					return cells[i], true
				}
			}
		}
	}
	return "", false
}

// begins reports whether a row's first cells are those of prefix. The last of them may be longer where it says more than
// prefix, after a comma or a space; a bar at the end asks for the whole cell.
func begins(cells []string, prefix string) bool {
	want := strings.Split(prefix, "|")
	for i, w := range want {
		w = strings.TrimSpace(w)
		if w == "" && i == len(want)-1 {
			return true
		}
		if i >= len(cells) || cells[i] != w && (i < len(want)-1 || !strings.HasPrefix(cells[i], w)) {
			return false
		}
	}
	return true
}

func titleOf(section string) string {
	for _, s := range sections {
		if s.name == section {
			return s.title
		}
	}
	return ""
}

// anchor is how a heading is linked to.
func anchor(title string) string {
	return strings.ReplaceAll(strings.ToLower(strings.NewReplacer(",", "", ".", "").Replace(title)), " ", "-")
}
