package voices

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// What is said.
const (
	SayWords   = "words"   // one of the words of Speech Commands V1 (Warden 2018), or of a list
	SayDigits  = "digits"  // zero to nine
	SayStrings = "strings" // three to seven digits
	SayIntents = "intents" // what a bank is asked, with the intents of MINDS-14 (Gerz et al. 2021)
)

// digits by value.
var digits = []string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"}

// commandWords are the 30 of Speech Commands V1.
var commandWords = append([]string{"bed", "bird", "cat", "dog", "down", "go", "happy", "house", "left", "marvin", "no", "off", "on",
	"right", "sheila", "stop", "tree", "up", "wow", "yes"}, digits...)

// intents of MINDS-14, with what is said: {a|b} is one of these.
var intents = map[string][]string{
	"abroad": {"i am going {on holiday|abroad|to spain|to italy} and want to use my card there", "can i use my {debit|credit} card abroad",
		"will my card work in {france|japan|another country}", "what does it cost to pay {abroad|in another country}"},
	"address": {"i have moved and {need|want} to change my address", "please {update|change} the address on my account",
		"how do i {tell you|give you} my new address", "my address has changed {last week|this month}"},
	"app_error": {"the app {does not open|keeps crashing|shows an error}", "i can not log in to {the|your} app",
		"there is {an error|a problem} with the app on my phone", "your app {stopped working|is not working} today"},
	"atm_limit": {"how much money can i {take out|get} from the cash machine", "what is the limit at the {atm|cash machine}",
		"can i {raise|change} my daily limit at the {atm|cash machine}", "is there a {daily|weekly} limit for taking out cash"},
	"balance": {"what is my balance", "how much money {is in|do i have in} my {savings account|account}",
		"please tell me the balance of my {account|savings}", "i would like to {check|know} my balance"},
	"business_loan": {"i want a loan for my {business|company|shop}", "can you {lend|give} money to my business",
		"how do i apply for a business loan", "what do you need from me for a loan for my {business|company}"},
	"card_issues": {"my card {is not working|does not work|was refused}", "the {shop|machine} does not take my card",
		"there is a problem with my {debit|credit} card", "my card is {broken|damaged} and i need {another|a new} one"},
	"cash_deposit": {"how can i pay cash into my account", "where can i {deposit|pay in} cash",
		"i want to put {some cash|money} into my {account|savings account}", "can i pay in cash at {the branch|a machine}"},
	"direct_debit": {"how do i {set up|cancel|stop} a direct debit", "i {want|need} to change a direct debit",
		"there is a direct debit that i do not know", "can you explain what a direct debit is"},
	"freeze": {"please {freeze|block} my card", "i have lost my card and want to {freeze|block} it",
		"my {card|wallet} was stolen so {freeze|block} my account", "how do i freeze my card {now|for a week}"},
	"high_value_payment": {"i want to {send|transfer} a large {sum|amount} of money", "how do i make a payment of {ten|twenty|fifty} thousand pounds",
		"what is the {most|limit} that i can transfer", "i am buying a {house|car} and have to pay a large amount"},
	"joint_account": {"i want to open a joint account with my {wife|husband|partner}", "can you open a joint account for {us|my partner and me}",
		"how do we set up a joint account", "what do i need to open a joint account"},
	"latest_transactions": {"what are my {latest|last|recent} transactions", "show me what i {spent|paid} {this week|yesterday|last month}",
		"can you read me my {last|latest} transactions", "what went out of my account {today|this week}"},
	"pay_bill": {"i want to pay {a|my} bill", "how do i pay my {phone|water|gas} bill", "please pay the {electricity|internet} bill",
		"can i pay {a|this} bill {online|over the phone|through the app}"},
}

// utterance is what is said once.
type utterance struct {
	text  string
	label string // "" where it has none
}

// dealer says what a speaker says: it goes through all labels before any comes again.
type dealer struct {
	say    string
	labels []string
	left   []string
}

// newDealer is one of words; no words are those of the kind.
func newDealer(say string, words []string) (*dealer, error) {
	d := &dealer{say: say}
	switch say {
	case SayWords:
		if d.labels = words; len(words) == 0 {
			d.labels = commandWords
		}
	case SayDigits, SayStrings:
		d.labels = digits
	case SayIntents:
		for name := range intents {
			d.labels = append(d.labels, name)
		}
	default:
		return nil, fmt.Errorf("voices: say is %.40q, want %s, %s, %s or %s", say, SayWords, SayDigits, SayStrings, SayIntents)
	}
	if len(words) > 0 && say != SayWords {
		return nil, fmt.Errorf("voices: a list of words is for %s, not for %s", SayWords, say)
	}
	d.labels = slices.Clone(d.labels)
	slices.Sort(d.labels)
	return d, nil
}

func (d *dealer) next(rng *rand.Rand) utterance {
	if len(d.left) == 0 {
		d.left = slices.Clone(d.labels)
		rng.Shuffle(len(d.left), func(i, j int) { d.left[i], d.left[j] = d.left[j], d.left[i] })
	}
	switch d.say {
	case SayStrings:
		said := make([]string, 3+rng.IntN(5))
		for i := range said {
			said[i] = digits[rng.IntN(len(digits))]
		}
		return utterance{text: strings.Join(said, " ")}
	case SayIntents:
		label := d.take()
		of := intents[label]
		return utterance{chosen(rng, of[rng.IntN(len(of))]), label}
	}
	word := d.take()
	return utterance{word, word}
}

func (d *dealer) take() string {
	last := d.left[len(d.left)-1]
	d.left = d.left[:len(d.left)-1]
	return last
}

// chosen is a template with one of each {a|b}.
func chosen(rng *rand.Rand, template string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(template, "{")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		choices, after, _ := strings.Cut(rest, "}")
		of := strings.Split(choices, "|")
		out.WriteString(of[rng.IntN(len(of))])
		template = after
	}
}

// CheckWords refuses a list of words that is none: each names a folder and is spoken.
func CheckWords(words []string) error {
	if len(words) < 2 || len(words) > 1000 {
		return fmt.Errorf("voices: %d words, want 2..1000", len(words))
	}
	seen := map[string]bool{}
	for _, w := range words {
		if w == "" || len(w) > 40 || strings.Trim(w, "abcdefghijklmnopqrstuvwxyz'") != "" {
			return fmt.Errorf("voices: the word %.60q: want 1..40 small letters of English", w)
		}
		if seen[w] {
			return fmt.Errorf("voices: the word %q stands twice in the list", w)
		}
		seen[w] = true
	}
	return nil
}
