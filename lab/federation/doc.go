// Package federation puts published sets of questions about documents together as the
// clients of one federation, each of which holds documents of one set alone: tables of
// Wikipedia with questions (WikiTableQuestions) and with statements that are true or not
// (TabFact), and receipts with fields (SROIE). That is how the second paper divides its
// three sets among 3, 10 and 30 clients (section 4.2, table 2).
//
// Sets are read as their publishers left them. A table is a page whose cells are laid on
// a grid of a thousand by a thousand.
package federation
