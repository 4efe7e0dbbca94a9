// Package dataset reads and makes labelled text: loaders for tab-separated,
// JSON Lines and CSV files, partitioners that spread a set over clients
// (Dirichlet by label, or by user), and two generators that need no file:
// Invoices, private-looking documents with an 8-class label, and
// PublicCorpus, the text the default base is pretrained on.
//
// Everything a generator makes follows from its seed. A loader treats its
// file as somebody else's: lines are bounded and the first bad one is named.
package dataset
