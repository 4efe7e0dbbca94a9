package pretraining

import (
	"strings"
	"sync"
)

// topic is a subject of business prose: what acts, what is acted upon, what
// happens, and how it is measured.
type topic struct {
	nouns, verbs, adjectives, measures []string
}

func words(s string) []string { return strings.Fields(s) }

// topics of the public corpus: plain business English, written for this
// generator, with the trade's usual abbreviations. They are split where they are asked for
// first: a page, which makes no prose, links none of it.
func topics() []topic {
	known.Do(func() { known.topics = split() })
	return known.topics
}

var known struct {
	sync.Once
	topics []topic
}

func split() []topic {
	return []topic{
		{ // results
			nouns:      words(`profit loss earnings income revenue revenues sales quarter year results dividend share shares payout turnover margin provision writeoff charge gain tax operations backlog orders cash distribution record holders split stock expenses costs net credit carryforward period months note prior restated operating extraordinary discontinued avg average shrs shr qtr oper mths revs figures adjusted`),
			verbs:      words(`reported earned rose fell declared paid posted included excluded reflected improved declined doubled ended gained lost recorded restated estimated expects forecast`),
			adjectives: words(`quarterly annual net higher lower pretax fiscal payable consolidated diluted regular special record ordinary continuing fourth third second first nine six three twelve final interim`),
			measures:   words(`cts dlrs mln pct dollars cents per vs versus thousand`),
		},
		{ // mergers
			nouns:      words(`acquisition merger takeover offer bid tender shareholders stake shares stock company subsidiary unit buyer seller agreement deal board directors approval letter intent group investor investors assets division holding partner purchase sale proposal transaction control proxy terms closing completion interest ownership majority minority outstanding common warrants buyout filing commission securities exchange court suit raider firm partnership management chairman`),
			verbs:      words(`acquired bought sold offered agreed completed approved rejected proposed purchased merged signed announced disclosed sought raised withdrew launched extended terminated negotiated holds owns intends plans seeks filed told`),
			adjectives: words(`definitive friendly hostile undisclosed outstanding preferred common wholly owned privately held subject proposed previous sweetened strategic leveraged potential principal`),
			measures:   words(`dlrs mln pct shares dollars each apiece million cash stake`),
		},
		{ // oil
			nouns:      words(`oil crude barrel barrels petroleum gasoline refinery refineries output production ministers quota price prices gulf exporter exporters well wells drilling exploration rig field pipeline tanker fuel energy reserves producers demand supply cartel meeting ceiling benchmark posting gravity grade heating distillate gas natural offshore discovery platform refiner inventories stocks imports consumption conference cubic feet opec bpd contract accord`),
			verbs:      words(`pumped produced raised cut lowered exported drilled refined discovered agreed posted shipped boosted reduced curbed defended exceeded`),
			adjectives: words(`sweet sour light heavy light offshore spot daily posted official onshore north south gulf saudi arabian texas intermediate west non crude`),
			measures:   words(`barrels bpd dlrs mln barrel day daily tonnes gallons cents`),
		},
		{ // crops
			nouns:      words(`wheat corn grain grains crop crops harvest soybean soybeans farmers acreage acres bushel bushels export tonnes barley rice sorghum oats maize sugar cotton coffee cocoa tender agriculture department program subsidy subsidies planting season yield winter spring weather drought rain stocks livestock cattle feed flour mill elevator storage loan certificates enhancement shipment rapeseed oilseed meal vegetable soil farm farms farmer producers commodity delivery bonus`),
			verbs:      words(`planted harvested exported bought sold tendered shipped stored estimated forecast grown accepted offered damaged destroyed authorized accounted`),
			adjectives: words(`agricultural hard soft red white winter spring dry wet surplus feed milled european soviet chinese argentine brazilian canadian australian french subsidized optional`),
			measures:   words(`tonnes bushels mln acres bushel metric hectares tons cargoes`),
		},
		{ // interest rates
			nouns:      words(`rate rates interest bank banks prime lending loan loans discount deposit deposits credit mortgage bond bonds yield treasury bill bills auction securities maturity repurchase reserves borrowing federal reserve fed money market markets base point points policy easing tightening inflation liquidity overdraft overnight paper certificates funds lender borrowers debt issue coupon note notes stimulus minister bundesbank building society dealers operations system temporary customer`),
			verbs:      words(`raised cut lowered lent borrowed eased tightened auctioned announced matched followed increased reduced steadied yielded drained added injected signalled`),
			adjectives: words(`prime base key short long term overnight federal central fixed variable monetary official money annual benchmark lower higher effective immediate`),
			measures:   words(`pct percent point points basis mln bln days months year half quarter`),
		},
		{ // currencies
			nouns:      words(`dollar yen mark pound sterling franc currency currencies exchange dealers intervention central bank banks market trading ministers finance accord parity band reserves monetary stability shortage assistance bills stg money supply devaluation revaluation treasury baker secretary japan germany britain france paris louvre meeting seven nations group speculators hedge close fixing session traders opening afternoon system forecast float official governor`),
			verbs:      words(`intervened bought sold traded closed opened weakened strengthened stabilized fixed fell rose dropped dipped supported steadied defended revised provided forecast purchased`),
			adjectives: words(`foreign monetary stable volatile weak strong major central industrial european japanese german west current speculative concerted orderly further thin`),
			measures:   words(`yen marks dollars francs mln stg bln pct points lire`),
		},
		{ // shipping
			nouns:      words(`ship ships vessel vessels port ports cargo tanker tankers crew strike seamen dockers union gulf fleet shipping freight harbour waterway canal navy missile escort convoy flag waters coast coastguard guard sea container containers owner owners lloyds insurance hull route channel ferry captain salvage tug river barge barges shipyard bulk charter attack iran iraq kuwait iranian warship warships missiles mine mines sailing passage berth dock ice collision steamship line lines`),
			verbs:      words(`sailed docked loaded unloaded attacked sank damaged escorted delayed chartered towed anchored boarded collided stranded blocked cleared protected reflagged berthed`),
			adjectives: words(`naval maritime merchant registered laden bound outward coastal busy congested stranded neutral armed american soviet greek liberian panamanian kuwaiti iranian`),
			measures:   words(`tonnes dwt vessels knots miles ton ships days feet`),
		},
		{ // trade
			nouns:      words(`trade deficit surplus exports imports tariff tariffs duties sanctions goods bill congress protectionism semiconductor semiconductors agreement talks negotiators barriers retaliation account balance countries partners quotas dumping commerce representative administration president committee senate house legislation services textile textiles steel autos chips gatt round complaint dispute pact access markets nations economy growth minister delegation community ec visit white reagan yeutter nakasone unfair practices`),
			verbs:      words(`imposed exported imported narrowed widened negotiated retaliated accused urged warned threatened lifted opened passed vetoed signed said called pledged agreed demanded`),
			adjectives: words(`bilateral multilateral unfair protectionist foreign domestic seasonally adjusted international commercial japanese american korean european taiwanese free open industrial economic punitive`),
			measures:   words(`dlrs bln mln pct dollars billion yen month percent`),
		},
		{ // industry
			nouns:      words(`plant factory factories workers machinery equipment steel aluminum copper capacity output orders parts components assembly engine engines cars trucks motors tires chemicals plastics paper pulp mill furnace production line robots contract supplier suppliers layoffs shift manufacturing manufacturer quality maker model models vehicles aircraft aerospace metals zinc gold silver mine ore ounce ounces rubber glass cement timber lumber`),
			verbs:      words(`built made produced assembled closed opened expanded delivered ordered supplied manufactured idled upgraded modernized installed shipped mined smelted`),
			adjectives: words(`industrial automotive heavy modern idle efficient new old domestic raw finished skilled chemical mechanical electric`),
			measures:   words(`units tonnes ounces pct jobs mln cars pounds ton`),
		},
		{ // technology
			nouns:      words(`computer computers software system systems disk memory network networks chip chips technology data processor workstation terminal printer product products customers users version license patent research laboratory development electronics telephone communications satellite cable television broadcast station stations equipment telecommunications switching license digital graphics design engineering microprocessor mainframe desktop screen keyboard tape drive program programs instruments laser medical device devices`),
			verbs:      words(`introduced developed licensed designed shipped installed announced unveiled tested patented connected integrated marketed priced upgraded demonstrated`),
			adjectives: words(`personal digital electronic compatible advanced portable faster optical magnetic scientific technical proprietary automated international integrated`),
			measures:   words(`dlrs units megabytes users systems mln per pct terminals`),
		},
		{ // finance houses
			nouns:      words(`bank savings thrift insurance insurer premium policy policies brokerage broker underwriter offering debentures notes stock exchange listing trading investors portfolio fund funds pension trust capital equity debt financing refinancing creditors bankruptcy chapter default restructuring payments loans reserves losses assets deposits branches customers mortgage bancorp bancshares financial holding regulators rating ratings eurobond lead manager guarantee convertible mutual limited partnership`),
			verbs:      words(`issued underwrote insured listed raised refinanced defaulted restructured suspended filed deposited invested managed redeemed rated downgraded priced arranged`),
			adjectives: words(`convertible subordinated senior junior nonperforming doubtful insured mutual federal savings public private secured institutional initial bad real`),
			measures:   words(`dlrs mln pct bln assets due yield par million`),
		},
		{ // retail and food
			nouns:      words(`store stores supermarket chain retailer retailers customers shoppers brand brands advertising products food foods beverage beer wine tobacco clothing shoes apparel toys restaurant restaurants franchise menu hotel hotels casino resort airline airlines airport passengers flights fares hospital hospitals health drug drugs pharmaceutical patients nursing care medicine doctors clinic homes housing construction builder apartments real estate property land shopping center centers mall film movie publishing newspaper magazine book books`),
			verbs:      words(`opened closed sold marketed advertised leased renovated franchised served priced bought built acquired owned operated managed flew booked published`),
			adjectives: words(`retail fresh popular discount fashionable domestic daily local regional national medical residential commercial generic private healthy`),
			measures:   words(`stores rooms dlrs seats mln pct units beds passengers`),
		},
		{ // government and economy
			nouns:      words(`government minister president parliament budget deficit taxes spending economy growth inflation unemployment jobs wages prices index consumer producer gross national product statistics department bureau figures survey economists forecast recession recovery reform policy election party opposition cabinet law bill vote spokesman official officials statement report union unions strike pay talks workers labour employers public sector debt development population industry consumption household demand`),
			verbs:      words(`rose fell grew slowed approved voted passed proposed announced warned said told predicted revised adjusted published introduced rejected supported opposed`),
			adjectives: words(`economic fiscal political seasonally adjusted annual gross national provisional preliminary revised unchanged consumer industrial public social wholesale real nominal strong sluggish`),
			measures:   words(`pct percent mln bln month points people year february march january april`),
		},
		{ // law and people
			nouns:      words(`court judge lawsuit claim claims damages settlement appeal jury patent antitrust regulators commission investigation ruling order charges fraud violation agency officer chief executive president chairman vice director successor resignation appointment board member staff employees manager management committee meeting annual holders proxy lawyer attorney counsel evidence penalty fine license permit environmental safety rules regulation statute hearing testimony complaint injunction trial bankruptcy`),
			verbs:      words(`ruled filed sued settled appealed named elected appointed resigned retired succeeded charged alleged denied dismissed ordered fined investigated argued testified`),
			adjectives: words(`legal federal former senior supreme civil criminal executive acting outside independent guilty pending appropriate material unanimous`),
			measures:   words(`dlrs years mln days members damages months counts`),
		},
	}
}

