package dataset

// Formats lists the formats of labelled files, for messages.
const Formats = ".tsv or .txt (label<TAB>text), .jsonl, .json (a list) or .csv with a header (text, label, user, provider); plain or .gz; .parquet, .arrow or a folder of datasets' save_to_disk; for images a folder of a folder for each label, or .csv of pixels; for questions about documents .jsonl with words, boxes, question and answers"
