package dataset

// documentKey is what a document has a value of: twenty wordings on paper, of which
// public providers use the first half, and how one asks for it.
type documentKey struct {
	labels, asked []string
	key           string // Example.Key
}

// Indices of documentKeys. The sender has no label: its name is the head.
const (
	keyNumber = iota
	keyDate
	keyDue
	keyCustomer
	keyTotal
	keySender
)

var documentKeys = []documentKey{
	keyNumber: {list(`Invoice no, Invoice number, Number, Invoice #, Document no, Bill no, Inv no, Invoice ID, Reference, Voucher no,
		Receipt no, Our reference, Statement no, Order ref, Billing number, Serial, Doc ID, Ticket no, File no, Bill number`),
		list(`invoice number, document number, number of the invoice`), "number"},
	keyDate: {list(`Date, Invoice date, Issued, Date of issue, Issue date, Document date, Dated, Billing date, Bill date, Issued on,
		Date of invoice, Printed on, Created, Day, Made on, Date issued, Posting date, Tax point, Written on, Statement date`),
		list(`invoice date, date of issue, date of the invoice`), "date"},
	keyDue: {list(`Due, Due date, Payable by, Pay by, Payment due, Due on, Please pay by, Deadline, Payment date, Due by,
		Pay before, Not later than, Payable until, Settle by, Terms end, Maturity, Last day, Valid until, Remit by, Net date`),
		list(`due date, payment deadline, date payment is due`), "due"},
	keyCustomer: {list(`Customer, Bill to, Client, Sold to, To, Invoice to, Billed to, Account, Buyer, Recipient,
		Attention, Ship to, Name, Payer, For, Contact, Debtor, Ordered by, Purchaser, Addressee`),
		list(`customer, client, name of the customer`), "customer"},
	keyTotal: {list(`Total, Total due, Amount due, Grand total, Total amount, Balance due, To pay, Invoice total, Sum, Amount payable,
		Final amount, Please remit, Net total, Owing, Charge, Gross, Full amount, Total payable, You owe, Outstanding`),
		list(`total, amount due, total amount`), "total"},
	keySender: {list(`From, From`), list(`sender, company, name of the sender`), "sender"},
}

// identifierKeys name a provider, and stand in some of its documents where a configuration
// asks for them.
var identifierKeys = []documentKey{
	{list(`Tax no, Tax number, VAT ID, Tax ID, Fiscal code`), list(`tax number, tax identification number`), "tax number"},
	{list(`Reg no, Registration, Company no, Register, Entry no`), list(`registration id, company registration number`), "registration id"},
}

var questionForms = []string{"what is the %s?", "give the %s", "%s?", "which is the %s?"}

var monthNames = list(`January, February, March, April, May, June, July, August, September, October, November, December`)
