package dataset

import "strings"

// Labels of Invoices: what kind of expense a document bills.
var invoiceLabels = []string{"catering", "energy", "freight", "maintenance", "office", "software", "telecom", "travel"}

// trade is the vocabulary of one class. Providers of the public corpus use
// the first part of the goods; private providers use all of them, so a base
// has seen the trade but not every word of it.
type trade struct {
	goods  []string // what a line may bill
	units  []string
	suffix []string // words a provider's name may end in
}

func list(s string) []string {
	var out []string
	for _, item := range strings.Split(s, ",") {
		out = append(out, strings.TrimSpace(item))
	}
	return out
}

// trades in the order of invoiceLabels.
var trades = []trade{
	{ // catering
		goods: list(`buffet lunch, coffee service, sandwich platter, dinner menu, mineral water, fruit basket, canteen meals,
			waiter hours, pastry tray, soup of the day, wine selection, banquet table, vegetarian menu, breakfast rolls, cutlery set,
			cake slices, salad bowl, juice carafe, chef on site, dessert variation, finger food, crockery return, barista bar, tapas board`),
		units:  list(`persons, portions, trays, hours`),
		suffix: list(`catering, kitchen, foods, banquets, canteen`),
	},
	{ // energy
		goods: list(`electricity supply, grid fee, natural gas, meter reading, standing charge, peak load, renewable levy,
			district heating, power tariff, night rate, capacity charge, gas network, concession fee, solar feed, carbon surcharge,
			consumption kwh, heating oil, transformer rent, reactive power, balancing energy, pellet delivery, boiler fuel, steam supply, smart meter`),
		units:  list(`kwh, mwh, months, litres`),
		suffix: list(`energy, power, utilities, grid, gas`),
	},
	{ // freight
		goods: list(`pallet transport, container handling, customs clearance, truck haulage, parcel delivery, warehouse storage, fuel surcharge,
			air cargo, sea freight, forklift loading, port dues, express courier, bill of lading, pickup fee, groupage shipment,
			demurrage days, crate packing, toll costs, return cargo, cold chain box, drayage, cross docking, tail lift, manifest fee`),
		units:  list(`pallets, kg, km, boxes`),
		suffix: list(`logistics, cargo, shipping, haulage, freight`),
	},
	{ // maintenance
		goods: list(`boiler inspection, pump repair, filter replacement, elevator service, roof sealing, painting work, window cleaning,
			plumbing work, air conditioning check, spare parts, electrician hours, fire door test, gutter cleaning, lock change, welding work,
			garden care, snow clearing, scaffold rent, pipe flushing, valve gasket, lamp exchange, drain jetting, chimney sweep, bearing grease`),
		units:  list(`hours, visits, pieces, sqm`),
		suffix: list(`services, repairs, facility, technics, works`),
	},
	{ // office
		goods: list(`copy paper, toner cartridge, desk chair, ring binders, ballpoint pens, envelopes, stapler, printer drum, whiteboard markers,
			filing cabinet, sticky notes, desk lamp, calendar refill, hanging folders, shredder bags, label rolls, monitor stand,
			adhesive tape, index cards, letter tray, laminating film, hole punch, correction fluid, cork board`),
		units:  list(`packs, pieces, boxes, reams`),
		suffix: list(`office, papers, stationery, supplies, print`),
	},
	{ // software
		goods: list(`annual licence, cloud hosting, user seats, support plan, data backup, security audit, database server, api calls, consulting days,
			domain renewal, update service, ssl certificate, storage space, development hours, mail accounts, ticket system, test environment,
			monitoring agent, virtual machine, single sign on, sandbox tenant, code review, container registry, webhook add on`),
		units:  list(`users, gb, months, days`),
		suffix: list(`software, systems, cloud, digital, data`),
	},
	{ // telecom
		goods: list(`mobile plan, broadband line, call minutes, data roaming, sim cards, voice channel, fibre access, text messages, router rent,
			landline fee, number porting, video conference, toll free number, modem, international calls, static address, line activation,
			handset lease, fax service, call forwarding, esim profile, pbx extension, uplink burst, voicemail box`),
		units:  list(`lines, minutes, gb, months`),
		suffix: list(`telecom, mobile, networks, connect, fibre`),
	},
	{ // travel
		goods: list(`hotel nights, flight ticket, train fare, rental car, taxi ride, seat reservation, airport transfer, city tax, baggage fee,
			parking garage, booking fee, conference room, visa service, breakfast package, late checkout, travel insurance, bus charter,
			lounge access, rail pass, mileage allowance, rebooking fee, minibar, cabin upgrade, shuttle van`),
		units:  list(`nights, tickets, persons, days`),
		suffix: list(`travel, hotels, tours, airlines, cars`),
	},
}

// publicGoods is how many of a trade's goods the public corpus knows.
const publicGoods = 15

// Field names, each with the spellings providers choose from.
var (
	numberNames   = list(`invoice no, inv nr, invoice number, bill no, document no, ref, rechnung nr, faktura`)
	dateNames     = list(`date, invoice date, dated, issued, billing date, of`)
	customerNames = list(`customer, client no, account, customer id, your ref, bill to`)
	itemNames     = list(`description, item, service, position, details, for`)
	netNames      = list(`net, subtotal, net amount, sum, taxable`)
	taxNames      = list(`vat, tax, sales tax, gst, mwst`)
	totalNames    = list(`total, total due, amount due, balance, to pay, gross`)
	payNames      = list(`payable within 14 days, due in 30 days, net 30, please pay by transfer, payment on receipt, direct debit, without deduction`)
	bankNames     = list(`iban, bank, account no, bic, swift`)
	currencies    = list(`eur, usd, gbp, chf, euro, sek`)
	months        = list(`january, february, march, april, may, june, july, august, september, october, november, december`)
	// boilerplate is on any invoice, whatever it bills; much of it
	// borrows the words of other trades.
	boilerplate = list(`thank you for your order, questions call our hotline, delivery free of charge, view online in the portal, printed on recycled paper,
		our office hours 9 to 17, service in all cities, terms on our web site, paid parking at the office, send copies by mail,
		energy saving mode, travel directions on request, meals not included, data protected, keep this copy`)
)
