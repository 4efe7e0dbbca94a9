// Package dataset reads and generates labelled examples. [Load] reads a file or folder
// (tab-separated, JSON Lines, CSV, images, recordings) into a [Set]; package partition divides a set
// among clients and holds parts of it out. Generators need no file:
// [Invoices] makes private-looking documents with an 8-class label, and [Documents] questions about
// pages.
//
// Everything that a generator makes follows from its seed. A loader treats its file as untrusted:
// lines are bounded, and an error names the first bad one.
package dataset