// Words any business text may hold.
var (
	articles    = words(`the a its this that their some any each such our his another every no all both other`)
	preposition = words(`in at on for with from after before under over during against between since until about through without within among into toward despite by of to near because while upon across below above`)
	adverbs     = words(`sharply slightly also still recently already now today yesterday later earlier again only soon largely partly mainly nearly almost about further currently previously immediately expected however therefore meanwhile generally well too far once often never likely probably possibly together up down out there here then not very more most much less least yet even just ahead back away`)
	sayers      = words(`company spokesman analysts officials sources dealers traders economists minister chairman president bank government department firm management group executives brokers board industry agency official spokeswoman market statement report secretary experts director corp inc`)
	saying      = words(`said added told noted announced reported stated believed expected predicted warned confirmed denied declined explained indicated estimated suggested argued commented replied thinks says believes expects`)
	connectors  = words(`and but while although because as when if that which where since so or than who whether though unless whose also what how`)
	auxiliaries = words(`will would could may might should can must has had have been be is was were are did does do being having cannot`)
	linkers     = words(`it he they we i you she them him us itself themselves these those there one two three four five six seven eight nine ten eleven twelve twenty thirty fifty hundred thousand million billion half third several many few more most last next first second new early late mid end total full part own same different important possible available necessary large small big good best better great major due able likely same certain special general main long short high low old young right left wrong clear open free hard easy ready whole common key top recent current future past present previous additional further`)
	verbsPlain  = words(`make take give get keep hold bring come go see say know think want need use find put set run move work call try ask turn start begin help show hear play pay meet include continue change lead understand watch follow stop create speak read allow add spend grow open walk win offer remember consider appear buy wait serve send expect build stay fall cut reach remain suggest raise pass sell require report decide pull return explain carry develop receive produce agree support increase reduce provide improve operate result maintain begin began made took gave got kept held brought came went saw knew thought wanted needed used found ran moved worked called tried asked turned started helped showed played met included continued changed led followed stopped created allowed added spent grew remained required decided carried received provided making taking giving getting holding bringing coming going seeing saying working calling trying including continuing changing leading following starting adding growing buying selling paying reporting increasing reducing providing operating resulting maintaining based according compared related used set named known seen given taken`)
	places      = words(`new york london tokyo washington chicago paris frankfurt houston texas california canada toronto mexico brazil argentina venezuela ecuador colombia chile peru united states britain england scotland ireland france germany west east italy spain portugal netherlands belgium switzerland austria sweden norway denmark finland poland soviet union moscow turkey greece egypt israel saudi arabia iran iraq kuwait qatar bahrain nigeria kenya south africa india pakistan china peking hong kong taiwan korea japan singapore malaysia indonesia philippines thailand australia zealand sydney melbourne ohio michigan florida georgia virginia pennsylvania massachusetts boston minnesota illinois louisiana oklahoma colorado arizona jersey connecticut philadelphia detroit dallas atlanta los angeles san francisco north america europe asia latin american african european gulf atlantic pacific`)
	calendar    = words(`january february march april may june july august september october november december jan feb mar apr jun jul aug sept oct nov dec monday tuesday wednesday thursday friday saturday sunday week month quarter year today spring summer autumn winter day days weeks months years morning afternoon night noon`)
	companyEnds = words(`inc corp co ltd plc group industries international holdings bancorp systems financial resources energy american national general first united pacific western southern eastern northern central standard services products technologies communications enterprises associates partners trust savings petroleum mining foods stores airlines electric chemical steel motors insurance realty properties laboratories instruments data computer brothers sons federal allied consolidated continental universal global atlantic royal`)
)
